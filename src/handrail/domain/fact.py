"""The shape that all events share, and how an event is made from the command that asked for it.

The events themselves are event.py's, the commands command.py's; what makes a command legal is decide.py's."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from msgspec import Struct


class Fact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The shape all events share: frozen, spoken by keyword, brief on disk."""


FactT = TypeVar("FactT", bound=Fact)


def granted(kind: type[FactT], command: Struct, **decided: Any) -> FactT:
    """The event that says what the command asked for; `decided` is what only the decision knows.

    A field of one name means the same in a command and in its event, so it is written down once, as a field."""
    return kind(**{name: getattr(command, name) for name in _shared(kind, type(command))}, **decided)


@cache  # both sets are closed, so this is bounded
def _shared(kind: type[Fact], asked: type[Struct]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name in asked.__struct_fields__)
