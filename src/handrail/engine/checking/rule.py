"""The protocol of rules: what they are given, and how they fail.

Protocols and values only. The rules are in rules/; gate.py decides which checks apply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from handrail.domain.checks.rule import CheckOutcome, Given, RuleCard
from handrail.domain.run.baseline import Baseline
from handrail.engine.checking.shared_call import SharedLooks
from handrail.engine.sandbox import Sandbox
from handrail.engine.tool import Progress, silent


class Baselines(Struct, frozen=True, kw_only=True):
    """The state of the project when the run started, and when the step was given out; None if that is unknown."""

    run: Baseline | None = None
    step: Baseline | None = None


class Setting(Struct, frozen=True, kw_only=True):
    """What a rule may read and use."""

    given: Given
    """The output, expressions over the run, and schemas."""
    project: Path
    """The project's folder; a rule reads nothing else."""
    private: tuple[Path, ...] = ()
    """Folders that no rule may read."""
    sandbox: Sandbox
    """Where commands run; its `trial` says whether it may be used."""
    baselines: Baselines = Baselines()
    """What the project is compared with."""
    progress: Progress = silent
    tree: Callable[[], Awaitable[str]] | None = None
    """The digest of the project's files when the check started, computed once; None if it is not known."""
    looks: SharedLooks | None = None
    """What the checks of the same output look at in common."""


class RuleUnavailable(Exception):
    """A rule could not finish this time, but a retry may work: the network is down, a lock is held."""


class PlannedCommand(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command that a rule would run, or why it can't."""

    argv: tuple[str, ...] = ()
    folder: str = "."
    """Where it would start, relative to the project."""
    chosen: Mapping[str, str] = {}
    """By program: where it is, and why it was chosen."""
    shows: tuple[str, ...] = ()
    """Places outside the project that its programs need; the sandbox shows those that may be shown."""
    missing: str = ""
    """What is missing; empty if it can be run."""
    fix: str = ""
    excerpt: str = ""
    """What was looked at."""


class Rule(Protocol):
    """Something that a check can apply."""

    @property
    def card(self) -> RuleCard:
        """The rule's description."""
        ...

    async def apply(self, parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
        """What it finds. Any exception is reported as a broken rule; RuleUnavailable is retried first."""
        ...

    async def inputs(self, parameters: Mapping[str, Any], setting: Setting) -> str:
        """The digest of everything its outcome depends on, besides its parameters; empty if that is unknown, so that
        nothing is cached."""
        ...


class RuleSet(Protocol):
    """All rules that checks can apply."""

    async def find(self, name: str) -> Rule | None:
        """The rule of that name; None if there is none."""
        ...

    def names(self) -> Collection[str]:
        """The names of all rules."""
        ...

    @property
    def broken(self) -> Mapping[str, str]:
        """Rules that can't be used, each with the reason, as far as they were tried."""
        ...


class Memory(Protocol):
    """A cache of outcomes, by the digest of everything they depend on."""

    async def find(self, key: str) -> CheckOutcome | None:
        """The cached outcome, if any."""
        ...

    async def keep(self, key: str, outcome: CheckOutcome) -> None:
        """Cache an outcome; the least recently used is dropped first."""
        ...


class NoMemory:
    """A cache that stores nothing."""

    async def find(self, key: str) -> CheckOutcome | None:
        """Always None."""
        return None

    async def keep(self, key: str, outcome: CheckOutcome) -> None:
        """Do nothing."""
