"""Runs as tasks: a call that continues after its answer is a run, and the task's id is the run's id.

Independent of the protocol (shell_tasks.py). Clients that support tasks use this instead of calling `status`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from handrail.assembly.opening import Assembly, carrying_key
from handrail.domain.errors import Conflict, Forbidden, NotFound
from handrail.domain.instant import instant_text
from handrail.domain.plural import counted_steps
from handrail.domain.policy.actor import name_of
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import RUN_IN_PROGRESS, RunStatus
from handrail.engine.reading.run_view import Status, WaitingFor, WaitingKind
from handrail.engine.running.answers import AnswerGiven
from handrail.interfaces.mcp.surface.answering import reply, status_data, status_words
from handrail.interfaces.mcp.surface.approval import approval_answer, approval_question, question_seal
from handrail.interfaces.mcp.surface.caller import (
    Caller,
    Response,
    TaskStatus,
    TaskView,
    UserAnswer,
    UserQuestion,
    unknown,
)
from handrail.interfaces.mcp.surface.clean_answers import clean_task
from handrail.interfaces.mcp.surface.lazy_program import LazyProgram
from handrail.interfaces.mcp.surface.views.console_link import with_console
from handrail.settings import local_person

POLL_MS: Final = 1_000
SEAL_MARK: Final = "#"


async def task_of(lazy: LazyProgram, run_id: str, caller: Caller) -> TaskView:
    """A run as a task; its questions are only for a client that can ask its user."""
    program = await lazy.open()
    run = await program.writer.dispatch.current(run_id)
    seen = await program.run_reader.status(run_id)
    questions = await _questions(program, seen) if caller.can_ask else {}
    status = _status(seen, has_questions=bool(questions))
    is_complete, done = status is TaskStatus.COMPLETED, seen.progress
    data = status_data(seen)
    answer = with_console(reply(data, status_words(data)), await lazy.console.of(run_id)) if is_complete else None
    return TaskView(
        id=run_id,
        status=status,
        created=instant_text(run.started),
        updated=instant_text(run.updated),
        poll_ms=POLL_MS,
        message=f"{seen.status.value}, {counted_steps(done.done, done.total, done.skipped)}",
        reply=answer,
        questions=questions,
    )


def _status(seen: Status, *, has_questions: bool) -> TaskStatus:
    if seen.status is RunStatus.CANCELLED:
        return TaskStatus.CANCELLED
    if has_questions:
        return TaskStatus.INPUT_REQUIRED
    # A run that waits for a decision or an agent needs the caller, so the task ends with the status and its options.
    return TaskStatus.WORKING if seen.status in RUN_IN_PROGRESS else TaskStatus.COMPLETED


async def _questions(program: Assembly, seen: Status) -> Mapping[str, UserQuestion]:
    """The questions, by a key that is bound to what each shows: an answer under another key does not count."""
    if seen.status is not RunStatus.WAITING or any(one.kind is not WaitingKind.APPROVAL for one in seen.waiting_for):
        return {}
    found = {key: await _question(program, seen.run, one.step) for key, one in _sealed(program, seen).items()}
    return {key: question for key, question in found.items() if question is not None}


async def _question(program: Assembly, run_id: str, step: str) -> UserQuestion | None:
    try:
        return approval_question(await program.approvals.one(run_id, step, actor=local_person()))
    except NotFound:  # answered meanwhile
        return None


def _sealed(program: Assembly, seen: Status) -> dict[str, WaitingFor]:
    """What is asked now, each by its key: the step, and our seal of the whole question."""
    seal = carrying_key(program.writer.reader.settings)
    asked = [one for one in seen.waiting_for if one.kind is WaitingKind.APPROVAL]
    return {f"{one.step}{SEAL_MARK}{question_seal(seal, seen.run, one)}": one for one in asked}


@dataclass(frozen=True)
class RunTasks:
    """The tasks, read from the journal."""

    lazy: LazyProgram

    async def get(self, task: str, caller: Caller) -> TaskView:
        """The status of a run of this project, as a task."""
        program = await self.lazy.open()
        try:
            await program.writer.dispatch.own(task)  # a task may ask the user: not for another project
            return clean_task(await task_of(self.lazy, task, caller), self.lazy.secrets().scrubber())
        except NotFound:
            unknown("task", task)

    async def answer(self, task: str, answers: Mapping[str, UserAnswer], caller: Caller) -> None:
        """Record the user's answers to approvals of a run: each to exactly what its key was given out for.

        An answer to a question that is no longer open changes nothing; one to another question is a conflict."""
        program = await self.lazy.open()
        await self.get(task, caller)
        if answers and not caller.can_ask:
            raise Forbidden("this client can't ask its user", hint=f"have the user run `handrail approve {task}`")
        for key, answer in answers.items():
            asked = _sealed(program, await program.run_reader.status(task))
            if key in asked:
                await self._answer(program, task, asked[key], answer, caller)
            elif any(one.step == key.partition(SEAL_MARK)[0] for one in asked.values()):
                raise Conflict(
                    f"{key.partition(SEAL_MARK)[0]!r} asks for something else than was answered: nothing was recorded",
                    hint="get the task again, and ask the user what it asks now",
                )

    async def _answer(self, program: Assembly, task: str, one: WaitingFor, answer: UserAnswer, caller: Caller) -> None:
        if answer.response is Response.CANCEL:
            return
        action, reason = approval_answer(answer, otherwise="asked through the client")
        given = AnswerGiven(channel=f"task:{name_of(caller.actor)}", digest=one.digest)
        await program.control.act(task, action, actor=local_person(), reason=reason, step=one.step, given=given)

    async def cancel(self, task: str, caller: Caller) -> None:
        """Cancel a run; a run that has ended stays as it is."""
        program = await self.lazy.open()
        seen = await self.get(task, caller)
        if seen.status not in {TaskStatus.WORKING, TaskStatus.INPUT_REQUIRED}:
            return
        await program.control.act(task, Action.CANCEL, actor=caller.actor, reason="the client cancelled the task")
