"""The throttle: how many calls are under way at once, in all and of each tool, and whose turn is next.

No I/O. When all hands are full, runs queue up: the higher priority first, and among equals each gets one turn after
the other, so that a run with thousands of ready steps does not starve the rest."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Final

from handrail.domain.pace import Bucket, pace_of, taken
from handrail.engine.tool import ToolSpec

CALLS_MAX: Final = 100


@dataclass(frozen=True)
class Hold:
    """A call that can't begin yet, and why; `due` if time alone will help."""

    reason: str
    due: int | None = None


@dataclass
class Throttle:
    """Lets calls begin, or holds them back; `wake` is called for a run whose turn has come."""

    wake: Callable[[str], None]
    calls_max: int = CALLS_MAX
    _under_way: int = 0
    _by_tool: Counter[str] = field(default_factory=Counter)
    _buckets: dict[str, Bucket] = field(default_factory=dict)
    _queue: list[tuple[int, int, str]] = field(default_factory=list)
    _queued: set[str] = field(default_factory=set)
    _turns: Counter[str] = field(default_factory=Counter)
    _waiting: dict[str, OrderedDict[str, None]] = field(default_factory=dict)
    _offers: dict[str, dict[str, None]] = field(default_factory=dict)
    """By run: tools that have a free place, which the run was told of and has not asked for yet."""
    _tickets: count[int] = field(default_factory=count)

    def enter(self, run: str, priority: int, spec: ToolSpec, *, now: int) -> Hold | None:
        """Let a call begin (None), or say why it can't; the run is woken when it may try again."""
        self._offers.get(run, {}).pop(spec.name, None)
        if spec.concurrency is not None and self._by_tool[spec.name] >= spec.concurrency:
            self._waiting.setdefault(spec.name, OrderedDict())[run] = None
            return Hold(f"{spec.concurrency} calls of {spec.name} are under way")
        if not self._has_turn(run):
            self._enqueue(run, priority)
            return Hold(f"all {self.calls_max} hands of handrail are full")
        if spec.rate is not None:
            self._buckets[spec.name], due = taken(pace_of(spec.rate), self._buckets.get(spec.name), now)
            if due is not None:
                return Hold(f"{spec.name} is called at most {spec.rate}", due)
        if self._turns[run]:
            self._turns[run] -= 1
        else:
            self._under_way += 1
        self._by_tool[spec.name] += 1
        return None

    def leave(self, spec: ToolSpec) -> None:
        """Note that a call has ended, and give its place to whoever is next."""
        self._by_tool[spec.name] -= 1
        self._offer(spec.name)
        self._under_way -= 1
        self._give_turn()

    def give_back(self, run: str) -> None:
        """Pass on a turn, or a free place of a tool, that the run had no use for."""
        for tool in self._offers.pop(run, {}):
            self._offer(tool)
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

    def _offer(self, tool: str) -> None:
        """Tell the next run that waits for a tool that there is a place."""
        waiting = self._waiting.get(tool)
        if waiting:
            run, _ = waiting.popitem(last=False)
            self._offers.setdefault(run, {})[tool] = None
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
