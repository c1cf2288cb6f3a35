"""Judgement: what handrail says of an output that is handed in: its shape first, then the step's checks.

Pure: what the checks of a step come to is put together here; applying rules that read files or wait is
engine/gate.py's. A check whose rule is not there is told as not run; it never passes in silence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.check import Finding, Severity, blocks
from handrail.domain.definition import Check, Prompt, Tool
from handrail.domain.errors import Invalid
from handrail.domain.path import Lane
from handrail.domain.rule import Evidence, Given, Rules, SchemaJudge
from handrail.domain.run import Run
from handrail.domain.values import evaluated_of, holds_of, rendered_of


class Means(Struct, frozen=True):
    """What outputs are judged by without waiting."""

    rules: Rules
    fits: SchemaJudge


class Judgement(Struct, frozen=True):
    """All that was found, the rules that were run and found nothing, and what they leave behind."""

    findings: tuple[Finding, ...] = ()
    passed: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    bar: Severity = Severity.MAJOR

    @property
    def is_good(self) -> bool:
        """Whether nothing blocks."""
        return not blocks(self.findings, self.bar)


class Asked(Struct, frozen=True):
    """A check that is to be applied, with its parameters filled in."""

    check: Check
    parameters: Mapping[str, Any]


def given_of(output: Any, run: Run, lane: Lane, fits: SchemaJudge) -> Given:
    """What rules may look at."""
    return Given(output=output, evaluate=partial(evaluated_of, output, run=run, lane=lane), fits=fits)


def asked_of(check: Check, output: Any, run: Run, lane: Lane) -> Asked | Finding | None:
    """A check as it is to be applied; None if its condition does not hold, a finding if that can't be worked out."""
    try:
        if check.when is not None and not holds_of(output, check.when, run, lane):
            return None
        return Asked(check, rendered_of(output, check.parameters, run, lane))
    except Invalid as error:
        return Finding(
            rule=check.rule,
            severity=check.severity,
            where="checks",
            message=f"the check can't be worked out: {error}",
            fix="hand in what it reads",
        )


def weighed(check: Check, findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings of a check, as bad as the check says they are."""
    for found in findings:
        yield replace(found, severity=check.severity, message=check.message or found.message)


def not_run(rule: str) -> Finding:
    """What is said of a check whose rule is not run here."""
    message = f"`{rule}` was not run here, so the step counts as claimed"
    return Finding(rule=rule, severity=Severity.MINOR, where="checks", message=message)


def judge(work: Prompt | Tool, output: Any, run: Run, lane: Lane, means: Means) -> Judgement:
    """What is to be said of an output by rules that do not wait; they are applied only if it has the right shape."""
    shape = tuple(means.fits(work.output, output)) if work.output is not None else ()
    if blocks(shape):
        return Judgement(shape)
    findings: list[Finding] = list(shape)
    passed: list[str] = []
    given = given_of(output, run, lane, means.fits)
    for check in work.checks:
        found = list(_applied(check, asked_of(check, output, run, lane), given, means.rules))
        findings += found
        if check.rule in means.rules and not found:
            passed.append(check.rule)
    return Judgement(tuple(findings), tuple(dict.fromkeys(passed)), bar=work.bar)


def _applied(check: Check, asked: Asked | Finding | None, given: Given, rules: Rules) -> Iterator[Finding]:
    rule = rules.get(check.rule)
    if isinstance(asked, Finding):
        yield asked
    elif asked is not None and rule is None:
        yield not_run(check.rule)
    elif asked is not None and rule is not None:
        yield from weighed(check, rule(asked.parameters, given))
