"""A simulated run: moves without a journal, a clock or tools, from one awaited step to the next.

Pure. It uses the same agenda, turn, decisions and fold as a real run. It never waits: time jumps to the next timer. The
results of awaited steps come from walk.py or paths.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from handrail.domain.definition.effect import brings_own_undo, effect_of
from handrail.domain.definition.model import Call, Definition, Prompt, Tool
from handrail.domain.errors import Invalid, Limited
from handrail.domain.journal.event import Entry, Event, How, Proof, step_of
from handrail.domain.policy.actor import AGENT_PREFIX, SYSTEM
from handrail.domain.rehearsal.question import (
    ApprovedResult,
    AwaitedStep,
    DoneResult,
    FailedResult,
    NoAnswer,
    Performer,
    RefusedResult,
    SkippedResult,
    StepResult,
)
from handrail.domain.run.command import (
    Command,
    CompensateStep,
    CompleteStep,
    FailAttempt,
    FailStep,
    FailUndo,
    GiveApproval,
    HandOutStep,
    OpenStep,
    RefuseOutput,
    RejectApproval,
    SetVars,
    SkipStep,
    StartAttempt,
    StartRun,
    StartUndo,
)
from handrail.domain.run.decide import decide
from handrail.domain.run.guidance import shown_step
from handrail.domain.run.state import Run, replay
from handrail.domain.run.status import RUN_WORKING, StepStatus
from handrail.domain.run.step_path import locate
from handrail.domain.scheduling.agenda import Agenda
from handrail.domain.scheduling.retry import due_of, policy_of
from handrail.domain.scheduling.step_start import CallTool, Grant, InputCheck, LeaveToAgent, start_of, undo_start_of
from handrail.domain.scheduling.turn import next_turn, ready_for_agent

RUN: Final = "run_rehearsal"
AGENT: Final = f"{AGENT_PREFIX}script"
START_MS: Final = 1_000
TURNS_MAX: Final = 100_000
"""After this many turns a rehearsal stops: no real workflow needs as many."""
CAPTURED: Final = {"rehearsed": True}

StandIn: TypeAlias = Callable[[str], DoneResult | None]
"""Returns the scripted outputs of an inlined workflow, which is then not executed; None to execute it."""


def started(definition: Definition, inputs: Mapping[str, Any], variables: Mapping[str, Any] | None = None) -> Run:
    """A run of a definition that has just started."""
    start = StartRun(definition=RUN, workflow=definition.id, inputs=inputs, vars=variables or {})
    return _after(Run(id=RUN), decide(Run(id=RUN), start, definition), START_MS)


class SimulatedRun:
    """One run in progress; `events` is everything that has happened since this object was made."""

    def __init__(
        self, definition: Definition, run: Run, *, check: InputCheck, stand_in: StandIn = lambda _: None
    ) -> None:
        self.definition = definition
        self.run = run
        self.check = check
        self.stand_in = stand_in
        self.now = run.updated + 1
        self.events: list[Event] = []
        self.unanswered: set[str] = set()
        self._agenda = Agenda(definition, run)
        self._tools: set[str] = set()
        self._undo: AwaitedStep | None = None
        self._turns = 0

    # --- advancing -----------------------------------------------------------------------------------

    def advance(self) -> AwaitedStep | None:
        """Advance until an agent, a tool or a person has to act; None if the run has ended or can't continue."""
        while self.run.status in RUN_WORKING:
            self._turns += 1
            if self._turns > TURNS_MAX:
                message = f"the rehearsal has not ended after {TURNS_MAX:,} turns"
                raise Limited(message, hint="give its loops smaller bounds")
            # In this order a rehearsal is deterministic: first what handrail does alone, then who is asked, then time.
            if commands := self._next():
                self.grant(*commands)
            elif question := self._question():
                return question
            elif not self._jump():
                return None
        return None

    def grant(self, *commands: Command) -> None:
        """Execute these commands."""
        for command in commands:
            events = decide(self.run, command, self.definition)
            self.run = _after(self.run, events, self.now, actor=_actor_of(command))
            self.events += events
            self.now += 1
            self._agenda.update(self.run, {path for path in map(step_of, events) if path is not None})

    def _next(self) -> list[Command]:
        """What handrail does by itself, before waiting for anyone."""
        self._agenda.keep_up(self.now)
        turn = next_turn(self._agenda, check=self.check)
        commands = self._stood_in(turn.commands) or self._start_undo(turn.undos)
        for path in turn.calls if not commands else ():
            commands += self._start_call(path)
        return commands

    def _stood_in(self, commands: Sequence[Command]) -> list[Command]:
        """The commands, and the completion of inlined workflows whose outputs are scripted."""
        failed = {command.step for command in commands if isinstance(command, FailStep)}
        opened = [one.step for one in commands if isinstance(one, OpenStep) and one.step not in failed]
        called = [path for path in opened if isinstance(locate(self.definition, path).step.work, Call)]
        given = ((path, self.stand_in(path)) for path in called)
        return [*commands, *(CompleteStep(step=path, output=one.output) for path, one in given if one is not None)]

    def _start_call(self, path: str) -> list[Command]:
        # It was offered in an earlier turn and is not answered yet: the turn offers it again until it has started.
        if path in self._tools:
            return []
        match start_of(self.run, self.definition, path, now=self.now, check=self.check):
            case Grant(commands=commands):
                return list(commands)
            case _:
                self._tools.add(path)
                return []

    def _start_undo(self, paths: Sequence[str]) -> list[Command]:
        """Start undos one at a time, so that a rehearsal shows their order."""
        if self._undo is not None or not paths:
            return []
        match undo_start_of(self.run, self.definition, paths[0], check=self.check):
            case Grant(commands=commands):
                return list(commands)
            case CallTool(work=work, args=args):
                self._undo = AwaitedStep(path=paths[0], who=Performer.TOOL, is_undo=True, work=work, args=args)
            case LeaveToAgent():
                pass
        return []

    def _jump(self) -> bool:
        due = self._agenda.next_due
        if due is None:
            return False
        # No time passes while somebody thinks: waiting is skipped, so that a day of retries takes a millisecond.
        self.now = max(self.now + 1, due)
        return True

    # --- awaited steps and their results ----------------------------------------------------------------------

    def _question(self) -> AwaitedStep | None:
        if self._undo is not None:
            return self._undo
        agenda = self._agenda
        for path in agenda.undos.by_agent():
            return self._for_agent(path, is_undo=True)
        waiting = [path for path in agenda.tracked.waiting - self.unanswered if self._is_for_somebody(path)]
        prompts = ready_for_agent(agenda, check=self.check)
        asked = [*(self._tools & agenda.ready), *prompts, *waiting]
        return self._asked(min(asked, key=agenda.lanes.rank_at)) if asked else None

    def _is_for_somebody(self, path: str) -> bool:
        """Whether a waiting step waits for an agent or a person, not for a timer."""
        return bool(self.run.step(path).digest) or isinstance(locate(self.definition, path).step.work, Prompt)

    def _asked(self, path: str) -> AwaitedStep:
        step = locate(self.definition, path).step
        if isinstance(step.work, Prompt):
            return self._for_agent(path)
        if not isinstance(step.work, Tool):
            return AwaitedStep(path=path, who=Performer.PERSON)
        start = start_of(self.run, self.definition, path, now=self.now, check=self.check)
        args = start.args if isinstance(start, CallTool) else {}
        return AwaitedStep(path=path, who=Performer.TOOL, work=step.work, args=args)

    def _for_agent(self, path: str, *, is_undo: bool = False) -> AwaitedStep:
        step = locate(self.definition, path).step
        work = step.undo if is_undo else step.work
        trouble = ""
        try:
            shown_step(self.run, self.definition, path)
        except Invalid as error:
            trouble = str(error)
        prompt = work if isinstance(work, Prompt) else None
        return AwaitedStep(path=path, who=Performer.AGENT, is_undo=is_undo, work=prompt, trouble=trouble)

    def answer(self, question: AwaitedStep, answer: StepResult, *, variables: Mapping[str, Any] | None = None) -> None:
        """Apply the result of an awaited step; `variables` are what an agent sets with it."""
        if question.is_undo:
            self.grant(*self._undone(question, answer))
            self._undo = None
        elif isinstance(answer, NoAnswer):
            self.unanswered.add(question.path)
        elif question.who is Performer.PERSON:
            self.grant(self._decided(question.path, is_yes=isinstance(answer, ApprovedResult)))
        elif question.who is Performer.TOOL:
            self._tools.discard(question.path)
            self.grant(self._tried(question), self._call_ended(question, answer))
        else:
            self.grant(*self._submitted(question.path, answer, variables or {}))

    def _decided(self, path: str, *, is_yes: bool) -> Command:
        digest = self.run.step(path).digest
        if is_yes:
            return GiveApproval(step=path, digest=digest, reason="approved by the script", at=self.now)
        return RejectApproval(step=path, digest=digest, reason="rejected by the script", at=self.now)

    def _tried(self, question: AwaitedStep) -> Command:
        step = locate(self.definition, question.path).step
        # Without a capture such a step would count as one that can't be undone, and would be missing in the order of
        # undos.
        capture = CAPTURED if brings_own_undo(step) else None
        return StartAttempt(step=question.path, effect=effect_of(step), capture=capture)

    def _call_ended(self, question: AwaitedStep, answer: StepResult) -> Command:
        if isinstance(answer, DoneResult):
            return CompleteStep(step=question.path, output=answer.output)
        failed = answer if isinstance(answer, FailedResult) else FailedResult()
        retry = question.work.retry if isinstance(question.work, Tool) else None
        failures = self.run.step(question.path).failures + 1
        # Half of the longest wait, always: with real randomness the same script could end in two ways.
        due = due_of(policy_of(retry), failures, failed.category, now=self.now, random=0.5)
        due = None if failed.is_final else due
        return FailAttempt(step=question.path, category=failed.category, message=failed.message, due=due)

    def _submitted(self, path: str, answer: StepResult, variables: Mapping[str, Any]) -> list[Command]:
        is_assigned = self.run.step(path).status is StepStatus.WAITING
        assigned: list[Command] = [] if is_assigned else [HandOutStep(step=path, at=self.now)]
        left: list[Command] = [SetVars(vars=variables)] if variables else []
        return [*assigned, *left, _ended(path, answer)]

    def _undone(self, question: AwaitedStep, answer: StepResult) -> list[Command]:
        path = question.path
        started: list[Command] = [StartUndo(step=path)] if question.who is Performer.TOOL else []
        if isinstance(answer, FailedResult):
            return [*started, FailUndo(step=path, category=answer.category, message=answer.message)]
        how = How.EXECUTED if question.who is Performer.TOOL else How.BY_AGENT
        return [*started, CompensateStep(step=path, how=how)]


def _ended(path: str, answer: StepResult) -> Command:
    match answer:
        case RefusedResult(findings=findings):
            return RefuseOutput(step=path, findings=findings)
        case SkippedResult():
            return SkipStep(step=path, reason="the agent skipped it")
        case DoneResult(output=output):
            return CompleteStep(step=path, output=output, proof=Proof.CLAIMED)
        case _:
            failed = answer if isinstance(answer, FailedResult) else FailedResult()
            return FailStep(step=path, category=failed.category, message=failed.message)


def _actor_of(command: Command) -> str:
    """Who does it: a step that an agent skips leaves less to later steps than one that its condition leaves out."""
    return AGENT if isinstance(command, SkipStep) and not command.is_condition else SYSTEM


def _after(run: Run, events: Iterable[Event], now: int, *, actor: str = SYSTEM) -> Run:
    entries = [
        Entry(stream=RUN, n=n, at=now, actor=actor, event=event, hash=bytes(32))
        for n, event in enumerate(events, run.n + 1)
    ]
    return replay(entries, run)
