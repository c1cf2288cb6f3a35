"""Turns: steps that change one file at the same time do so one after the other, each from its capture to its end.

A change is made only if the file is as it was captured. Two steps that capture the same state would both want to
change it: one of them would fail, or undo the other's work unseen. Processes are kept apart by place.py, at the change
itself: there the later one fails, and says so."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

TURN_S: Final = 5.0
"""How long a turn lasts at most: a step that captured may never make its change, because its run was stopped."""
TURNS_MAX: Final = 1_000

Owner: TypeAlias = tuple[str, str]
"""A run and its step."""


class _Turn(NamedTuple):
    owner: Owner
    until_s: float


@dataclass
class FileTurns:
    """Whose turn it is, by file."""

    _held: dict[str, _Turn] = field(default_factory=dict)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list)

    async def take(self, file: str, owner: Owner) -> None:
        """Wait for the turn; it is the owner's until they release it, or for a few seconds."""
        loop = asyncio.get_running_loop()
        while (held := self._held.get(file)) is not None and held.owner != owner and held.until_s > loop.time():
            released = loop.create_future()
            self._waiting.append(released)
            await asyncio.wait({released}, timeout=held.until_s - loop.time())
        if len(self._held) >= TURNS_MAX:
            self._held = {name: turn for name, turn in self._held.items() if turn.until_s > loop.time()}
        self._held[file] = _Turn(owner, loop.time() + TURN_S)

    def release(self, file: str, owner: Owner) -> None:
        """Let the next one go on; nothing, if the turn was over already."""
        held = self._held.get(file)
        if held is None or held.owner != owner:
            return
        del self._held[file]
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)
