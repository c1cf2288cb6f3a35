"""Approvals: what waits for an answer, whether this caller may give it, and the answer itself.

Whether an answer counts is decided in the engine (engine/running/answers.py) for every channel."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from handrail.domain.errors import Invalid
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import StepStatus
from handrail.engine.reading.approvals import PendingApproval
from handrail.engine.reading.ledger import Query, event_view
from handrail.engine.reading.run_view import Detail
from handrail.engine.running.answers import AnswerGiven
from handrail.interfaces.http.api.call import ApiCall
from handrail.interfaces.http.contract import asked
from handrail.interfaces.http.contract.given import approvals as given
from handrail.interfaces.http.contract.given.journal import EventView
from handrail.interfaces.http.contract.given.runs import Done
from handrail.interfaces.http.edge.cursors import cursor_of, number_in

ANSWER_KINDS: Final = frozenset({"approval_given", "approval_rejected", "approval_overridden", "approval_expired"})
ANSWERED_SHOWN: Final = 20
APPROVALS_MAX: Final = 1_000
"""In how many runs approvals are looked for."""
DONE_SHOWN: Final = 50
ALL: Final = "*"


async def list_approvals(call: ApiCall) -> given.ApprovalPage:
    """What waits for an answer, and the latest answers."""
    query: asked.ApprovalsQuery = call.query
    program, caller = call.program, call.caller
    is_all = query.project == ALL
    pending = await program.approvals.pending(
        actor=caller.actor, channel=caller.channel, limit=APPROVALS_MAX, all_projects=is_all
    )
    start = number_in(query.cursor) or 0
    end = start + query.limit
    project = None if is_all else program.run_reader.project
    answered = await program.writer.reader.ledger.query(
        Query(kinds=ANSWER_KINDS, limit=ANSWERED_SHOWN, project=project)
    )
    return given.ApprovalPage(
        approvals=tuple(map(_view, pending[start:end])),
        answered=tuple(EventView(**event_view(hit.record)) for hit in answered.hits),
        cursor=cursor_of(end) if end < len(pending) else "",
    )


async def show_approval(call: ApiCall) -> given.ApprovalView:
    """What a person is asked at one step, with what is done already."""
    step, caller = str(call.path["step"]), call.caller
    pending = await call.program.approvals.one(call.run, step, actor=caller.actor, channel=caller.channel)
    seen = await call.program.run_reader.status(call.run, detail=Detail.FULL)
    done = [one for one in seen.steps if one.status is StepStatus.COMPLETED]
    return replace(_view(pending), done=tuple(done[-DONE_SHOWN:]))


async def answer_approval(call: ApiCall) -> Done:
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
    return Done(run=run.id, status=seen.status, receipt=run.receipt, view=seen)


def _view(pending: PendingApproval) -> given.ApprovalView:
    one = pending.asked
    return given.ApprovalView(
        run=pending.run,
        step=pending.step,
        workflow=pending.workflow,
        text=one.text,
        digest=one.digest,
        goal=pending.goal,
        since=one.since,
        expires=one.expires,
        by=one.by,
        approvals=one.approvals,
        approved_by=one.approved_by,
        not_by=one.not_by,
        schema=one.schema,
        effects=one.effects,
        unshown=one.unshown,
        ahead=pending.ahead,
        ahead_unshown=pending.ahead_unshown,
        effects_done=pending.done,
        answers=pending.answers,
        may_answer=pending.may_answer,
        why_not=pending.why_not,
        hint=pending.who_may,
        needs_passphrase=pending.passphrase,
        project=pending.project,
    )
