"""What is known of the environment in which a definition will run: its tools, tool servers, rules and people.

Values only, gathered in assembly/. Nothing is guessed: if a server was never asked, or a rule's card was never read,
the check that needs it is not made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field

from handrail.domain.checks.finding import Flaw, Path
from handrail.domain.checks.rule import RuleCard
from handrail.domain.definition.model import Effect

SchemaCheck: TypeAlias = Callable[[Any, Any, Path], Sequence[Flaw]]
"""Returns the flaws of a value at a path by a JSON Schema."""


class KnownTool(Struct, frozen=True, kw_only=True):
    """What is known of a tool before it is called."""

    effect: Effect
    args: Mapping[str, Any] | None = None
    """The JSON Schema of its arguments; None if it is not known."""
    output: Any = None
    """The JSON Schema of its output; None if it declares none."""


class LocalTools(Struct, frozen=True, kw_only=True):
    """Those of the requested tools that are available."""

    tools: Mapping[str, KnownTool] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    """All known tools, to suggest similar names."""
    families: frozenset[str] = frozenset()
    """What may be before the dot in a tool's name: configured servers, and the families of built-in tools."""
    unasked: frozenset[str] = frozenset()
    """Configured servers that have not been asked for their tools yet."""
    remembered: frozenset[str] = frozenset()
    """Configured servers whose tools are known from an earlier connection."""
    untrusted: frozenset[str] = frozenset()
    """Servers of a project that no person has trusted: they are not started."""
    off: Mapping[str, str] = field(default_factory=dict)
    """Those of the requested tools that a setting switches off: every call is refused, and why."""


class LocalRules(Struct, frozen=True, kw_only=True):
    """Those of the requested rules that are available; None for a rule whose card is not known yet."""

    cards: Mapping[str, RuleCard | None] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)
    """Rules that can't be used, with the reason."""


class LocalPeople(Struct, frozen=True, kw_only=True):
    """Who can answer approvals: the members of each group, and the user of this machine."""

    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    person: str = ""


def _unchecked(_schema: Any, _value: Any, _path: Path) -> Sequence[Flaw]:
    return ()


class Local(Struct, frozen=True, kw_only=True):
    """What is known of an environment; if tools, rules or people are None, they are not checked."""

    tools: LocalTools | None = None
    rules: LocalRules | None = None
    fits: SchemaCheck = _unchecked
    people: LocalPeople | None = None


Survey: TypeAlias = Callable[[Collection[str], Collection[str]], Local]
"""Returns what is known of the tools and rules with these names."""

NOWHERE = Local()
"""An environment of which nothing is known."""
