"""Moments: up to where a backup is restored, as an operator writes it. Pure."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from handrail.domain.instant import instant_from

_event: Final = re.compile(r"([^\s:#][^\s#]*)[:#]([1-9][0-9]{0,17})")


class AtEvent(Struct, frozen=True):
    """Up to this event of a stream, with it."""

    stream: str
    n: int


class AtInstant(Struct, frozen=True):
    """Up to this instant."""

    at: int


def moment_from(text: str) -> AtEvent | AtInstant:
    """The moment in a text: `run_7k3m9q2x:14`, or an instant; Invalid if it is neither."""
    if not text[:1].isdigit() and (found := _event.fullmatch(text)):
        return AtEvent(found[1], int(found[2]))
    return AtInstant(instant_from(text))
