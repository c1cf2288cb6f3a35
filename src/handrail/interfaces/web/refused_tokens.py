"""Requests whose token is wrong or missing: how many came from where, how long the answer waits, and what is logged.

Pure: the time is passed in. The token itself never gets here. Who may come in is decided in guard.py; the waiting
is done in slow_refusals.py. A right token never waits: other clients of the same address must not suffer."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

ADDRESSES_MAX: Final = 1_000
FREE: Final = 5
"""How many wrong tokens of an address are answered at once: a client with an old token tries a few times."""
FIRST_DELAY_S: Final = 0.1
FORGET_S: Final = 60.0
"""After how long without a wrong token an address starts again."""
WAITING_MAX: Final = 50
"""How many answers may wait at once: each keeps a connection open, and others need connections too."""


@dataclass(slots=True)
class _Address:
    count: int = 0
    last: float = 0.0


class RefusedTokens:
    """The wrong tokens of the last time, by the address they came from."""

    def __init__(self, delay_s_max: float) -> None:
        self._delay_s_max = delay_s_max
        self._addresses: OrderedDict[str, _Address] = OrderedDict()
        self._unlogged: dict[str, int] = {}
        self.waiting = 0
        """How many answers wait now."""

    def note(self, address: str, now: float) -> float:
        """Count a wrong token; returns for how many seconds its answer should wait."""
        known = self._addresses.pop(address, None)
        if known is None or now - known.last > FORGET_S:
            known = _Address()
        self._addresses[address] = known
        known.count, known.last = known.count + 1, now
        if len(self._addresses) > ADDRESSES_MAX:
            self._addresses.popitem(last=False)
        if address in self._unlogged or len(self._unlogged) < ADDRESSES_MAX:
            self._unlogged[address] = self._unlogged.get(address, 0) + 1
        beyond = min(known.count - FREE - 1, 30)
        return min(FIRST_DELAY_S * 2**beyond, self._delay_s_max) if beyond >= 0 else 0.0

    @property
    def is_crowded(self) -> bool:
        """Whether no more answers may wait."""
        return self.waiting >= WAITING_MAX

    def report(self) -> str:
        """A line about the wrong tokens since the last report; empty if there was none."""
        if not self._unlogged:
            return ""
        most, _ = max(self._unlogged.items(), key=lambda one: one[1])
        count, sources = sum(self._unlogged.values()), len(self._unlogged)
        self._unlogged.clear()
        where = most if sources == 1 else f"{sources} addresses, most from {most}"
        return f"{count} {'request' if count == 1 else 'requests'} without the right token refused, from {where}"
