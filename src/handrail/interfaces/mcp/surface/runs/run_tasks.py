"""Runs as tasks: a call that continues after its answer is a run, and the task's id is the run's id.

Independent of the protocol (shell_tasks.py). Clients that support tasks use this instead of calling `status`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from handrail.assembly import Assembly
from handrail.domain.errors import HandrailError, NotFound
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import RUN_IN_PROGRESS, RunStatus
from handrail.engine.clock import instant_text
from handrail.engine.reading.run_view import Status, WaitingKind
from handrail.interfaces.mcp.surface.answering import reply, status_data, status_words
from handrail.interfaces.mcp.surface.approval import approval_answer, approval_question, person_here
from handrail.interfaces.mcp.surface.caller import (
    Caller,
    Response,
    TaskStatus,
    TaskView,
    UserAnswer,
    UserQuestion,
    unknown,
)
from handrail.interfaces.mcp.surface.lazy_program import LazyProgram

POLL_MS: Final = 1_000


async def task_of(program: Assembly, run_id: str) -> TaskView:
    """A run as a task."""
    run = await program.writer.dispatch.current(run_id)
    seen = await program.run_reader.status(run_id)
    questions = _questions(seen)
    status = _status(seen, has_questions=bool(questions))
    is_complete = status is TaskStatus.COMPLETED
    data = status_data(seen)
    return TaskView(
        id=run_id,
        status=status,
        created=instant_text(run.started),
        updated=instant_text(run.updated),
        poll_ms=POLL_MS,
        message=f"{seen.status.value}, {seen.progress.done} of {seen.progress.total} steps",
        reply=reply(data, status_words(data)) if is_complete else None,
        questions=questions,
    )


def _status(seen: Status, *, has_questions: bool) -> TaskStatus:
    if seen.status is RunStatus.CANCELLED:
        return TaskStatus.CANCELLED
    if has_questions:
        return TaskStatus.INPUT_REQUIRED
    # A run that waits for a decision or an agent needs the caller, so the task ends with the status and its options.
    return TaskStatus.WORKING if seen.status in RUN_IN_PROGRESS else TaskStatus.COMPLETED


def _questions(seen: Status) -> Mapping[str, UserQuestion]:
    if seen.status is not RunStatus.WAITING or any(one.kind is not WaitingKind.APPROVAL for one in seen.waiting_for):
        return {}
    return {one.step: approval_question(seen.run, one.step, one.text) for one in seen.waiting_for}


@dataclass(frozen=True)
class RunTasks:
    """The tasks, read from the journal."""

    lazy: LazyProgram

    async def get(self, task: str, caller: Caller) -> TaskView:
        """The status of a run, as a task."""
        program = await self.lazy.open()
        try:
            return await task_of(program, task)
        except NotFound:
            unknown("task", task)

    async def answer(self, task: str, answers: Mapping[str, UserAnswer], caller: Caller) -> None:
        """Record the user's answers to approvals of a run; an answer that comes too late changes nothing."""
        program = await self.lazy.open()
        await self.get(task, caller)
        for step, answer in answers.items():
            if answer.response is Response.CANCEL:
                continue
            action, reason = approval_answer(answer, otherwise="asked through the client")
            try:
                await program.control.act(task, action, actor=person_here(), reason=reason, step=step)
            except HandrailError:
                await self.get(task, caller)  # already answered: the next read shows the result

    async def cancel(self, task: str, caller: Caller) -> None:
        """Cancel a run; a run that has ended stays as it is."""
        program = await self.lazy.open()
        seen = await self.get(task, caller)
        if seen.status not in {TaskStatus.WORKING, TaskStatus.INPUT_REQUIRED}:
            return
        await program.control.act(task, Action.CANCEL, actor=caller.actor, reason="the client cancelled the task")
