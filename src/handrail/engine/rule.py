"""Rules, as the gate applies them: what they are given to work with, and how they fail.

Protocols and values only. The rules are in rules/; which checks apply when is gate.py's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from handrail.domain.rule import Given, Outcome, RuleCard
from handrail.engine.sandbox import Sandbox
from handrail.engine.tool import Progress, silent


class Setting(Struct, frozen=True, kw_only=True):
    """What a rule may look at, and work with."""

    given: Given
    """The output, expressions over the run, and schemas."""
    project: Path
    """The folder of the project; a rule looks nowhere else."""
    private: tuple[Path, ...] = ()
    """Folders that no rule may look into."""
    sandbox: Sandbox
    """Where commands run; its `trial` says whether it may be used."""
    progress: Progress = silent


class RuleUnavailable(Exception):
    """A rule could not come to an end this time, and might the next: the network is down, a lock is held."""


class Rule(Protocol):
    """Something that a check can apply."""

    @property
    def card(self) -> RuleCard:
        """What the rule says of itself."""
        ...

    async def apply(self, parameters: Mapping[str, Any], setting: Setting) -> Outcome:
        """What it finds. Whatever it raises is told as a broken rule; RuleUnwell is tried again first."""
        ...

    async def inputs(self, parameters: Mapping[str, Any], setting: Setting) -> str:
        """The digest of all that its outcome depends on, beside its parameters; empty if that can't be told, so that
        nothing is remembered."""
        ...


class RuleSet(Protocol):
    """All rules that checks can apply."""

    async def find(self, name: str) -> Rule | None:
        """The rule of that name; None if there is none."""
        ...

    def names(self) -> Collection[str]:
        """What there is."""
        ...

    @property
    def broken(self) -> Mapping[str, str]:
        """Rules that can't be used, each with the reason, as far as somebody has tried."""
        ...


class Memory(Protocol):
    """What rules found before, by the digest of all that it depends on."""

    async def find(self, key: str) -> Outcome | None:
        """What was found then."""
        ...

    async def keep(self, key: str, outcome: Outcome) -> None:
        """Remember it; what was not asked for longest is forgotten first."""
        ...


class NoMemory:
    """A memory that keeps nothing."""

    async def find(self, key: str) -> Outcome | None:
        """Nothing was ever kept."""
        return None

    async def keep(self, key: str, outcome: Outcome) -> None:
        """Let it go."""
