"""Judgement: whether a submitted output is accepted: its schema first, then the checks of the step.

Pure. Checks become tasks, and the outcomes of tasks become a judgement. Rules that read files or wait are applied by
engine/checking/gate.py with these same functions; `judge` applies plain rules only, for rehearsals. A check whose
rule was not run is reported as such: it never passes silently, and it never fails an output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.composition import COMPOSITIONS, CheckPart
from handrail.domain.checks.finding import BLOCKING, Finding, FixedBy, Severity, blocks
from handrail.domain.checks.rule import (
    CheckOutcome,
    Evidence,
    Given,
    LooksAt,
    RuleCard,
    Rules,
    SchemaJudge,
    parameters_of,
    parameters_schema,
    subject_name,
)
from handrail.domain.definition.model import Check, Prompt, Tool
from handrail.domain.errors import Invalid
from handrail.domain.journal.event import Proof
from handrail.domain.json import canonical_bytes
from handrail.domain.run.scope import condition_is_true_of, evaluated_of, rendered_of
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import Lane

NESTED_MAX: Final = 8
"""How deep checks may be nested."""
FINDINGS_MAX: Final = 50
ABOUT_MAX: Final = 200
FILLED_FIX: Final = "submit an output with values that fit; if that can't be, the workflow's author must fix it"


class PlainRuleSet(Struct, frozen=True):
    """The plain rules and the schema check that outputs are judged by without waiting."""

    rules: Rules
    fits: SchemaJudge


WORST_FIRST: Final = (Severity.CRITICAL, Severity.MAJOR, Severity.MINOR)


class Judgement(Struct, frozen=True):
    """All findings, the rules that passed, and their evidence."""

    findings: tuple[Finding, ...] = ()
    passed: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    bar: Severity = Severity.MAJOR
    notes: tuple[Finding, ...] = ()
    """The findings that only say that a check was not run, or what a person should see: they never block."""
    looks_at: LooksAt = LooksAt.WORDS
    """What the rules that passed looked at; the world if one of them did."""

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """The findings for which the output is refused."""
        return tuple(one for one in self.findings if one.severity in BLOCKING[self.bar] and one not in self.notes)

    @property
    def proof(self) -> Proof:
        """What an accepted output is worth: only a look at the world verifies it."""
        if not self.passed:
            return Proof.CLAIMED
        return Proof.VERIFIED if self.looks_at is LooksAt.WORLD else Proof.CHECKED

    @property
    def is_good(self) -> bool:
        """Whether nothing blocks."""
        return not self.blocking

    @property
    def is_try(self) -> bool:
        """Whether a refusal counts as a try of the agent: not if only others can fix what blocks."""
        return any(one.fixed_by is FixedBy.AGENT for one in self.blocking)


class RuleCall(Struct, frozen=True):
    """A rule to apply, with its parameters filled in."""

    rule: str
    parameters: Mapping[str, Any]
    is_filled: bool = False
    """Whether values of the run or the output were filled in: then they may be what is wrong with the parameters."""


class Composed(Struct, frozen=True):
    """A rule made of rules, with the tasks inside it."""

    rule: str
    parameters: Mapping[str, Any]
    parts: tuple[tuple[str, CheckTask], ...]

    @property
    def card(self) -> RuleCard:
        """The card of the rule."""
        return COMPOSITIONS[self.rule].card

    def outcome(self, outcomes: Sequence[CheckOutcome]) -> CheckOutcome:
        """The outcome, given the outcomes of the parts in their order."""
        pairs = zip(self.parts, outcomes, strict=True)
        parts = [CheckPart(name, outcome, _about(task)) for (name, task), outcome in pairs]
        return COMPOSITIONS[self.rule].compose(parts, subject_name(self.parameters))


CheckTask: TypeAlias = RuleCall | Composed | CheckOutcome
"""What is left to do for a check; an outcome if it is already known without applying a rule."""


def _about(task: CheckTask) -> str:
    """The parameters of a rule inside another, in brief, so that a finding can name them."""
    if not isinstance(task, RuleCall) or not task.parameters:
        return ""
    text = ", ".join(f"{name} {_plain(value)}" for name, value in task.parameters.items())
    return f": {text[:ABOUT_MAX]}{'…' if len(text) > ABOUT_MAX else ''}"


def _plain(value: Any) -> str:
    """A parameter as a person writes it, not as Python does."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    return value if isinstance(value, str) else canonical_bytes(value).decode()


def given_of(output: Any, run: Run, lane: Lane, fits: SchemaJudge) -> Given:
    """What rules may read."""
    return Given(output=output, evaluate=partial(evaluated_of, output, run=run, lane=lane), fits=fits)


def shape_of_output(work: Prompt | Tool, output: Any, fits: SchemaJudge) -> tuple[Finding, ...]:
    """The findings of the step's own schema; checks are applied only if none of them blocks."""
    return tuple(fits(work.output, output)) if work.output is not None else ()


def tasks_of(checks: Sequence[Check], given: Given, run: Run, lane: Lane) -> list[tuple[Check, CheckTask]]:
    """The task of each check; checks whose condition is false are left out."""
    tasks = ((check, _task(check, given, run, lane)) for check in checks)
    return [(check, task) for check, task in tasks if task is not None]


def _task(check: Check, given: Given, run: Run, lane: Lane) -> CheckTask | None:
    try:
        if check.when is not None and not condition_is_true_of(given.output, check.when, run, lane):
            return None
        parameters = rendered_of(given.output, check.parameters, run, lane)
        return _asked(check.rule, parameters, given, is_filled=parameters != check.parameters)
    except Invalid as error:
        return _unreadable(check.rule, error, check.severity)


def _asked(rule: str, parameters: Mapping[str, Any], given: Given, *, is_filled: bool, depth: int = 0) -> CheckTask:
    if depth > NESTED_MAX:
        return unusable(rule, f"checks are nested more than {NESTED_MAX} deep")
    composition = COMPOSITIONS.get(rule)
    if composition is None:
        return RuleCall(rule, parameters, is_filled)
    if flaws := misfits(composition.card, parameters, given.fits, is_filled=is_filled):
        return flaws
    inner = partial(_inside, given=given, is_filled=is_filled, depth=depth + 1)
    inside = ((str(check["rule"]), inner(check)) for check in parameters["checks"])
    return Composed(rule, parameters, tuple((name, task) for name, task in inside if task is not None))


def _inside(check: Mapping[str, Any], given: Given, *, is_filled: bool, depth: int) -> CheckTask | None:
    """The task of a check inside another; None if its condition is false."""
    rule = str(check["rule"])
    try:
        if "when" in check and given.evaluate(str(check["when"])) is not True:
            return None
    except Invalid as error:
        return _unreadable(rule, error, Severity.MAJOR)
    return _asked(rule, parameters_of(check), given, is_filled=is_filled, depth=depth)


def misfits(
    card: RuleCard, parameters: Mapping[str, Any], fits: SchemaJudge, *, is_filled: bool = False
) -> CheckOutcome | None:
    """Why a rule can't be applied with these parameters, which never counts as a pass. Its author must fix that; if
    values were filled in, they may be what is wrong, and the agent can submit others."""
    flaws = (_flaw(card.name, one.message, one.where) for one in fits(parameters_schema(card), parameters))
    found = tuple(replace(one, fix=FILLED_FIX, fixed_by=FixedBy.AGENT) if is_filled else one for one in flaws)
    return CheckOutcome(findings=found, was_run=False) if found else None


def unusable(rule: str, message: str) -> CheckOutcome:
    """The outcome of a check that can't be applied as written."""
    return CheckOutcome(findings=(_flaw(rule, message),), was_run=False)


def not_run(rule: str) -> CheckOutcome:
    """The outcome of a check whose rule is not run here."""
    message = f"`{rule}` was not run here, so it proves nothing"
    note = Finding(rule=rule, severity=Severity.MINOR, where="checks", message=message)
    return CheckOutcome(findings=(note,), was_run=False)


def _flaw(rule: str, message: str, place: str = "") -> Finding:
    return Finding(
        rule=rule,
        severity=Severity.CRITICAL,
        where=f"checks.{place}" if place else "checks",
        message=f"the check can't be applied: {message}",
        fix="the workflow's author must fix it",
        unapplied=True,
        fixed_by=FixedBy.AUTHOR,
    )


def _unreadable(rule: str, error: Invalid, severity: Severity) -> CheckOutcome:
    found = Finding(
        rule=rule,
        severity=severity,
        where="checks",
        message=f"the check can't be evaluated: {error}",
        fix="submit what it reads",
        unapplied=True,
    )
    return CheckOutcome(findings=(found,), was_run=False)


def judgement_of(
    work: Prompt | Tool, shape: Sequence[Finding], outcomes: Sequence[tuple[Check, CheckOutcome]] = ()
) -> Judgement:
    """The judgement that follows from the schema's findings and the outcomes of the checks."""
    findings = [*shape, *(found for check, outcome in outcomes for found in _weighed(check, outcome))]
    remarks = [replace(one, severity=Severity.MINOR) for _, outcome in outcomes for one in outcome.remarks]
    findings += remarks
    if len(findings) > FINDINGS_MAX:  # the worst stay: cutting off one that blocks would accept the output
        findings.sort(key=lambda found: WORST_FIRST.index(found.severity))
    passing = [outcome for _, outcome in outcomes if outcome.passed]
    return Judgement(
        findings=tuple(_excerpts_once(findings[:FINDINGS_MAX])),
        passed=tuple(dict.fromkeys(check.rule for check, outcome in outcomes if outcome.passed)),
        evidence=tuple(
            replace(outcome.evidence, looks_at=outcome.looks_at)
            for _, outcome in outcomes
            if outcome.evidence is not None
        ),
        bar=work.bar,
        notes=(*(found for _, outcome in outcomes if outcome.is_not_run for found in outcome.findings), *remarks),
        looks_at=LooksAt.WORLD if any(one.looks_at is LooksAt.WORLD for one in passing) else LooksAt.WORDS,
    )


def _excerpts_once(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings; an excerpt that an earlier one shows already is left out."""
    shown: set[str] = set()
    for found in findings:
        yield replace(found, excerpt="") if found.excerpt in shown else found
        shown.add(found.excerpt)


def _weighed(check: Check, outcome: CheckOutcome) -> Iterator[Finding]:
    """The findings with the severity and message of the check; those of a rule that was not run keep their own."""
    for found in outcome.findings:
        weight = {"severity": check.severity, "message": check.message or found.message} if outcome.was_run else {}
        yield replace(found, **weight)


def judge(work: Prompt | Tool, output: Any, run: Run, lane: Lane, rule_set: PlainRuleSet) -> Judgement:
    """Judge an output by plain rules; all others are reported as not run."""
    shape = shape_of_output(work, output, rule_set.fits)
    if blocks(shape):
        return judgement_of(work, shape)
    given = given_of(output, run, lane, rule_set.fits)
    tasks = tasks_of(work.checks, given, run, lane)
    return judgement_of(work, shape, [(check, _applied(task, given, rule_set)) for check, task in tasks])


def _applied(task: CheckTask, given: Given, rule_set: PlainRuleSet) -> CheckOutcome:
    if isinstance(task, CheckOutcome):
        return task
    if isinstance(task, Composed):
        return task.outcome([_applied(part, given, rule_set) for _, part in task.parts])
    rule = rule_set.rules.get(task.rule)
    if rule is None:
        return not_run(task.rule)
    flaws = misfits(rule.card, task.parameters, rule_set.fits, is_filled=task.is_filled)
    return flaws or CheckOutcome(findings=tuple(rule.find(task.parameters, given)))
