"""A sandbox whose commands' output has no secrets: before rules cut it, which could cut through one.

What is left of a secret that was cut is not recognised when it is journaled. Secrets that are only digits are left to
that: in a report, any count or duration could look like one, and the report could then not be read."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from handrail.domain.secrets.scrubbing import SecretScrubber
from handrail.engine.known_secrets import KnownSecrets
from handrail.engine.sandbox import Job, Ran, Sandbox
from handrail.engine.tool import Progress, silent


@dataclass
class CleanSandbox:
    """The same sandbox, with clean output."""

    sandbox: Sandbox
    secrets: KnownSecrets
    _known: SecretScrubber | None = None
    _scrubber: SecretScrubber | None = None

    @property
    def is_throw_away(self) -> bool:
        """As the sandbox says."""
        return bool(getattr(self.sandbox, "is_throw_away", False))

    @property
    def caveat(self) -> str:
        """As the sandbox says."""
        return self.sandbox.caveat

    async def run(self, job: Job, *, progress: Progress = silent) -> Ran:
        """Run a command to its end; secrets are removed from what it said."""
        ran = await self.sandbox.run(job, progress=progress)
        scrubber = self._cleaning()
        return replace(ran, stdout=scrubber.text(ran.stdout), stderr=scrubber.text(ran.stderr))

    async def trial(self) -> str:
        """Try to escape."""
        return await self.sandbox.trial()

    def _cleaning(self) -> SecretScrubber:
        known = self.secrets.scrubber()
        if self._scrubber is None or known is not self._known:
            words = {value: name for value, name in known.values.items() if not _is_number(value)}
            self._known, self._scrubber = known, SecretScrubber(words)
        return self._scrubber


def _is_number(value: str) -> bool:
    return value.strip().strip("+-.").replace(".", "").isdecimal()
