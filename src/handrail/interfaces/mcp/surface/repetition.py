"""Repetition: whether the same caller has said the very same thing just before, because its answer was lost.

Reads the end of a run's journal; writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from handrail.assembly import Working
from handrail.domain.chain import Record
from handrail.domain.codec import encode_body, kind_of
from handrail.domain.event import DecisionRecorded, Event
from handrail.domain.legal import Action
from handrail.domain.run import Run

LOOKED_AT_MAX: Final = 100
"""How many of a run's last events are looked at."""
KINDS: Final[Mapping[Action, str]] = {
    Action.PAUSE: "run_paused",
    Action.RESUME: "run_resumed",
    Action.RETRY: "step_retried",
    Action.SKIP: "step_skipped",
    Action.ACCEPT: "step_accepted",
    Action.COMPENSATE: "compensation_started",
    Action.APPROVE: "approval_given",
    Action.REJECT: "approval_rejected",
}
OF_ACTION: Final = frozenset(
    {"attempt_started", "step_completed", "step_failed", "step_skipped", "run_completed", "run_failed", "run_cancelled"}
)
"""What the report of an action brings about in a run that is only recorded."""
OF_UNDO: Final = frozenset({"undo_failed", "compensation_started", "run_compensated", "run_compensation_failed"})
"""What the report of an undo brings about."""


async def was_granted(at_work: Working, run: str, action: Action, *, actor: str, reason: str | None, step: str) -> bool:
    """Whether the caller's last word on a run was this very action; without a reason, whatever it was."""
    for record in reversed(await _last(at_work, run)):
        if record.actor == actor and record.kind in KINDS.values():
            if record.kind != KINDS.get(action) or (step and record.step != step):
                return False
            return reason is None or msgspec.json.decode(record.body).get("reason") == _kept(at_work, run, reason)
    return False


async def was_recorded(
    at_work: Working, run: Run, event: Event, *, actor: str, then: Collection[str] = (), is_last: bool = True
) -> Record | None:
    """The record by which the caller has said just this, if that was its last word in the run but for what the same
    call has brought about (`then`); or, if it need not be the last, wherever it was."""
    kept = at_work.handrail.dispatch.kept(run.id, event)
    said = (kind_of(kept), encode_body(kept))
    for record in reversed(await _last(at_work, run.id)):
        if record.actor != actor or record.kind in then:
            continue
        if (record.kind, record.body) == said:
            return record
        if is_last:
            return None
    return None


def _kept(at_work: Working, run: str, reason: str) -> str:
    """A reason as the journal keeps it."""
    said = DecisionRecorded(decision="", reason=reason.strip())
    return at_work.handrail.dispatch.kept(run, said).reason


async def _last(at_work: Working, run: str) -> list[Record]:
    current = await at_work.handrail.dispatch.current(run)
    return await at_work.handrail.look.store.read(run, after=max(0, current.n - LOOKED_AT_MAX))
