"""Stories: streams that tests write, one append after the other, with real hashes and the rows they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from msgspec.structs import replace

from handrail.domain.journal.chain import Head, Record, body_digest, chained
from handrail.domain.journal.event import PLAN_PREFIX
from handrail.domain.journal.projection import NO_CHANGE, Change, PlanRow, RunRow, StepRow

NOW = 1_790_000_000_000
SALT = b"0123456789abcdef"

Append = tuple[list[Record], Change]


@dataclass
class Story:
    """A run under way: `tell` gives the next append and moves on; what is told is not appended by itself."""

    run: str = "run_a"
    head: Head = Head("")
    status: str = "running"
    goal: str = "ship it"

    def __post_init__(self) -> None:
        self.head = Head(self.run) if not self.head.stream else self.head

    def tell(self, events: int = 1, *, body: bytes = b"{}", definitions: tuple[tuple[str, bytes], ...] = ()) -> Append:
        """The next events of the run, each about a step of its own, with the rows that follow from the last."""
        records = chain_behind(self.head, [body] * events)
        self.head = Head(self.run, records[-1].n, records[-1].hash)
        steps = tuple(step_row(record) for record in records)
        row = run_row(records[-1], status=self.status, goal=self.goal)
        return records, Change(run=row, steps=steps, definitions=definitions)


def chain_behind(head: Head, bodies: Sequence[bytes]) -> list[Record]:
    """Records with these bodies that follow the end of a stream."""
    records: list[Record] = []
    prev = head.hash
    for n, body in zip(count(head.n + 1), bodies, strict=False):
        step = f"step/{n % 5}"
        record = chained(prev, Record(head.stream, n, NOW + n, "step_completed", "engine", step, 1, 1, SALT, body, b""))
        prev = record.hash
        records.append(record)
    return records


def run_row(record: Record, *, status: str = "running", goal: str = "ship it") -> RunRow:
    return RunRow(
        id=record.stream,
        workflow="release@1.0.0",
        definition="d" * 64,
        mode="run",
        status=status,
        goal=goal,
        started=NOW,
        updated=record.at,
        ended=None if status == "running" else record.at,
        done=record.n,
        n=record.n,
        head=record.hash,
    )


def step_row(record: Record, *, message: str = "") -> StepRow:
    assert record.step is not None
    return StepRow(
        run=record.stream,
        path=record.step,
        status="completed",
        attempts=1,
        started=NOW,
        ended=record.at,
        due=None,
        actor=record.actor,
        proof="verified",
        compensation="",
        category="",
        message=message,
    )


def plan_append(plan: str, head: Head | None = None, *, retired: int | None = None) -> Append:
    """The next event of a plan, with its row."""
    (record,) = chain_behind(head or Head(PLAN_PREFIX + plan), [b'{"version":1}'])
    row = PlanRow(
        id=plan,
        version=record.n,
        definition="d" * 64,
        name=plan.title(),
        steps=3,
        saved=record.at,
        retired=retired,
        n=record.n,
        head=record.hash,
    )
    return [record], Change(plan=row)


def note_append(stream: str = "store", head: Head | None = None) -> Append:
    """An event of a stream that has no projection."""
    return chain_behind(head or Head(stream), [b'{"reason":"asked for"}']), NO_CHANGE


def without_words(record: Record, rest: bytes = b"{}") -> Record:
    """What is left of a record when its words are erased."""
    return replace(record, salt=b"", body=rest, erased=body_digest(record.salt, record.body))


def head_of(records: Sequence[Record]) -> Head:
    return Head(records[-1].stream, records[-1].n, records[-1].hash)
