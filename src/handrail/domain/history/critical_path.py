"""The critical path: the steps that decided how long a run took, from its first to its last.

Pure. A step could not start before what it waits for had ended; the one that ended last is the one before it on the
path. Time in which neither of them was at work is idle: nothing was free to start it, or the run was paused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from handrail.domain.definition.model import Definition, Each
from handrail.domain.history.spans import UNDOING, WORKING, Span
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import Located, is_in_undo, locate

STEPS_MAX: Final = 10_000


class PathStep(Struct, frozen=True, kw_only=True):
    """A step of the critical path, with its times in milliseconds."""

    step: str
    start: int
    end: int
    worked: int = 0
    waited: int = 0
    idle: int = 0
    """Between the end of the step before, or the start of the run, and its own start."""


def critical_path(run: Run, definition: Definition, spans: Sequence[Span], *, now: int) -> list[PathStep]:
    """The critical path of a run, without its undo; until now, if it goes on."""
    done = _Doing(definition, spans, now)
    if not done.ends:
        return []
    path: list[str] = []
    # Backwards from what ended last: each time to what it had to wait for longest.
    at: str | None = max(done.ends, key=lambda step: (done.ends[step], done.starts[step]))
    while at is not None and len(path) < STEPS_MAX:
        path.append(at)
        at = done.before(at)
    steps: list[PathStep] = []
    last = run.started
    for step in reversed(path):
        steps.append(done.timed(step, after=last))
        last = max(last, done.ends[step])
    return steps


class _Doing:
    """When each step that does something itself started and ended."""

    def __init__(self, definition: Definition, spans: Sequence[Span], now: int) -> None:
        self.definition = definition
        self.now = now
        self.starts: dict[str, int] = {}
        self.ends: dict[str, int] = {}
        self.spans: dict[str, list[Span]] = {}
        self.inside: dict[str, list[str]] = {}
        """By container, with its round: the steps in it."""
        for span in spans:
            if span.step and span.kind not in UNDOING and not is_in_undo(span.step):
                self._add(span)
        for step in self.starts:
            for around in _around(step):
                self.inside.setdefault(around, []).append(step)

    def _add(self, span: Span) -> None:
        end = self.now if span.end is None else span.end
        self.starts[span.step] = min(self.starts.get(span.step, span.start), span.start)
        self.ends[span.step] = max(self.ends.get(span.step, end), end)
        self.spans.setdefault(span.step, []).append(span)

    def timed(self, step: str, *, after: int) -> PathStep:
        """A step with its times."""
        start, end = self.starts[step], self.ends[step]
        spent = [(span.kind in WORKING, span.lasted(self.now)) for span in self.spans[step]]
        return PathStep(
            step=step,
            start=start,
            end=end,
            worked=sum(took for is_work, took in spent if is_work),
            waited=sum(took for is_work, took in spent if not is_work),
            idle=max(0, start - after),
        )

    def before(self, step: str) -> str | None:
        """The step that this one had to wait for, and that ended last."""
        start = self.starts[step]
        # A step that is retried later can end after one that depends on it started: then it is no reason.
        known = [one for one in self._needed(step) if one in self.ends and self.starts[one] <= start and one != step]
        return max(known, key=lambda one: self.ends[one], default=None)

    def _needed(self, path: str) -> Iterable[str]:
        """The steps without others inside that have to end before this one can start."""
        while path:
            found = locate(self.definition, path)
            names = [found.prefix + name for name in found.step.after]
            before = [one for name in names for one in (self.inside.get(name) or [name])]
            if before or (before := self._round_before(found)):
                return before
            path = found.parent
        return ()

    def _round_before(self, found: Located) -> list[str]:
        """The steps of the round before, in a loop whose rounds follow each other."""
        number = found.lane.loops[-1].round if found.prefix.endswith("].") else 0
        work = locate(self.definition, found.parent).step.work if number else None
        # In a parallel loop the rounds do not wait for each other, so the round before is no reason.
        is_parallel = isinstance(work, Each) and work.parallel > 1
        return [] if not number or is_parallel else self.inside.get(f"{found.parent}[{number - 1}]", [])


def _around(path: str) -> Iterable[str]:
    """Everything that a step is in, with and without the round: `a[1].b.c` is in `a[1].b`, `a[1]` and `a`."""
    parts = path.split(".")
    for depth in range(len(parts) - 1, 0, -1):
        around = ".".join(parts[:depth])
        yield around
        if around.endswith("]"):
            yield around[: around.rindex("[")]
