"""The throttle: how many calls are under way at once, in all, of each tool and of each server, and whose turn is next.

No I/O. When all hands are full, runs queue up: the higher priority first, and among equals each gets one turn after
the other, so that a run with thousands of ready steps does not starve the rest."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Final

from handrail.domain.pace import pace_of, taken
from handrail.engine.tool import CallLimits, ToolSpec
from handrail.foundation.token_bucket import TokenBucket

CALLS_MAX: Final = 100


@dataclass(frozen=True)
class Hold:
    """A call that can't begin yet, and why; `due` if time alone will help."""

    reason: str
    due: int | None = None
    is_breaker: bool = False
    """Whether its server is left alone; else it is a limit."""


@dataclass
class Throttle:
    """Lets calls begin, or holds them back; `wake` is called for a run whose turn has come."""

    wake: Callable[[str], None]
    calls_max: int = CALLS_MAX
    _under_way: int = 0
    _by_name: Counter[str] = field(default_factory=Counter)
    """How many calls of each tool, and of each server as a whole, are under way."""
    _buckets: dict[str, TokenBucket] = field(default_factory=dict)
    _queue: list[tuple[int, int, str]] = field(default_factory=list)
    _queued: set[str] = field(default_factory=set)
    _turns: Counter[str] = field(default_factory=Counter)
    _waiting: dict[str, OrderedDict[str, None]] = field(default_factory=dict)
    _offers: dict[str, dict[str, None]] = field(default_factory=dict)
    """By run: tools and servers that have a free place, which the run was told of and has not asked for yet."""
    _tickets: count[int] = field(default_factory=count)

    def enter(self, run: str, priority: int, spec: ToolSpec, *, now: int) -> Hold | None:
        """Let a call begin (None), or say why it can't; the run is woken when it may try again."""
        limits = _limits_of(spec)
        for limit in limits:
            self._offers.get(run, {}).pop(limit.name, None)
        for limit in limits:
            if limit.concurrency is not None and self._by_name[limit.name] >= limit.concurrency:
                self._waiting.setdefault(limit.name, OrderedDict())[run] = None
                return Hold(f"{limit.concurrency} calls of {limit.name} are under way")
        if not self._has_turn(run):
            self._enqueue(run, priority)
            return Hold(f"all {self.calls_max} hands of handrail are full")
        if held := self._too_soon(limits, now):
            return held
        if self._turns[run]:
            self._turns[run] -= 1
        else:
            self._under_way += 1
        self._by_name.update(limit.name for limit in limits)
        return None

    def _too_soon(self, limits: Sequence[CallLimits], now: int) -> Hold | None:
        """Why a call would come too soon after the others; if it does not, it is counted."""
        after: dict[str, TokenBucket] = {}
        for limit in limits:
            if limit.rate is not None:
                bucket, due = taken(pace_of(limit.rate), self._buckets.get(limit.name), now)
                if due is not None:
                    self._buckets[limit.name] = bucket
                    return Hold(f"{limit.name} is called at most {limit.rate}", due)
                after[limit.name] = bucket
        self._buckets.update(after)  # only now: a call that does not begin counts nowhere
        return None

    def leave(self, spec: ToolSpec) -> None:
        """Note that a call has ended, and give its place to whoever is next."""
        for limit in _limits_of(spec):
            self._by_name[limit.name] -= 1
            self._offer(limit.name)
        self._under_way -= 1
        self._give_turn()

    def give_back(self, run: str) -> None:
        """Pass on a turn, or a free place of a tool or server, that the run had no use for."""
        for name in self._offers.pop(run, {}):
            self._offer(name)
        while self._turns[run]:
            self._turns[run] -= 1
            self._under_way -= 1
            self._give_turn()
        del self._turns[run]

    def forget(self, run: str) -> None:
        """Let a run go that needs no turns any more."""
        self._queued.discard(run)
        for waiting in self._waiting.values():
            waiting.pop(run, None)
        self.give_back(run)

    def _offer(self, name: str) -> None:
        """Tell the next run that waits for a tool or server that there is a place."""
        waiting = self._waiting.get(name)
        if waiting:
            run, _ = waiting.popitem(last=False)
            self._offers.setdefault(run, {})[name] = None
            self.wake(run)

    def _has_turn(self, run: str) -> bool:
        return self._turns[run] > 0 or (self._under_way < self.calls_max and not self._queued)

    def _enqueue(self, run: str, priority: int) -> None:
        if run not in self._queued:
            self._queued.add(run)
            heappush(self._queue, (-priority, next(self._tickets), run))

    def _give_turn(self) -> None:
        while self._queue and self._under_way < self.calls_max:
            _, _, run = heappop(self._queue)
            if run in self._queued:
                self._queued.discard(run)
                self._turns[run] += 1
                self._under_way += 1
                self.wake(run)


def _limits_of(spec: ToolSpec) -> tuple[CallLimits, ...]:
    """What bounds the calls of a tool: its own limits, and those of its server as a whole."""
    if spec.concurrency is None and spec.rate is None:
        return () if spec.shared is None else (spec.shared,)
    own = CallLimits(name=spec.name, concurrency=spec.concurrency, rate=spec.rate)
    return (own,) if spec.shared is None else (own, spec.shared)
