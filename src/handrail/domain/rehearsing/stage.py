"""The stage: a run that moves without a journal, a clock or tools, from one question to the next.

Pure. What may happen is decided just as in a real run, by the same agenda, decisions and fold; only that nobody waits:
times that are due are jumped to. Who answers the questions is walk.py's and paths.py's matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from handrail.domain.agenda import Agenda
from handrail.domain.beginning import Beginning, ForAgent, InputCheck, ToCall, ToGrant, begin, begin_undo
from handrail.domain.command import (
    Command,
    CompensateStep,
    CompleteStep,
    ExpireApproval,
    FailAttempt,
    FailStep,
    FailUndo,
    FinishCompensation,
    FinishRun,
    GiveApproval,
    HandOutStep,
    OpenStep,
    RefuseOutput,
    RejectApproval,
    SetVars,
    SkipStep,
    StartAttempt,
    StartCompensation,
    StartRun,
    StartUndo,
)
from handrail.domain.decide import decide
from handrail.domain.definition import Call, Definition, OnFailure, Prompt, Tool
from handrail.domain.effect import brings_own_undo, effect_of
from handrail.domain.errors import Invalid, Limited
from handrail.domain.event import Entry, Event, How, Proof, step_of
from handrail.domain.guidance import told
from handrail.domain.path import locate, top_lane
from handrail.domain.rehearsing.question import (
    Answer,
    Approved,
    Done,
    Failed,
    Question,
    Refused,
    Skipped,
    Unanswered,
    Who,
)
from handrail.domain.retry import due_of, policy_of
from handrail.domain.rounds import look_at_holders, outputs_of
from handrail.domain.run import Run, replay
from handrail.domain.status import RUN_WORKING, RunStatus, StepStatus

RUN: Final = "run_rehearsal"
BEGINNING: Final = 1_000
TURNS_MAX: Final = 100_000
"""After so many turns a walk is given up: no workflow that people read has as many."""
CAPTURED: Final = {"rehearsed": True}

StandIn: TypeAlias = Callable[[str], Done | None]
"""The outputs of an inlined workflow that is not to be walked through; None if it is."""


def started(definition: Definition, inputs: Mapping[str, Any], variables: Mapping[str, Any] | None = None) -> Run:
    """A run of a definition that has just begun."""
    start = StartRun(definition=RUN, workflow=definition.id, inputs=inputs, vars=variables or {})
    return _after(Run(id=RUN), decide(Run(id=RUN), start, definition), BEGINNING)


class Stage:
    """One run on its way; `events` is all that has happened since the stage was set."""

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
        self._undo: Question | None = None
        self._turns = 0

    # --- going on -----------------------------------------------------------------------------------

    def advance(self) -> Question | None:
        """Go on until somebody has to do something; None if nobody can, or the run has ended."""
        while self.run.status in RUN_WORKING:
            self._turns += 1
            if self._turns > TURNS_MAX:
                raise Limited(f"the walk has not ended after {TURNS_MAX:,} turns", hint="give its loops smaller bounds")
            if commands := self._next():
                self.grant(*commands)
            elif question := self._question():
                return question
            elif commands := self._later():
                self.grant(*commands)
            elif not self._jump():
                return None
        return None

    def grant(self, *commands: Command) -> None:
        """Let this happen."""
        for command in commands:
            events = decide(self.run, command, self.definition)
            self.run = _after(self.run, events, self.now)
            self.events += events
            self.now += 1
            self._agenda.update(self.run, {path for path in map(step_of, events) if path is not None})

    def _next(self) -> list[Command]:
        """What happens by itself, before anybody is asked."""
        commands = [*self._come_due(), *look_at_holders(self._agenda, self.run, now=self.now)]
        if commands:
            return commands
        is_undoing = self.run.status is RunStatus.COMPENSATING
        if not is_undoing and self._agenda.halt is not None:
            return self._halted(self._agenda.halt)
        return (self._begin_undo() if is_undoing else []) or self._begin_ready()

    def _come_due(self) -> Iterable[Command]:
        for path in self._agenda.due(self.run, self.now):
            state = self.run.step(path)
            if state.status is StepStatus.WAITING and state.digest:
                yield ExpireApproval(step=path)
            elif state.status is StepStatus.WAITING:
                self._agenda.put_back(path)
            elif state.status is StepStatus.RUNNING:
                self._agenda.holders.add(path)

    def _halted(self, policy: OnFailure) -> list[Command]:
        if policy is OnFailure.STOP:
            return [FinishRun()]
        path = next(path for path, own in self._agenda.failed.items() if own is policy)
        return [StartCompensation(reason=f"{path} failed: {self.run.step(path).message}")]

    def _begin_ready(self) -> list[Command]:
        commands: list[Command] = []
        for path in [*self._agenda.others(), *self._agenda.in_order()]:
            commands += self._begun(path, begin(self.run, self.definition, path, now=self.now, check=self.check))
        return commands

    def _begun(self, path: str, beginning: Beginning) -> list[Command]:
        match beginning:
            case ToGrant(commands=commands):
                return [*commands, *self._stood_in(path, commands)]
            case ForAgent():
                self._agenda.leave_to_agent(path)
            case ToCall():
                self._tools.add(path)
        return []

    def _stood_in(self, path: str, commands: Sequence[Command]) -> list[Command]:
        """The end of an inlined workflow whose outputs are given, so that nobody has to walk through it."""
        is_call = isinstance(locate(self.definition, path).step.work, Call)
        given = self.stand_in(path) if is_call and isinstance(commands[-1], OpenStep) else None
        return [CompleteStep(step=path, output=given.output)] if given is not None else []

    def _begin_undo(self) -> list[Command]:
        if self._undo is not None:
            return []
        path = next(self._agenda.undo_in_order(), None)
        if path is None:
            return []
        match begin_undo(self.run, self.definition, path, check=self.check):
            case ToGrant(commands=commands):
                return list(commands)
            case ToCall(work=work, args=args):
                self._undo = Question(path=path, who=Who.TOOL, is_undo=True, work=work, args=args)
            case ForAgent():
                pass
        return []

    def _later(self) -> list[Command]:
        """How the run ends, once nobody has anything to do any more."""
        agenda = self._agenda
        if self.run.status is RunStatus.COMPENSATING:
            return [] if agenda.undoing or agenda.to_undo else [FinishCompensation()]
        if agenda.is_stuck:
            return [FinishRun()]
        if not agenda.is_done:
            return []
        try:
            return [FinishRun(outputs=outputs_of(self.definition, self.run, top_lane(self.definition)))]
        except Invalid as error:
            return [FinishRun(flaw=f"the outputs can't be worked out: {error}")]

    def _jump(self) -> bool:
        due = self._agenda.next_due(self.run)
        if due is None:
            return False
        self.now = max(self.now + 1, due)
        return True

    # --- questions and answers ----------------------------------------------------------------------

    def _question(self) -> Question | None:
        if self._undo is not None:
            return self._undo
        agenda = self._agenda
        for path in sorted(agenda.undoing):
            if isinstance(locate(self.definition, path).step.undo, Prompt):
                return self._for_agent(path, is_undo=True)
        waiting = [path for path in agenda.waiting - self.unanswered if self._is_for_somebody(path)]
        asked = [*(self._tools & agenda.ready), *agenda.for_agent, *waiting]
        return self._asked(min(asked, key=agenda.rank)) if asked else None

    def _is_for_somebody(self, path: str) -> bool:
        """Whether a step that waits does so for an agent or a person, and not for a time."""
        return bool(self.run.step(path).digest) or isinstance(locate(self.definition, path).step.work, Prompt)

    def _asked(self, path: str) -> Question:
        step = locate(self.definition, path).step
        if isinstance(step.work, Prompt):
            return self._for_agent(path)
        if not isinstance(step.work, Tool):
            return Question(path=path, who=Who.PERSON)
        beginning = begin(self.run, self.definition, path, now=self.now, check=self.check)
        args = beginning.args if isinstance(beginning, ToCall) else {}
        return Question(path=path, who=Who.TOOL, work=step.work, args=args)

    def _for_agent(self, path: str, *, is_undo: bool = False) -> Question:
        step = locate(self.definition, path).step
        work = step.undo if is_undo else step.work
        trouble = ""
        try:
            told(self.run, self.definition, path)
        except Invalid as error:
            trouble = str(error)
        prompt = work if isinstance(work, Prompt) else None
        return Question(path=path, who=Who.AGENT, is_undo=is_undo, work=prompt, trouble=trouble)

    def answer(self, question: Question, answer: Answer, *, variables: Mapping[str, Any] | None = None) -> None:
        """Let the answer to the question happen; `variables` is what an agent leaves with it."""
        if question.is_undo:
            self.grant(*self._undone(question, answer))
            self._undo = None
        elif isinstance(answer, Unanswered):
            self.unanswered.add(question.path)
        elif question.who is Who.PERSON:
            self.grant(self._decided(question.path, is_yes=isinstance(answer, Approved)))
        elif question.who is Who.TOOL:
            self._tools.discard(question.path)
            self.grant(self._tried(question), self._came_of(question, answer))
        else:
            self.grant(*self._handed_in(question.path, answer, variables or {}))

    def _decided(self, path: str, *, is_yes: bool) -> Command:
        digest = self.run.step(path).digest
        if is_yes:
            return GiveApproval(step=path, digest=digest, reason="a person agreed", at=self.now)
        return RejectApproval(step=path, digest=digest, reason="a person said no", at=self.now)

    def _tried(self, question: Question) -> Command:
        step = locate(self.definition, question.path).step
        capture = CAPTURED if brings_own_undo(step) else None
        return StartAttempt(step=question.path, effect=effect_of(step), capture=capture)

    def _came_of(self, question: Question, answer: Answer) -> Command:
        if isinstance(answer, Done):
            return CompleteStep(step=question.path, output=answer.output)
        failed = answer if isinstance(answer, Failed) else Failed()
        retry = question.work.retry if isinstance(question.work, Tool) else None
        failures = self.run.step(question.path).failures + 1
        due = due_of(policy_of(retry), failures, failed.category, now=self.now, chance=0.5)
        due = None if failed.is_final else due
        return FailAttempt(step=question.path, category=failed.category, message=failed.message, due=due)

    def _handed_in(self, path: str, answer: Answer, variables: Mapping[str, Any]) -> list[Command]:
        is_out = self.run.step(path).status is StepStatus.WAITING
        handed_out: list[Command] = [] if is_out else [HandOutStep(step=path, at=self.now)]
        left: list[Command] = [SetVars(vars=variables)] if variables else []
        return [*handed_out, *left, _ended(path, answer)]

    def _undone(self, question: Question, answer: Answer) -> list[Command]:
        path = question.path
        begun: list[Command] = [StartUndo(step=path)] if question.who is Who.TOOL else []
        if isinstance(answer, Failed):
            return [*begun, FailUndo(step=path, category=answer.category, message=answer.message)]
        how = How.EXECUTED if question.who is Who.TOOL else How.BY_AGENT
        return [*begun, CompensateStep(step=path, how=how)]


def _ended(path: str, answer: Answer) -> Command:
    match answer:
        case Refused(findings=findings):
            return RefuseOutput(step=path, findings=findings)
        case Skipped():
            return SkipStep(step=path, reason="the agent left it out")
        case Done(output=output):
            return CompleteStep(step=path, output=output, proof=Proof.CLAIMED)
        case _:
            failed = answer if isinstance(answer, Failed) else Failed()
            return FailStep(step=path, category=failed.category, message=failed.message)


def _after(run: Run, events: Iterable[Event], now: int) -> Run:
    entries = [
        Entry(stream=RUN, n=n, at=now, actor="handrail", event=event, hash=bytes(32))
        for n, event in enumerate(events, run.n + 1)
    ]
    return replay(entries, run)
