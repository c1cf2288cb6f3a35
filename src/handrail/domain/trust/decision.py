"""Trust: a person's decision about the exact content of a project's files, and what it switches on.

Pure values. Kept in storage/trust_file.py; which settings need trust is in reach.py."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from handrail.domain.json import digest as digest_of
from handrail.domain.plural import plural

COMMAND: Final = "handrail trust"
"""The command that a person runs."""
ASK_A_PERSON: Final = f"ask a person to look at it and to run `{COMMAND}`"


class TrustItem(Struct, frozen=True):
    """One thing that trust switches on: a setting with its value, or a tool server with its declaration."""

    name: str
    text: str


class TrustDecision(Struct, frozen=True, kw_only=True):
    """Who trusted which content of which folder, and when."""

    project: str
    digest: str
    by: str
    at: str
    items: tuple[TrustItem, ...] = ()
    """What it switched on, to show a difference later."""


class TrustState(StrEnum):
    """Whether what a project's files loosen counts."""

    NOTHING = "nothing to trust"
    TRUSTED = "trusted"
    NEVER = "not trusted"
    CHANGED = "changed since it was trusted"


class ProjectTrust(Struct, frozen=True, kw_only=True):
    """What is known about the trust in a project."""

    state: TrustState = TrustState.NOTHING
    digest: str = ""
    """Of the files as they are now."""
    settings: tuple[TrustItem, ...] = ()
    """The settings that need trust."""
    has_servers: bool = False
    """Whether the project has a tools.json, whose servers need trust."""
    decision: TrustDecision | None = None
    """The last decision about this folder, which may be about other content."""

    @property
    def is_trusted(self) -> bool:
        """Whether everything in the project's files counts."""
        return self.state is TrustState.TRUSTED

    @property
    def is_off(self) -> bool:
        """Whether something in the project's files does not count."""
        return self.state in {TrustState.NEVER, TrustState.CHANGED}

    @property
    def what_is_off(self) -> str:
        """What does not count, in a few words; empty if nothing."""
        if not self.is_off:
            return ""
        servers = ["the servers of tools.json"] if self.has_servers else []
        return ", ".join([*(one.name for one in self.settings), *servers])


class ItemChange(Struct, frozen=True):
    """How an item differs from what was trusted before; None: it was, or is, not there."""

    name: str
    before: str | None
    now: str | None


def content_digest(files: Mapping[str, bytes | None]) -> str:
    """The digest of everything that trust is about; files that do not exist have no part in it."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items() if content is not None}
    return digest_of(sums)


def trust_of(
    decision: TrustDecision | None, *, digest: str, settings: Sequence[TrustItem], has_servers: bool
) -> ProjectTrust:
    """The state of a project: a decision counts only for exactly the content that it was about."""
    state = TrustState.NEVER if decision is None else TrustState.CHANGED
    if decision is not None and decision.digest == digest:
        state = TrustState.TRUSTED
    elif not settings and not has_servers:
        state = TrustState.NOTHING
    return ProjectTrust(
        state=state, digest=digest, settings=tuple(settings), has_servers=has_servers, decision=decision
    )


def changes(before: Sequence[TrustItem], now: Sequence[TrustItem]) -> list[ItemChange]:
    """What is new, different or gone, in the order of `now`."""
    old, new = {one.name: one.text for one in before}, {one.name: one.text for one in now}
    names = [*new, *(name for name in old if name not in new)]
    return [ItemChange(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]


def withheld_words(state: TrustState) -> str:
    """Why what a project's own files allow does not count: for agents and people alike, so it names no setting."""
    is_changed = state is TrustState.CHANGED
    why = "have changed since a person trusted them" if is_changed else "are not trusted yet"
    return f"this project's own settings, which would allow it, {why}: a person can look at them with `{COMMAND}`"


def untrusted_words(server: str, state: TrustState) -> str:
    """Why a project's tool server is not started: for agents and people alike, so it names no setting."""
    is_changed = state is TrustState.CHANGED
    why = (
        "this project's files have changed since a person trusted them" if is_changed else "this project is not trusted"
    )
    return f"{why}, so its tool server `{server}` is not started; {ASK_A_PERSON}"


def off_words(trust: ProjectTrust) -> str:
    """What is off, as one sentence; empty if nothing is."""
    if not trust.is_off:
        return ""
    count = plural(len(trust.settings) + trust.has_servers, "thing")
    why = "has changed since it was trusted" if trust.state is TrustState.CHANGED else "is not trusted"
    return (
        f"this project {why}: {count} in its files {'is' if count.startswith('1 ') else 'are'} off: {trust.what_is_off}"
    )
