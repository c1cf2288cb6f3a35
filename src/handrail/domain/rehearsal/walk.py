"""The walk: one rehearsal of a workflow in which agents, tools and people do what a script says, and its result.

Pure and instant. Outputs are judged as in a real run, by the given rules. Where the script is missing something, that
is reported as trouble. The result is compared with what was expected in difference.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from handrail.domain.checks.finding import Finding, Severity
from handrail.domain.checks.judgement import PlainRuleSet, judge
from handrail.domain.definition.model import Category, Definition, Prompt, Tool
from handrail.domain.errors import Invalid
from handrail.domain.journal.event import ApprovalGiven, StepCompensated, StepCompleted, StepSkipped
from handrail.domain.rehearsal.branches import Branch, branches_taken
from handrail.domain.rehearsal.question import (
    ApprovedResult,
    AwaitedStep,
    DoneResult,
    FailedResult,
    NoAnswer,
    Performer,
    RefusedResult,
    RejectedResult,
    SkippedResult,
    StepResult,
)
from handrail.domain.rehearsal.script import EXHAUSTED, Answers, Script, plain
from handrail.domain.rehearsal.stage import SimulatedRun, started
from handrail.domain.run.guidance import needs_confirmation
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_WORKING
from handrail.domain.run.step_path import locate
from handrail.domain.scheduling.step_start import InputCheck

WAITING: Final = "waiting"
SHAPE: Final = "schema"
"""The rule name of the output's own schema in tests."""
CONFIRM: Final = "confirm"


class Walked(Struct, frozen=True, kw_only=True):
    """The result of a walk."""

    end: str
    path: tuple[str, ...] = ()
    """The steps that were completed, in this order."""
    skipped: tuple[str, ...] = ()
    findings: Mapping[str, tuple[str, ...]] = {}
    """The rules that refused a try, by step."""
    undone: tuple[str, ...] = ()
    outputs: Mapping[str, Any] = {}
    waits_for: str = ""
    """What an unfinished run waits for, or why a run failed."""
    trouble: tuple[str, ...] = ()
    """Where the script and the workflow do not fit each other."""
    unused: tuple[str, ...] = ()
    """Entries of the script that were never needed."""
    branches: frozenset[Branch] = frozenset()


class WalkParts(Struct, frozen=True, kw_only=True):
    """What a walk needs besides its script."""

    check: InputCheck
    rule_set: PlainRuleSet


def walk_through(definition: Definition, script: Script, cast: WalkParts) -> Walked:
    """Run through a definition as the script says."""
    inputs, wrong = cast.check(definition, script.inputs)
    if wrong:
        return Walked(end="", trouble=tuple(f"inputs: {one}" for one in wrong))
    return _Walk(definition, script, cast, inputs).walked()


class _Walk:
    """One walk in progress."""

    def __init__(self, definition: Definition, script: Script, cast: WalkParts, inputs: Mapping[str, Any]) -> None:
        self.definition, self.script, self.cast = definition, script, cast
        self.outputs, self.outcomes = Answers(script.outputs), Answers(script.outcomes)
        self.tools, self.approvals, self.vars = Answers(script.tools), Answers(script.approvals), Answers(script.vars)
        run = started(definition, inputs)
        self.stage = SimulatedRun(definition, run, check=cast.check, stand_in=self._stand_in)
        self.findings: dict[str, dict[str, None]] = {}
        self.trouble: list[str] = []

    def walked(self) -> Walked:
        asked = self.stage.advance()
        while asked is not None:
            answer = self._answer(asked)
            if answer is None:
                break  # the script ends here: the run keeps waiting
            # Only with an accepted output: a refused submission sets nothing in a real run either.
            variables = self.vars.next(asked.name, {}) if isinstance(answer, DoneResult) else {}
            self.stage.answer(asked, answer, variables=variables if isinstance(variables, Mapping) else {})
            asked = self.stage.advance()
        return self._result(asked)

    def _result(self, asked: AwaitedStep | None) -> Walked:
        run, events = self.stage.run, self.stage.events
        done = [one.step for one in events if isinstance(one, StepCompleted | ApprovalGiven)]
        return Walked(
            end=WAITING if run.status in RUN_WORKING else run.status.value,
            path=tuple(done),
            skipped=tuple(one.step for one in events if isinstance(one, StepSkipped)),
            findings={step: tuple(rules) for step, rules in self.findings.items()},
            undone=tuple(one.step for one in events if isinstance(one, StepCompensated)),
            outputs=run.outputs,
            waits_for=_waits_for(run, asked),
            trouble=tuple(self.trouble),
            unused=self._unused(),
            branches=frozenset(branches_taken(self.definition, run)),
        )

    def _unused(self) -> tuple[str, ...]:
        said = {**self.script.outputs, **self.script.outcomes, **self.script.tools, **self.script.approvals}
        asked = self.outputs.asked | self.outcomes.asked | self.tools.asked | self.approvals.asked
        return tuple(name for name in said if name not in asked)

    # --- results of awaited steps ---------------------------------------------------------------------------

    def _stand_in(self, path: str) -> DoneResult | None:
        if not self.outputs.has(path):
            return None
        output = self.outputs.next(path)
        if output is EXHAUSTED:
            self.trouble.append(f"the script has no output for {path}: its list is too short")
            return None
        return DoneResult(output)

    def _answer(self, asked: AwaitedStep) -> StepResult | None:
        if asked.trouble:
            self.trouble.append(asked.trouble)
            return None
        match asked.who:
            case Performer.PERSON:
                return self._decided(asked)
            case Performer.TOOL:
                return self._called(asked)
            case Performer.AGENT:
                return self._submitted(asked)

    def _decided(self, asked: AwaitedStep) -> StepResult | None:
        said = self.approvals.next(asked.name, "approve")
        known: dict[Any, StepResult] = {"approve": ApprovedResult(), "reject": RejectedResult(), "expire": NoAnswer()}
        return known.get(said) if isinstance(said, str) else self._short("approvals", asked)

    def _called(self, asked: AwaitedStep) -> StepResult | None:
        said = self.tools.next(asked.name, _usual(asked))
        if said is EXHAUSTED:
            return self._short("tools", asked)
        if isinstance(said, Mapping) and set(said) == {"fail"}:
            return FailedResult(category=Category(said["fail"]), message=f"{said['fail']}, as scripted")
        return DoneResult(said) if asked.is_undo else self._fitted(asked, said)

    def _fitted(self, asked: AwaitedStep, said: Any) -> StepResult:
        """The result of a tool, or a failure if it does not fit the `output` of the step."""
        schema = asked.work.output if isinstance(asked.work, Tool) else None
        wrong = self.cast.rule_set.fits(schema, said) if schema is not None else ()
        if not wrong:
            return DoneResult(said)
        if not self.tools.has(asked.name):
            self.trouble.append(f"the script says nothing under `tools` for {asked.name}, which has an `output` to fit")
        return FailedResult(message=f"output: {wrong[0].message}")

    def _submitted(self, asked: AwaitedStep) -> StepResult | None:
        match self.outcomes.next(asked.name, "done"):
            case "done":
                return self._done(asked)
            case "failed":
                return FailedResult()
            case "skipped":
                return FailedResult() if asked.is_undo else SkippedResult()
            case _:
                return self._short("outcomes", asked)

    def _done(self, asked: AwaitedStep) -> StepResult | None:
        left = self.outputs.tries_left(asked.name)
        is_again = self.stage.run.step(asked.path).tries > 0 and not asked.is_undo
        if is_again and not left:
            return None  # a test that expects a refusal ends here on purpose
        output = self.outputs.next(asked.name)
        return self._short("outputs", asked) if output is EXHAUSTED else self._judged(asked, output, is_last=left <= 1)

    def _judged(self, asked: AwaitedStep, output: Any, *, is_last: bool) -> StepResult | None:
        blocking = self._against(asked, output)
        if not blocking:
            if not is_last:
                self.trouble.append(f"a try of {asked.name} was accepted that should have been refused: {output!r}")
            return DoneResult(output)
        self.findings.setdefault(plain(asked.path), {}).update(dict.fromkeys(self._rules(asked, output, blocking)))
        if not self.outputs.has(asked.name):
            self.trouble.append(f"the script says nothing under `outputs` for {asked.name}: {blocking[0].message}")
            return None
        data = tuple({"rule": one.rule, "message": one.message, "where": one.where} for one in blocking)
        return RefusedResult(data) if not asked.is_undo else FailedResult(message=blocking[0].message)

    def _rules(self, asked: AwaitedStep, output: Any, blocking: list[Finding]) -> list[str]:
        """The rules that refused an output, including its schema."""
        schema = asked.work.output if isinstance(asked.work, Prompt) else None
        is_misshapen = schema is not None and bool(self.cast.rule_set.fits(schema, output))
        return [*([SHAPE] if is_misshapen else []), *(one.rule for one in blocking)]

    def _against(self, asked: AwaitedStep, output: Any) -> list[Finding]:
        """Why an output is refused: its schema, its checks, or a missing confirmation."""
        if not isinstance(asked.work, Prompt):
            return []
        run, found = self.stage.run, locate(self.definition, asked.path)
        against = list(judge(asked.work, output, run, found.lane, self.cast.rule_set).blocking)
        if against or self._is_agreed(asked):
            return against
        try:
            is_needed = needs_confirmation(run, found, asked.work)
        except Invalid as error:
            self.trouble.append(f"`confirm` of {asked.path} can't be evaluated: {error}")
            is_needed = False
        unconfirmed = Finding(
            rule=CONFIRM, severity=Severity.CRITICAL, where="confirmed", message="it was not confirmed"
        )
        return [unconfirmed] if is_needed else []

    def _is_agreed(self, asked: AwaitedStep) -> bool:
        agreed = self.script.confirmed
        return agreed if isinstance(agreed, bool) else agreed.get(plain(asked.path), True)

    def _short(self, key: str, asked: AwaitedStep) -> StepResult | None:
        self.trouble.append(f"the script's `{key}` has no more for {asked.name}: its list is too short")
        return None


def _usual(asked: AwaitedStep) -> Any:
    """The result of a tool that the script does not mention."""
    if isinstance(asked.work, Tool) and asked.work.tool == "value.set" and isinstance(asked.args, Mapping):
        return asked.args.get("value")
    return {}


def _waits_for(run: Run, asked: AwaitedStep | None) -> str:
    if asked is not None:
        return f"{asked.who.value}: {asked.name}"
    failed = [f"{path}: {state.message}" for path, state in run.steps.items() if state.status.value == "failed"]
    return failed[0] if failed else run.reason
