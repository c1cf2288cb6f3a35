"""Detects repeated calls: the same caller has just made the same change, and its answer was lost.

Reads the last events of a run; writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from handrail.assembly.opening import Assembly
from handrail.domain.journal.chain import Record
from handrail.domain.journal.codec import encode_body, kind_of
from handrail.domain.journal.event import DecisionRecorded, Event
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run

LOOKED_AT_MAX: Final = 100
"""How many of the last events of a run are searched: a repeat comes soon after the original."""
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
"""Events that `record_action` causes in a recorded run."""
OF_UNDO: Final = frozenset({"undo_failed", "compensation_started", "run_compensated", "run_compensation_failed"})
"""Events that `record_compensation` causes."""


async def was_granted(
    program: Assembly, run: str, action: Action, *, actor: str, reason: str | None, step: str
) -> bool:
    """Whether this action was the actor's last one in the run, with the same reason; with None, any reason counts."""
    for record in reversed(await _last_records(program, run)):
        if record.actor == actor and record.kind in KINDS.values():
            if record.kind != KINDS.get(action) or (step and record.step != step):
                return False
            return reason is None or msgspec.json.decode(record.body).get("reason") == _stored_reason(
                program, run, reason
            )
    return False


async def was_recorded(
    program: Assembly, run: Run, event: Event, *, actor: str, then: Collection[str] = (), is_last: bool = True
) -> Record | None:
    """The record of the same event, if it is the actor's last one; kinds in `then` are ignored, because the same call
    causes them. With `is_last=False` the record may be an earlier one."""
    kept = program.writer.dispatch.kept(run.id, event)
    wanted = (kind_of(kept), encode_body(kept))
    for record in reversed(await _last_records(program, run.id)):
        if record.actor != actor or record.kind in then:
            continue
        if (record.kind, record.body) == wanted:
            return record
        if is_last:
            return None
    return None


def _stored_reason(program: Assembly, run: str, reason: str) -> str:
    """A reason as the journal stores it: with secrets redacted."""
    event = DecisionRecorded(decision="", reason=reason.strip())
    return program.writer.dispatch.kept(run, event).reason


async def _last_records(program: Assembly, run: str) -> list[Record]:
    current = await program.writer.dispatch.current(run)
    return await program.writer.reader.store.read(run, after=max(0, current.n - LOOKED_AT_MAX))
