"""Approvals: what waits for an answer, whether this caller may give it, and the answer itself.

Whether an answer counts is decided in the engine (engine/running/answers.py) for every channel."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from handrail.domain.errors import Invalid, NotFound
from handrail.domain.journal.chain import Record
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import ApprovalRequested
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import StepStatus
from handrail.engine.reading.approvals import PendingApproval
from handrail.engine.reading.ledger import Query, event_view
from handrail.engine.reading.run_view import Detail
from handrail.engine.running.answers import AnswerGiven
from handrail.interfaces.http.api.call import ApiCall
from handrail.interfaces.http.api.run_listing import project_of
from handrail.interfaces.http.api.running import project_of_run
from handrail.interfaces.http.contract import asked
from handrail.interfaces.http.contract.given import approvals as given
from handrail.interfaces.http.contract.given.runs import Done
from handrail.interfaces.http.edge.cursors import page_of

ANSWER_KINDS: Final = frozenset({"approval_given", "approval_rejected", "approval_overridden", "approval_expired"})
ANSWERED_SHOWN: Final = 20
APPROVALS_MAX: Final = 1_000
"""In how many runs approvals are looked for."""
DONE_SHOWN: Final = 50
ASKED: Final = "approval_requested"
ASKED_BEFORE: Final = 200
"""How far before an answer its question is looked for."""


async def list_approvals(call: ApiCall) -> given.ApprovalPage:
    """What waits for an answer, and the latest answers."""
    query: asked.ApprovalsQuery = call.query
    program, caller = call.program, call.caller
    project = project_of(query.project, program)
    pending = await program.approvals.pending(
        actor=caller.actor,
        channel=caller.channel,
        limit=APPROVALS_MAX,
        project=project or "",
        all_projects=project is None,
    )
    page, cursor = page_of([await _as_its_own(call, one) for one in pending], query.limit, query.cursor)
    answered = await program.writer.reader.ledger.query(
        Query(kinds=ANSWER_KINDS, limit=ANSWERED_SHOWN, project=project)
    )
    return given.ApprovalPage(
        approvals=tuple([await _view(call, one) for one in page]),
        answered=tuple([await _answered(call, hit.record) for hit in answered.hits]),
        cursor=cursor,
    )


async def _as_its_own(call: ApiCall, one: PendingApproval) -> PendingApproval:
    """An approval as the project sees it that it belongs to, if that is open here: only there it can be answered."""
    parts = call.server.projects.of(one.project.id) if one.project is not None else None
    if parts is None or parts is call.program:
        return one
    try:
        seen = await parts.approvals.one(one.run, one.step, actor=call.caller.actor, channel=call.caller.channel)
    except NotFound:  # answered meanwhile: the next answer has it no more
        return one
    return replace(seen, project=one.project)


async def _answered(call: ApiCall, record: Record) -> given.AnsweredView:
    reader = call.program.run_reader
    before = await reader.store.read(record.stream, after=max(0, record.n - 1 - ASKED_BEFORE), limit=ASKED_BEFORE)
    asked_ = [one for one in before if one.kind == ASKED and one.step == record.step and one.n < record.n]
    event = entry_of(asked_[-1]).event if asked_ else None
    start = await reader.beginning(record.stream)
    text = event.text if isinstance(event, ApprovalRequested) else ""
    return given.AnsweredView(**event_view(record), text=text, name=start.name, label=start.label)


async def show_approval(call: ApiCall) -> given.ApprovalView:
    """What a person is asked at one step, with what is done already."""
    step, caller = str(call.path["step"]), call.caller
    pending = await call.program.approvals.one(call.run, step, actor=caller.actor, channel=caller.channel)
    seen = await call.program.run_reader.status(call.run, detail=Detail.FULL)
    done = [one for one in seen.steps if one.status is StepStatus.COMPLETED]
    project = project_of_run(call, await call.program.run_reader.run(call.run))
    return replace(await _view(call, pending), done=tuple(done[-DONE_SHOWN:]), project=project)


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


async def _view(call: ApiCall, pending: PendingApproval) -> given.ApprovalView:
    one = pending.asked
    start = await call.program.run_reader.beginning(pending.run)
    return given.ApprovalView(
        run=pending.run,
        step=pending.step,
        workflow=pending.workflow,
        name=start.name,
        label=start.label,
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
