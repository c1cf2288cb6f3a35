"""The throttle: limits how many calls run at once, in all, per tool and per server, and decides which run is next.

No I/O. When the limit is reached, runs queue up: the highest priority first; runs of equal priority take turns, so
that a run with thousands of ready steps does not starve the others."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Final

from handrail.domain.scheduling.call_rate import pace_of, taken
from handrail.engine.fleet.limits import FleetLimits
from handrail.engine.tool import CallLimits, ToolSpec
from handrail.foundation.token_bucket import TokenBucket

CALLS_MAX: Final = 100


@dataclass(frozen=True)
class Postponed:
    """A call that can't start yet, and why; `due` if it only has to wait until then."""

    reason: str
    due: int | None = None
    is_breaker: bool = False
    """Whether its server's breaker is open; else it is a limit, or a node that is needed."""
    needs: str = ""
    """What a node must have to make the call, because this one has not."""


@dataclass
class Throttle:
    """Lets calls start, or holds them back; `wake` is called for the run that is next."""

    wake: Callable[[str], None]
    calls_max: int = CALLS_MAX
    fleet: FleetLimits | None = None
    """Counts rates and limits over all nodes, if there are several; then they are not counted here as well."""
    _under_way: int = 0
    _by_name: Counter[str] = field(default_factory=Counter)
    """How many calls are running, by tool and by server."""
    _buckets: dict[str, TokenBucket] = field(default_factory=dict)
    _queue: list[tuple[int, int, str]] = field(default_factory=list)
    _queued: set[str] = field(default_factory=set)
    _turns: Counter[str] = field(default_factory=Counter)
    _waiting: dict[str, OrderedDict[str, None]] = field(default_factory=dict)
    _offers: dict[str, dict[str, None]] = field(default_factory=dict)
    """By run: tools and servers with a free place, offered to the run and not used yet."""
    _tickets: count[int] = field(default_factory=count)

    @property
    def under_way(self) -> int:
        """How many calls are running, or have a turn."""
        return self._under_way

    def enter(self, run: str, priority: int, spec: ToolSpec, *, now: int) -> Postponed | None:
        """Let a call start (None), or say why it can't; the run is woken when it may try again."""
        limits = _limits_of(spec)
        # The run uses the places that were offered to it, or queues again: either way the offers are over.
        offered = [limit.name for limit in limits if limit.name in self._offers.get(run, {})]
        for name in offered:
            del self._offers[run][name]
        postponed = self._postponed(run, priority, limits, now)
        if postponed is not None:
            for name in offered:
                # Others wait for them, and are woken by nothing else. A place that is taken again is no offer.
                if run not in self._waiting.get(name, ()):
                    self._offer(name)
            return postponed
        # A turn that was given counts as under way already; entering without one must add to it.
        if self._turns[run]:
            self._turns[run] -= 1
        else:
            self._under_way += 1
        self._by_name.update(limit.name for limit in limits)
        return None

    def _postponed(self, run: str, priority: int, limits: Sequence[CallLimits], now: int) -> Postponed | None:
        """Why a call can't start now; the run then waits for a place, for a turn, or for a time."""
        for limit in limits:
            if limit.concurrency is not None and self._by_name[limit.name] >= limit.concurrency:
                self._waiting.setdefault(limit.name, OrderedDict())[run] = None
                return Postponed(f"{limit.concurrency} calls of {limit.name} are running")
        if not self._has_turn(run):
            self._enqueue(run, priority)
            return Postponed(f"{self.calls_max} calls are running, the most that handrail makes at once")
        return self._too_soon(limits, now) if self.fleet is None else None

    def _too_soon(self, limits: Sequence[CallLimits], now: int) -> Postponed | None:
        """Why a call would exceed a rate limit; if it does not, it is counted."""
        after: dict[str, TokenBucket] = {}
        for limit in limits:
            if limit.rate is not None:
                bucket, due = taken(pace_of(limit.rate), self._buckets.get(limit.name), now)
                if due is not None:
                    self._buckets[limit.name] = bucket
                    return Postponed(f"{limit.name} is called at most {limit.rate}", due)
                after[limit.name] = bucket
        self._buckets.update(after)  # only now: a call that does not start must not count towards any limit
        return None

    async def enter_fleet(self, spec: ToolSpec, *, now: int) -> Postponed | None:
        """Let a call that has entered here start as far as other nodes are concerned, or say why it can't."""
        limits = _limits_of(spec)
        if self.fleet is None or not limits:
            return None
        is_in = False
        try:
            wait_ms = await self.fleet.enter(limits)
            is_in = not wait_ms
        finally:
            if not is_in:
                self._leave(limits)
        said = " and ".join(limit.name for limit in limits)
        return None if is_in else Postponed(f"the limits of {said} are reached by all nodes together", now + wait_ms)

    def leave(self, spec: ToolSpec) -> None:
        """Note that a call has ended, and give its place to the next run."""
        limits = _limits_of(spec)
        if self.fleet is not None and limits:
            self.fleet.leave(limits)
        self._leave(limits)

    def _leave(self, limits: Sequence[CallLimits]) -> None:
        for limit in limits:
            self._by_name[limit.name] -= 1
            self._offer(limit.name)
        self._under_way -= 1
        self._give_turn()

    def give_back(self, run: str) -> None:
        """Pass on a turn, or a free place of a tool or server, that the run did not use."""
        for name in self._offers.pop(run, {}):
            self._offer(name)
        while self._turns[run]:
            self._turns[run] -= 1
            self._under_way -= 1
            self._give_turn()
        del self._turns[run]

    def forget(self, run: str) -> None:
        """Remove a run that needs no more turns."""
        self._queued.discard(run)
        for waiting in self._waiting.values():
            waiting.pop(run, None)
        self.give_back(run)

    def _offer(self, name: str) -> None:
        """Offer a free place to the next run that waits for a tool or server."""
        waiting = self._waiting.get(name)
        if waiting:
            # The one that waited longest. It is only woken: it may have lost interest, and then gives the place back.
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
            # Runs that were forgotten stay in the heap until they come up: searching for them would cost more.
            if run in self._queued:
                self._queued.discard(run)
                self._turns[run] += 1
                self._under_way += 1
                self.wake(run)


def _limits_of(spec: ToolSpec) -> tuple[CallLimits, ...]:
    """The limits on calls of a tool: its own, and those of its server as a whole."""
    if spec.concurrency is None and spec.rate is None:
        return () if spec.shared is None else (spec.shared,)
    own = CallLimits(name=spec.name, concurrency=spec.concurrency, rate=spec.rate)
    return (own,) if spec.shared is None else (own, spec.shared)
