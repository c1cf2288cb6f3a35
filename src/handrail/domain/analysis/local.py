"""What is known of the place where a definition is to be run: its tools, its tool servers and its rules.

Values only; who gathers them is assembly.py. What is not known is not guessed: a server that was never asked, or a rule
whose card was never read, leaves a check undone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field

from handrail.domain.check import Flaw, Path
from handrail.domain.definition import Effect
from handrail.domain.rule import RuleCard

SchemaCheck: TypeAlias = Callable[[Any, Any, Path], Sequence[Flaw]]
"""What a JSON Schema has against a value, which stands at the path."""


class KnownTool(Struct, frozen=True, kw_only=True):
    """What can be relied on before a tool is called."""

    effect: Effect
    args: Mapping[str, Any] | None = None
    """The JSON Schema of its arguments; None if it is not known."""
    output: Any = None
    """The JSON Schema of its output; None if it promises nothing."""


class LocalTools(Struct, frozen=True, kw_only=True):
    """The tools that were asked about, as far as they are there."""

    tools: Mapping[str, KnownTool] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    """All that is known, to suggest from."""
    families: frozenset[str] = frozenset()
    """What may stand before the dot: servers that are configured, and the families of our own tools."""
    unasked: frozenset[str] = frozenset()
    """Configured servers that have not said yet which tools they have."""
    remembered: frozenset[str] = frozenset()
    """Configured servers whose tools are known from an earlier time."""


class LocalRules(Struct, frozen=True, kw_only=True):
    """The rules that were asked about, as far as they are there; None for one whose card is not known yet."""

    cards: Mapping[str, RuleCard | None] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)
    """Rules that can't be used, each with the reason."""


def _unchecked(_schema: Any, _value: Any, _path: Path) -> Sequence[Flaw]:
    return ()


class Local(Struct, frozen=True, kw_only=True):
    """What is known of a place; without tools or rules, those are not checked."""

    tools: LocalTools | None = None
    rules: LocalRules | None = None
    fits: SchemaCheck = _unchecked


Survey: TypeAlias = Callable[[Collection[str], Collection[str]], Local]
"""Finds out what is known of the tools and rules of these names."""

NOWHERE = Local()
"""A place of which nothing is known."""
