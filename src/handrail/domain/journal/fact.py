"""The base of all events, and how an event is made from the command that asked for it.

The events are in event.py, the commands in command.py; decide.py decides whether a command is legal."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from msgspec import Struct


class Fact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base of all events: frozen, keyword-only, defaults omitted on disk."""


FactT = TypeVar("FactT", bound=Fact)


def granted(kind: type[FactT], command: Struct, **decided: Any) -> FactT:
    """The event that records what the command asked for; `decided` are fields that only the decision knows.

    A field of the same name means the same in a command and its event, so it is copied."""
    return kind(**{name: getattr(command, name) for name in _shared(kind, type(command))}, **decided)


@cache  # bounded: both sets of classes are closed
def _shared(kind: type[Fact], asked: type[Struct]) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if name in asked.__struct_fields__)
