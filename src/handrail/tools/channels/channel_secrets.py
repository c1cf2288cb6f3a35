"""The secrets of channels: found when something is sent, so that a new value counts at once, and known to everything
that is written here, so that none gets into a log."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from handrail.domain.errors import Forbidden, NotFound
from handrail.domain.notify.channel import SECRETS_FOR
from handrail.engine.known_secrets import KnownSecrets
from handrail.engine.secrets import Secrets


@dataclass(frozen=True)
class ChannelSecrets:
    """The secrets that one channel may have."""

    channel: str
    secrets: Secrets
    known: KnownSecrets

    def value(self, name: str) -> str:
        """The secret of this name; NotFound or Forbidden say how to set it."""
        value = self.value_or_none(name)
        if value is None:
            raise NotFound(f"there is no secret {name!r}", hint=self._how(name))
        return value

    def value_or_none(self, name: str) -> str | None:
        """The secret of this name, if there is one."""
        found = self.secrets.find(name) if name else None
        if found is None:
            return None
        if not any(fnmatchcase(f"{SECRETS_FOR}{self.channel}", pattern) for pattern in found.given_to):
            raise Forbidden(
                f"the secret {name!r} is not for {SECRETS_FOR}{self.channel}", hint=self._how(name, keep=True)
            )
        # Before it is used: an error that quotes it is logged without it.
        self.known.add({found.value: f"${{secret:{name}}}"})
        return found.value

    def _how(self, name: str, *, keep: bool = False) -> str:
        how = "let it have" if keep else "store"
        return f"{how} the secret {name!r} for {SECRETS_FOR}{self.channel}: `handrail secrets set --help`"
