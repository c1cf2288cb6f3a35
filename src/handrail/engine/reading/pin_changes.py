"""Tools that their servers describe otherwise than when plans were saved or runs were started.

Async only to read plans and descriptions; nothing is written, and no server is started for it. What happens then is
decided at the call: the step stops and a person is asked (engine/running/calls/attempt.py)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from handrail.domain.definition.tool_pin import Card, difference, digests_of
from handrail.engine.journal import Journal
from handrail.engine.reading.step_view import Shown

CHANGES_MAX: Final = 50
NAMED_MAX: Final = 20


class PinChange(Shown, frozen=True):
    """A tool whose description has changed, and what is pinned to an earlier one."""

    tool: str
    difference: str
    """What has changed, line by line."""
    plans: tuple[str, ...] = ()
    """The saved plans that use it: each run of them stops and asks before the call."""
    runs: tuple[str, ...] = ()
    """The open runs that use it."""


class PinnedUse(Shown, frozen=True):
    """What a plan or a run is pinned to."""

    name: str
    pins: Mapping[str, str]
    is_run: bool = False


async def pin_changes(journal: Journal, cards: Mapping[str, Card], pinned: Iterable[PinnedUse]) -> list[PinChange]:
    """The tools of these descriptions that have changed since something was pinned to them."""
    users: dict[tuple[str, str], list[PinnedUse]] = {}
    for one in pinned:
        for tool, pin in one.pins.items():
            if tool in cards and pin not in digests_of(cards[tool]):
                users.setdefault((tool, pin), []).append(one)
    return [
        PinChange(
            tool=tool,
            difference=difference(await _card(journal, pin), cards[tool]),
            plans=tuple(one.name for one in found if not one.is_run)[:NAMED_MAX],
            runs=tuple(one.name for one in found if one.is_run)[:NAMED_MAX],
        )
        for (tool, pin), found in sorted(users.items())[:CHANGES_MAX]
    ]


async def _card(journal: Journal, pin: str) -> Mapping[str, Any] | None:
    text = await journal.definition(pin)
    return msgspec.json.decode(text) if text is not None else None
