"""The tracer, as the engine uses it: it gets what happened to runs, and gives the context of a tool call.

The protocol is small on purpose, and names nothing of OpenTelemetry. Without a collector `NO_TRACING` takes its place:
it passes on what a run's caller sent, and otherwise does nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Protocol

from handrail.domain.definition.model import Definition
from handrail.domain.journal.event import Entry
from handrail.domain.run.state import Run
from handrail.domain.tracing.trace_context import carried, trace_id_in
from handrail.engine.tracing.received import NOTHING


class CallAbout(NamedTuple):
    """What is called, and which attempt of which step calls it."""

    tool: str
    path: str
    attempt: int
    is_undo: bool
    key: str


class CallTrace(Protocol):
    """The span of one call of a tool: entered when the call starts, left when it has ended."""

    @property
    def context(self) -> Mapping[str, str]:
        """What is passed on to the tool's server."""
        ...

    def note(self, error: str) -> None:
        """How it failed, in one word; empty if it did not."""
        ...

    def __enter__(self) -> CallTrace: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Tracer(Protocol):
    """Tells a collector what happens to runs; it must neither wait nor fail."""

    def trace_id(self, run: Run) -> str:
        """The trace that a run is in; empty if it is in none."""
        ...

    def appended(self, before: Run, entries: Sequence[Entry], definition: Definition) -> None:
        """These events follow that state of a run, and are synced."""
        ...

    def calling(self, run: Run, about: CallAbout) -> CallTrace:
        """A tool is about to be called."""
        ...


class PassedOn:
    """The trace of a call without a collector: what the run's caller sent is passed on as it is."""

    def __init__(self, context: Mapping[str, str]) -> None:
        self.context = context

    def note(self, error: str) -> None:
        """Nothing."""

    def __enter__(self) -> CallTrace:
        return self

    def __exit__(self, *_: object) -> None:
        return None


NOT_TRACED: Final = PassedOn(NOTHING)


class NoTracing:
    """Sends nothing."""

    def trace_id(self, run: Run) -> str:
        """The caller's."""
        return trace_id_in(run.trace)

    def appended(self, before: Run, entries: Sequence[Entry], definition: Definition) -> None:
        """Nothing."""

    def calling(self, run: Run, about: CallAbout) -> CallTrace:
        """The run's own context."""
        return PassedOn(carried(run.trace)) if run.trace else NOT_TRACED


NO_TRACING: Final[Tracer] = NoTracing()
