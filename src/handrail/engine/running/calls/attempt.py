"""One attempt of a step, or of its undo, from its first event to its last.

Async. For a step with an effect, the start is synced before the tool is called; a step without one may write its start
and its end in one commit. Writing the outcome is retried until the journal has it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from handrail.domain.checks.finding import finding_data
from handrail.domain.checks.judgement import Judgement
from handrail.domain.checks.rule import evidence_data
from handrail.domain.definition.duration import duration_ms
from handrail.domain.definition.model import Category, Effect, Step
from handrail.domain.definition.model import Tool as Work
from handrail.domain.definition.tool_pin import Card, difference, digests_of
from handrail.domain.errors import Conflict, HandrailError, LeaseLost, Limited, NotFound, Unavailable
from handrail.domain.journal.event import About, How
from handrail.domain.json import digest
from handrail.domain.run.command import (
    AskPerson,
    Command,
    CompensateStep,
    CompleteStep,
    DeferStep,
    FailAttempt,
    FailUndo,
    NoteLateAnswer,
    RefuseResult,
    StartAttempt,
    StartUndo,
)
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_ANSWERED, StepStatus
from handrail.domain.run.step_path import Lane, locate
from handrail.domain.run.step_state import StepState
from handrail.domain.run.tool_question import ToolQuestion
from handrail.domain.scheduling.retry import due_of, policy_of
from handrail.domain.scheduling.step_start import CallTool, InputCheck
from handrail.engine.dispatch import Dispatch
from handrail.engine.measuring.measures import NO_MEASURES, Measures
from handrail.engine.passed_in import Clock, Entropy
from handrail.engine.running.calls.breakers import Breakers
from handrail.engine.running.calls.throttle import Throttle
from handrail.engine.running.calls.tool_answer import MESSAGE_LENGTH_MAX, ToolAnswer, answer_of, instant_answer
from handrail.engine.running.lease import Lease
from handrail.engine.tool import NO_ANSWERS, OWN, PlanTool, Progress, Toolbox, ToolCall, ToolFailed, silent
from handrail.engine.tracing.tracer import CallAbout, CallTrace

TIMEOUT_MS_DEFAULT: Final = 60_000
QUIET_S: Final = 0.05
"""How long a call without effect may take before its start is journaled, so that readers see it."""
DEFER_MS_MAX: Final = 366 * 86_400_000
"""A tool can defer its next call by up to a year."""
TROUBLE_S_FIRST: Final = 0.1
TROUBLE_S_MAX: Final = 5.0
QUESTIONS_MAX: Final = 20
"""How many questions a step's tool can ask."""

SchemaCheck: TypeAlias = Callable[[Any, Any], Sequence[str]]
"""Validates a value against a JSON Schema: the errors, as messages."""

ResultJudge: TypeAlias = Callable[[Work, Any, Run, Lane], Awaitable[Judgement]]
"""Applies a step's checks to its tool's result."""


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AttemptServices:
    """What all attempts of a worker share."""

    dispatch: Dispatch
    toolbox: Toolbox
    throttle: Throttle
    breakers: Breakers
    clock: Clock
    entropy: Entropy
    actor: str
    check: InputCheck
    fits: SchemaCheck
    judge: ResultJudge | None = None
    """Applies the checks of a step to its tool's result."""
    labels: frozenset[str] = frozenset()
    """What this node has."""
    is_shared: bool = False
    """Whether other machines work on the same store."""
    measures: Measures = NO_MEASURES


def key_of(run: str, path: str, *, is_undo: bool = False) -> str:
    """The idempotency key of a step, or of its undo: the same for all attempts and after restarts."""
    return f"{run}:{path}:undo" if is_undo else f"{run}:{path}"


@dataclass(frozen=True)
class Attempt:
    """One attempt of a tool step."""

    parts: AttemptServices
    run: Run
    lease: Lease
    step: Step
    todo: CallTool
    tool: PlanTool
    is_undo: bool = False
    progress: Progress = silent

    @property
    def path(self) -> str:
        """The step's path."""
        return self.todo.path

    @property
    def _called(self) -> PlanTool:
        """The tool that is actually called: a server's undo is another tool of that server."""
        undo = self.tool.spec.undo
        if not self.todo.own_undo or undo in {"", OWN}:
            return self.tool
        try:
            return self.parts.toolbox.find(undo)
        except NotFound:
            return self.tool  # its own undo() reports the missing tool

    @property
    def effect(self) -> Effect:
        """The effect of the step: its own declaration wins over the tool's."""
        return self.step.effect if self.step.effect is not None else self.tool.effect(self.todo.args)

    @property
    def server(self) -> str:
        """Which server it reaches."""
        return self.tool.server(self.todo.args)

    async def instantly(self) -> list[Command]:
        """Run a step without effect whose tool never waits: the commands that result, not journaled yet."""
        if wrong := self.tool.misfits(self.todo.args):
            # Nothing was called, so this is not an error of the tool: the arguments will not get better by a retry.
            return self._misfit(wrong)
        start = StartAttempt(step=self.path, effect=Effect.NONE)
        return [start, self._outcome(self._checked(await self._instant_answer()))]

    async def make(self) -> None:
        """Make the attempt and journal the result."""
        try:
            await self.tool.ready()
        except ToolFailed as failure:
            await self._not_started(_failed(failure))
            return
        if changed := self._changed():
            await self._stopped(changed)
        elif self.is_undo:
            await self._undo()
        elif wrong := self.tool.misfits(self.todo.args):
            await self._grant(*self._misfit(wrong))
        else:
            await self._do()

    async def _not_started(self, answer: ToolAnswer) -> None:
        """Journal an attempt that could not start: nothing was called, so the effect of earlier attempts is kept."""
        state = self.run.step(self.path)
        # An earlier attempt may have changed something: forgetting its effect here would leave that out of the undo.
        before = state.effect if state.attempts and state.effect is not None else Effect.NONE
        start = StartAttempt(step=self.path, effect=before, idempotent=state.repeatable and before is not Effect.NONE)
        await self._finish(answer, StartUndo(step=self.path, idempotent=True) if self.is_undo else start)

    def _changed(self) -> Card | None:
        """The tool's current description, if it differs from what the run is pinned to and was not approved."""
        card = self._called.card
        if card is None:
            return None
        pin, known = self.run.pins.get(self._called.spec.name, ""), digests_of(card)
        answers = self.run.step(self.path).answers or {}
        # The answer is bound to the digest of what was shown: a tool that changes after that asks again.
        is_agreed = any((reply := answers.get(one)) is not None and reply.agreed for one in known)
        return card if pin and pin not in known and not is_agreed else None

    async def _stopped(self, card: Card) -> None:
        """Stop before calling a tool that has changed, and ask; an undo fails instead, and runs when it is retried."""
        name = self._called.spec.name
        pinned = await self.parts.dispatch.text(self.run.pins[name])
        before = msgspec.json.decode(pinned) if pinned is not None else None
        text = f"{name} has changed since the run was pinned to it:\n{difference(before, card)}"
        text = text[:MESSAGE_LENGTH_MAX]
        state = self.run.step(self.path)
        if not self.is_undo:
            question = f"{text}\nMay it be called as it is now?"
            await self._grant(AskPerson(step=self.path, digest=digest(card), text=question, about=About.TOOL))
        elif state.broke and state.message == text:
            await self._undo()  # someone retried after this message: the change is accepted
        else:
            await self._not_started(ToolAnswer(category=Category.CONFLICT, message=text))

    async def _do(self) -> None:
        effect = self.effect
        call = self._call()
        start = StartAttempt(step=self.path, effect=effect, idempotent=self._is_idempotent(effect))
        if effect is Effect.NONE:
            await self._do_quietly(start, call)
            return
        if call.capture is None:
            try:
                # Before the start is journaled, and only for the first attempt: after a crash in between, a second look
                # would take our own change for the state to go back to.
                call, start = await self._captured(call, start)
            except ToolFailed as failure:
                await self._not_started(_failed(failure))
                return
        await self._grant(start)
        # From here on the world may have changed. If the process ends now, the journal has the start, the capture and
        # the key, and the next worker decides by these whether to call again.
        await self._finish(await self._answer(call))

    async def _do_quietly(self, start: StartAttempt, call: ToolCall) -> None:
        """A call without effect: its start is journaled together with its end, or alone if the call takes long."""
        work = asyncio.ensure_future(self._answer(call))
        try:
            # Most calls without effect end at once: then start and end are one append, which halves the syncs of such a
            # run.
            await asyncio.wait({work}, timeout=QUIET_S)
            if work.done():
                await self._finish(work.result(), start)
            else:
                await self._grant(start)
                await self._finish(await work)
        finally:
            work.cancel()

    async def _undo(self) -> None:
        own, call = self.todo.own_undo, self._call()
        start = StartUndo(step=self.path, idempotent=self._is_undo_repeatable())
        if wrong := [] if own else self.tool.misfits(self.todo.args):
            await self._finish(ToolAnswer(category=Category.INVALID_INPUT, message=_listed(wrong)), start)
            return
        # A reversible tool can be repeated only by what it captured before; its own undo uses what its call captured.
        if not own and call.capture is None and self.tool.spec.effect is Effect.REVERSIBLE:
            try:
                call = replace(call, capture=await self.tool.capture(call))
            except ToolFailed as failure:
                await self._finish(_failed(failure), start)
                return
            start = replace(start, capture=call.capture)
        await self._grant(start)
        await self._finish(await self._answer(call, is_undo=own))

    async def _answer(self, call: ToolCall, *, is_undo: bool = False) -> ToolAnswer:
        """Call the tool, in a span of its own whose context goes along."""
        with self._trace(call) as trace:
            traced = replace(call, trace=trace.context) if trace.context else call
            answer = await answer_of(self.tool, traced, timeout_ms=self._timeout_ms(), is_undo=is_undo)
            trace.note(answer.error)
            return answer

    async def _instant_answer(self) -> ToolAnswer:
        call = self._call()
        with self._trace(call) as trace:
            answer = await instant_answer(self.tool, call)
            trace.note(answer.error)
            return answer

    def _trace(self, call: ToolCall) -> CallTrace:
        about = CallAbout(self._called.spec.name, self.path, call.attempt, self.is_undo, call.key)
        return self.parts.dispatch.tracer.calling(self.run, about)

    async def _captured(self, call: ToolCall, start: StartAttempt) -> tuple[ToolCall, StartAttempt]:
        capture = await self.tool.capture(call)
        return replace(call, capture=capture), replace(start, capture=capture)

    # --- the result ---------------------------------------------------------------------------------

    async def _finish(self, answer: ToolAnswer, *before: Command) -> None:
        answer = _undone(answer) if self.is_undo else self._checked(answer)
        outcome = await self._judged(answer) or self._outcome(answer)
        self._log(answer)
        await self._report(answer, *before, outcome)
        if answer.late is not None:
            await self._note_late(answer.late)
        # Last, since the outcome must be in the journal even if the stream of the server can't be written.
        await self.parts.breakers.note(self.server, answer.category, answer.message, now=self.parts.clock())

    def _log(self, answer: ToolAnswer) -> None:
        state = self.run.step(self.path)
        number = (state.undo_attempts if self.is_undo else state.attempts) + 1
        outcome = "ok" if answer.category is None else answer.category.value
        what = f"undo by {self._called.spec.name}" if self.is_undo else f"call of {self.tool.spec.name}"
        log.info("%s: %s", what, outcome, extra={"attempt": number, "duration_ms": answer.took_ms})

    def _checked(self, answer: ToolAnswer) -> ToolAnswer:
        """The answer, or a failure if its output does not match the step's schema."""
        schema = self.todo.work.output
        if schema is None or answer.category is not None or answer.later_ms is not None or answer.question is not None:
            return answer
        wrong = self.parts.fits(schema, answer.output)
        return ToolAnswer(category=Category.TOOL_ERROR, message=f"output: {_listed(wrong)}") if wrong else answer

    async def _judged(self, answer: ToolAnswer) -> Command | None:
        """The command that the step's checks lead to; None without checks, or if there is no result yet."""
        work, judge = self.todo.work, self.parts.judge
        is_result = answer.category is None and answer.later_ms is None and answer.question is None
        if not is_result or self.is_undo or not work.checks or judge is None:
            return None
        # The checks read values as of the attempt's own run, not of a later one: they are part of this attempt.
        lane = locate(await self.parts.dispatch.definition(self.run.definition), self.path).lane
        judgement = await judge(work, answer.output, self.run, lane)
        evidence = tuple(map(evidence_data, judgement.evidence))
        if judgement.is_good:
            return CompleteStep(
                step=self.path,
                output=answer.output,
                checks=judgement.passed,
                evidence=evidence,
                findings=tuple(map(finding_data, judgement.findings)),
                took=answer.took_ms,
            )
        return RefuseResult(
            step=self.path,
            output=answer.output,
            message=f"the result failed its checks: {_listed([one.message for one in judgement.findings])}",
            findings=tuple(map(finding_data, judgement.findings)),
            evidence=evidence,
            took=answer.took_ms,
        )

    def _outcome(self, answer: ToolAnswer) -> Command:
        path, now = self.path, self.parts.clock()
        if answer.category is not None:
            due = self._due(answer, answer.category, now)
            fail = FailUndo if self.is_undo else FailAttempt
            return fail(step=path, category=answer.category, message=answer.message, due=due, took=answer.took_ms)
        if self.is_undo:
            return CompensateStep(step=path, how=How.EXECUTED, took=answer.took_ms)
        if answer.question is not None:
            return self._asked(answer.question)
        if answer.later_ms is not None:
            return DeferStep(step=path, due=now + min(answer.later_ms, DEFER_MS_MAX))
        return CompleteStep(step=path, output=answer.output, took=answer.took_ms)

    def _asked(self, question: ToolQuestion) -> Command:
        if len(self.run.step(self.path).answers or ()) >= QUESTIONS_MAX:
            message = f"it asked {QUESTIONS_MAX} questions and has another one: {question.text}"[:MESSAGE_LENGTH_MAX]
            return FailAttempt(step=self.path, category=Category.TOOL_ERROR, message=message)
        text, schema = question.text[:MESSAGE_LENGTH_MAX], question.schema
        return AskPerson(step=self.path, digest=question.digest, text=text, schema=schema, about=About.QUESTION)

    def _due(self, answer: ToolAnswer, category: Category, now: int) -> int | None:
        state = self.run.step(self.path)
        policy = policy_of(self.todo.work.retry, self.tool.spec.retry)
        random = int.from_bytes(self.parts.entropy(6), "big") / 2**48
        # The failures of the step itself must not use up the tries of its undo.
        is_fresh_undo = self.is_undo and state.status is not StepStatus.COMPENSATING
        failures = 1 if is_fresh_undo else state.failures + 1
        return due_of(policy, failures, category, now=now, random=random, retry_after_ms=answer.retry_after_ms)

    async def _report(self, answer: ToolAnswer, *commands: Command) -> None:
        """Journal an outcome, however long that takes; one that no longer counts is journaled as late."""
        patience = _patience()
        while True:
            try:
                await self._grant(*commands)
                break
            # Another worker has the run. It may already have lost this attempt to "uncertain": the answer that a person
            # needs to decide that is here, so it is journaled even without the lease.
            except LeaseLost:
                await self._note_late(answer)
                raise
            except Conflict:
                await self._note_late(answer)
                break
            except (Unavailable, Limited) as error:
                log.warning("the outcome of %s can't be journaled yet: %s", self.path, error)
                if await self._is_journaled(patience):
                    raise  # the conductor's state is stale: it must read the journal again

    async def _is_journaled(self, patience: Iterator[float]) -> bool:
        """Whether the outcome was journaled although the store reported an error: it must not be written twice."""
        for pause_s in patience:
            await asyncio.sleep(pause_s)
            try:
                run = await self.parts.dispatch.current(self.run.id)
                break
            except (Unavailable, Limited) as error:
                log.warning("the journal can't be read yet: %s", error)
        # The store may have committed before the connection broke. The number of attempts tells: it only grows.
        now, before = run.step(self.path), self.run.step(self.path)
        if self.is_undo:
            is_over = now.status is not StepStatus.COMPENSATING or now.due is not None
            return is_over and now.undo_attempts == before.undo_attempts + 1
        return now.status in STEP_ANSWERED and now.attempts == before.attempts + 1

    async def _note_late(self, answer: ToolAnswer) -> None:
        note = NoteLateAnswer(
            step=self.path,
            # As of the state that the call was made from, in which this attempt had not started yet.
            attempt=self.run.step(self.path).attempts + 1,
            output=answer.output,
            category=answer.category,
            message=answer.message,
        )
        try:
            await self.parts.dispatch.grant(self.run.id, note, actor=self.parts.actor)
        except HandrailError as error:
            log.warning("a late answer of %s could not be journaled: %s", self.path, error)

    # --- the call -----------------------------------------------------------------------------------

    def _call(self) -> ToolCall:
        state = self.run.step(self.path)
        return ToolCall(
            tool=self.todo.work.tool,
            args=self.todo.args,
            key=key_of(self.run.id, self.path, is_undo=self.is_undo),
            run=self.run.id,
            step=self.path,
            attempt=(state.undo_attempts if self.is_undo else state.attempts) + 1,
            capture=self._capture(state),
            deferred=state.deferred,
            output=state.output if self.is_undo else None,
            references=self.todo.references,
            answers=state.answers or NO_ANSWERS,
            progress=self.progress,
        )

    def _capture(self, state: StepState) -> Any:
        if not self.is_undo or self.todo.own_undo:
            return state.capture
        # Another tool undoes it, with a capture of its own; after a permanent failure it looks again.
        return state.undo_capture if state.status is StepStatus.COMPENSATING else None

    def _timeout_ms(self) -> int:
        text = self.todo.work.timeout or self.tool.spec.timeout
        return duration_ms(text) if text else TIMEOUT_MS_DEFAULT

    def _is_idempotent(self, effect: Effect) -> bool:
        own = self.todo.work.idempotent
        return effect is not Effect.NONE and (self.tool.spec.idempotent if own is None else own)

    def _is_undo_repeatable(self) -> bool:
        """Whether a lost undo is called again: yes by its nature, unless the plan or the tool says that it may not."""
        own = self.todo.work.idempotent
        if not self.todo.own_undo:
            return own is not False
        # The work is the step's own: that it is idempotent holds for its undo, too; that it is not says nothing of it.
        return own is True or self.tool.spec.undo_idempotent

    def _misfit(self, wrong: Sequence[str]) -> list[Command]:
        start = StartAttempt(step=self.path, effect=Effect.NONE)
        return [start, FailAttempt(step=self.path, category=Category.INVALID_INPUT, message=_listed(wrong))]

    async def _grant(self, *commands: Command) -> None:
        await self.parts.dispatch.grant(self.run.id, *commands, actor=self.parts.actor, lease=self.lease)


def _undone(answer: ToolAnswer) -> ToolAnswer:
    """The answer of an undo: if it asks a question, or to be called again, nothing is undone yet."""
    if answer.question is not None:
        message = f"an undo can't ask a person: {answer.question.text}"[:MESSAGE_LENGTH_MAX]
        return ToolAnswer(category=Category.PERMISSION, message=message, took_ms=answer.took_ms)
    if answer.later_ms is None:
        return answer
    return ToolAnswer(category=Category.TRANSIENT, message="it is not undone yet", retry_after_ms=answer.later_ms)


def _failed(failure: ToolFailed) -> ToolAnswer:
    message = failure.message[:MESSAGE_LENGTH_MAX]
    return ToolAnswer(category=failure.category, message=message, retry_after_ms=failure.retry_after_ms)


def _listed(wrong: Sequence[str]) -> str:
    return "; ".join(wrong)[:MESSAGE_LENGTH_MAX]


def _patience() -> Iterator[float]:
    """The pauses between retries while the store fails, without end."""
    pause_s = TROUBLE_S_FIRST
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, TROUBLE_S_MAX)
