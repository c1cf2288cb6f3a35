"""Appends before they are sent: each is checked against the end and the lease of its stream as far as they are known,
then all become one call of handrail.append.

The database compares everything again: what is remembered here may be old. Pure but for what it remembers; writer.py
sends the call, and asks about streams that are not known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, fields

from handrail.domain.errors import HandrailError, Invalid
from handrail.domain.journal.archived import archived_refusal
from handrail.domain.journal.chain import GENESIS, Head, Record, first_break
from handrail.domain.journal.event import Mode
from handrail.domain.journal.projection import Change, PlanRow, RunRow, StepRow
from handrail.domain.run.status import RUN_WORKING
from handrail.engine.running.lease import Lease
from handrail.storage.admission import is_held, lease_lost, refusal, steps_without_run
from handrail.storage.postgres.texts import stored, stored_or_none
from handrail.storage.stream_cache import StreamCache

AS_IT_IS, NOW, NEVER = 0, 1, 2
"""What an append says about when its run needs a worker."""

EVENT_TEXTS: Final = tuple(name in {"stream", "kind", "actor", "step"} for name in Record.__struct_fields__)
RUN_TEXTS: Final = tuple(field.type is str for field in fields(RunRow))
STEP_TEXTS: Final = tuple(field.type is str for field in fields(StepRow))
SWAP_TEXTS: Final = tuple(place in {0, 4, 8, 11} for place in range(12))
"""Which columns are texts."""

_encode: Final = msgspec.json.Encoder().encode


class LaneAppend(Struct, frozen=True):
    """Records to append, their change, the future of the waiting caller, and the lease."""

    records: Sequence[Record]
    change: Change
    future: asyncio.Future[None] | None = None
    lease: Lease | None = None

    @property
    def stream(self) -> str:
        """The stream that it goes on with."""
        return self.records[0].stream


class StreamEnd(Struct, frozen=True):
    """A stream as it was seen last: its end, its lease, and whether it is a run with a row."""

    n: int = 0
    hash: bytes = GENESIS
    owner: str = ""
    epoch: int = 0
    has_run: bool = False


class Batch:
    """What of some appends is sent together, and how each was judged."""

    def __init__(self) -> None:
        self.answers: list[HandrailError | None] = []
        self.admitted: list[LaneAppend] = []
        self.before: dict[str, StreamEnd] = {}
        self.after: dict[str, StreamEnd] = {}
        self.checks: set[str] = set()

    def judge(self, append: LaneAppend, known: StreamEnd) -> None:
        """Admit or refuse the next append, over what is known and what was admitted before it."""
        stream = append.stream
        state = self.after.get(stream, known)
        refused = _refusal(append, state)
        self.answers.append(refused)
        if refused is not None:
            return
        owner, epoch = _lease_after(append, state)
        # Only what the append relies on or changes is compared: a control needs no lease, and must not wait for one.
        if append.lease is not None or (owner, epoch) != (state.owner, state.epoch):
            self.checks.add(stream)
        last = append.records[-1]
        has_run = state.has_run or append.change.run is not None
        self.before.setdefault(stream, known)
        self.after[stream] = StreamEnd(last.n, last.hash, owner, epoch, has_run)
        self.admitted.append(append)

    def arguments(self, definitions: set[str]) -> list[Any]:
        """The arguments of handrail.append; `definitions` are stored already."""
        runs, records = self._runs(), [record for append in self.admitted for record in append.records]
        plans = [append.change.plan for append in self.admitted if append.change.plan is not None]
        return [
            *self._swaps(runs),
            *columns_of([astuple(record) for record in records], EVENT_TEXTS),
            *columns_of([astuple(run) for run in runs.values()], RUN_TEXTS),
            *columns_of([astuple(step) for step in self._steps().values()], STEP_TEXTS),
            plans_text(plans),
            *self._definitions(definitions),
        ]

    def _swaps(self, runs: Mapping[str, RunRow]) -> list[Sequence[Any]]:
        """What the ends of streams are, which leases count, and what the ends will be."""
        swaps = []
        for stream in sorted(self.before):
            before, after, run = self.before[stream], self.after[stream], runs.get(stream)
            old = (before.n, before.hash, stream in self.checks, before.owner, before.epoch)
            new = (after.n, after.hash, after.owner, after.epoch)
            swaps.append((stream, *old, *new, _wake(run), None if run is None else run.project))
        return columns_of(swaps, SWAP_TEXTS)

    def _runs(self) -> dict[str, RunRow]:
        """The last row of each run."""
        return {append.stream: append.change.run for append in self.admitted if append.change.run is not None}

    def _steps(self) -> dict[tuple[str, str], StepRow]:
        return {(step.run, step.path): step for append in self.admitted for step in append.change.steps}

    def _definitions(self, known: set[str]) -> tuple[list[str], list[bytes]]:
        new: dict[str, bytes] = {}
        for append in self.admitted:
            for content_hash, text in append.change.definitions:
                if content_hash not in known:
                    new.setdefault(content_hash, text)
        return [stored(one) for one in new], list(new.values())


Streams: TypeAlias = StreamCache[StreamEnd]
"""What is remembered of streams, so that most appends need no question."""


def columns_of(rows: Sequence[tuple[Any, ...]], texts: Sequence[bool]) -> list[Sequence[Any]]:
    """Rows as columns; `texts` says which of them are texts."""
    if not rows:
        return [[] for _ in texts]
    columns = zip(*rows, strict=True)
    return [
        list(map(stored_or_none, column)) if is_text else column for column, is_text in zip(columns, texts, strict=True)
    ]


def run_columns(row: RunRow) -> list[Sequence[Any]]:
    """The row of a run as columns."""
    return columns_of([astuple(row)], RUN_TEXTS)


def step_columns(rows: Iterable[StepRow]) -> list[Sequence[Any]]:
    """Rows of steps as columns."""
    return columns_of([astuple(row) for row in rows], STEP_TEXTS)


def plans_text(rows: Sequence[PlanRow]) -> str | None:
    """Rows of plans as JSON, the last of each; None if there are none."""
    last = {(row.project, row.id): row for row in rows}
    if not last:
        return None
    names = PlanRow.__struct_fields__
    return _encode([dict(zip(names, map(_plain, astuple(row)), strict=True)) for row in last.values()]).decode()


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    return stored(value) if isinstance(value, str) else value


def _wake(run: RunRow | None) -> int:
    if run is None:
        return AS_IT_IS
    return NOW if run.status in RUN_WORKING and run.mode == Mode.RUN.value else NEVER


def _refusal(append: LaneAppend, state: StreamEnd) -> HandrailError | None:
    lease, change = append.lease, append.change
    if state.n and not state.hash:  # the head of an archived run has no hash
        return archived_refusal(append.stream)
    is_first = append.records[0].n == 1
    if lease is not None and not is_held(lease, owner=state.owner, epoch=state.epoch, is_first=is_first):
        return lease_lost(lease)
    if broken := _not_following(append, Head(append.stream, state.n, state.hash)):
        return broken
    return steps_without_run(append.stream) if change.steps and change.run is None and not state.has_run else None


def _not_following(append: LaneAppend, end: Head) -> HandrailError | None:
    try:
        for record in append.records:
            _require_whole(record)
        _, broken = first_break(end, append.records)
    except (TypeError, ValueError, OverflowError) as error:  # fields with types that can't be stored
        return Invalid(f"an append to {append.stream!r} can't be stored: {error}")
    return refusal(end, broken) if broken is not None else None


def _require_whole(record: Record) -> None:
    """Refuse numbers that the driver would round: the stored event would not be the one that was hashed."""
    at, attempt = type(record.at), type(record.attempt)
    if type(record.n) is not int or at is not int or type(record.format) is not int:
        raise TypeError("a number is not whole")
    if attempt is not int and record.attempt is not None:
        raise TypeError("a number is not whole")


def _lease_after(append: LaneAppend, state: StreamEnd) -> tuple[str, int]:
    """The owner and the epoch of a stream after an append."""
    run, lease = append.change.run, append.lease
    if run is not None and run.ended is not None:
        return "", 0
    if lease is not None and not state.epoch:
        return lease.owner, lease.epoch
    return state.owner, state.epoch
