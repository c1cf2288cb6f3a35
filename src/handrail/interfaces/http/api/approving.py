"""Approvals: what waits for an answer, whether this caller may give it, and the answer itself.

Whether an answer counts is decided in the engine (engine/running/answers.py) for every channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from handrail.domain.errors import HandrailError, Invalid, NotFound
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import RUN_SHOWN_ASKING, StepStatus
from handrail.engine.reading.ledger import Query, event_view
from handrail.engine.reading.run_view import Detail, RunSummary, Status, WaitingFor, WaitingKind
from handrail.engine.reading.step_view import StepView
from handrail.engine.running.answer_trial import AnswerTrial
from handrail.engine.running.answers import AnswerGiven
from handrail.interfaces.http.api.call import ApiCall
from handrail.interfaces.http.contract import asked
from handrail.interfaces.http.contract.given import approvals as approvals_given
from handrail.interfaces.http.contract.given import journal as journal_given
from handrail.interfaces.http.contract.given import runs as runs_given
from handrail.interfaces.http.edge.cursors import cursor_of, place_in

ANSWER_KINDS: Final = frozenset({"approval_given", "approval_rejected", "approval_overridden", "approval_expired"})
ANSWERED_SHOWN: Final = 20
DONE_SHOWN: Final = 50
ALL: Final = "*"


class Whether(Struct, frozen=True, kw_only=True):
    """Whether the caller may answer; if not, why, and what to do."""

    may_answer: bool
    why_not: str = ""
    hint: str = ""


async def whether_i_may(call: ApiCall, run_id: str, step: str) -> Whether:
    """Whether a yes of this caller would count now."""
    writer = call.program.writer
    way = AnswerGiven(channel=call.caller.channel)
    try:
        trial = AnswerTrial(writer.control.answers, writer.dispatch, await writer.dispatch.own(run_id))
        await trial.require_counts(Action.REJECT, step, actor=call.caller.actor, content=None, given=way)
    except HandrailError as error:
        return Whether(may_answer=False, why_not=str(error), hint=error.hint)
    return Whether(may_answer=True)


async def list_approvals(call: ApiCall) -> approvals_given.ApprovalPage:
    """What waits for an answer, and the latest answers."""
    query: asked.ApprovalsQuery = call.query
    reader = call.program.run_reader
    place = place_in(query.cursor, str)
    rows = await reader.runs(
        status=RUN_SHOWN_ASKING,
        after=str(place[0]) if place else "",
        limit=query.limit,
        all_projects=query.project == ALL,
    )
    waiting = [(row, one) for row in rows for one in row.waiting_for if one.kind is WaitingKind.APPROVAL]
    ledger = call.program.writer.reader.ledger
    project = None if query.project == ALL else query.project or reader.project
    answered = await ledger.query(Query(kinds=ANSWER_KINDS, limit=ANSWERED_SHOWN, project=project))
    return approvals_given.ApprovalPage(
        approvals=tuple([await _view(call, row, one) for row, one in waiting]),
        answered=tuple(journal_given.EventView(**event_view(hit.record)) for hit in answered.hits),
        cursor=cursor_of(rows[-1].run) if len(rows) == query.limit else "",
    )


async def show_approval(call: ApiCall) -> approvals_given.ApprovalView:
    """What a person is asked at one step, with what is done already."""
    seen = await call.program.run_reader.status(call.run, detail=Detail.FULL)
    one = _asked(seen, str(call.path["step"]))
    done = [step for step in seen.steps if step.status is StepStatus.COMPLETED]
    return await _view(call, seen, one, done[-DONE_SHOWN:])


async def answer_approval(call: ApiCall) -> runs_given.Done:
    """Record the answer of the person who calls."""
    answer: asked.AnswerBody = call.body
    step = str(call.path["step"])
    if answer.answer == "approve" and not answer.digest:
        raise Invalid("an approval needs the digest of what was shown", hint="send the `digest` of the approval")
    way = AnswerGiven(channel=call.caller.channel, digest=answer.digest, proof=answer.passphrase)
    run = await call.program.control.act(
        call.run,
        Action(answer.answer),
        actor=call.caller.actor,
        reason=answer.reason,
        step=step,
        output=answer.output,
        given=way,
    )
    seen = await call.program.run_reader.status(run.id)
    return runs_given.Done(run=run.id, status=seen.status, receipt=run.receipt, view=seen)


def _asked(seen: Status, step: str) -> WaitingFor:
    found = next((one for one in seen.waiting_for if one.kind is WaitingKind.APPROVAL and one.step == step), None)
    if found is None:
        raise NotFound(f"step {step!r} of {seen.run} asks for no approval now", hint=f"see what {seen.run} waits for")
    return found


async def _view(
    call: ApiCall, row: RunSummary | Status, one: WaitingFor, done: Sequence[StepView] = ()
) -> approvals_given.ApprovalView:
    may = await whether_i_may(call, row.run, one.step)
    return approvals_given.ApprovalView(
        run=row.run,
        step=one.step,
        workflow=row.workflow,
        text=one.text,
        digest=one.digest,
        goal=row.goal,
        since=one.since,
        expires=one.expires,
        by=one.by,
        approvals=one.approvals,
        approved_by=one.approved_by,
        not_by=one.not_by,
        schema=one.schema,
        effects=one.effects,
        unshown=one.unshown,
        done=tuple(done),
        may_answer=may.may_answer,
        why_not=may.why_not,
        hint=may.hint,
        needs_passphrase=call.program.writer.control.answers.rules.passphrase,
        project=row.project,
    )
