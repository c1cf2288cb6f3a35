"""Judgement: what handrail says of an output that is handed in: its shape first, then the step's checks.

Pure: the rules are passed in. A check whose rule is not there is told as not run; it never passes in silence."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.check import Finding, Severity, blocks
from handrail.domain.definition import Check, Prompt, Tool
from handrail.domain.errors import Invalid
from handrail.domain.path import Lane
from handrail.domain.rule import Given, Rules, SchemaJudge
from handrail.domain.run import Run
from handrail.domain.values import evaluated_of, holds_of, rendered_of


class Means(Struct, frozen=True):
    """What outputs are judged by."""

    rules: Rules
    fits: SchemaJudge


class Judgement(Struct, frozen=True):
    """All that was found, and the rules that were run and found nothing that blocks."""

    findings: tuple[Finding, ...] = ()
    passed: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether nothing blocks."""
        return not blocks(self.findings)


def judge(work: Prompt | Tool, output: Any, run: Run, lane: Lane, means: Means) -> Judgement:
    """What is to be said of an output; checks are applied only if it has the right shape."""
    shape = tuple(means.fits(work.output, output)) if work.output is not None else ()
    if blocks(shape):
        return Judgement(shape)
    findings: list[Finding] = list(shape)
    passed: list[str] = []
    for check in work.checks:
        found = list(_applied(check, output, run, lane, means))
        findings += found
        if check.rule in means.rules and not blocks(found):
            passed.append(check.rule)
    return Judgement(tuple(findings), tuple(dict.fromkeys(passed)))


def _applied(check: Check, output: Any, run: Run, lane: Lane, means: Means) -> Iterator[Finding]:
    rule = means.rules.get(check.rule)
    try:
        if check.when is not None and not holds_of(output, check.when, run, lane):
            return
        if rule is None:
            yield _not_run(check)
            return
        parameters = rendered_of(output, check.parameters, run, lane)
    except Invalid as error:
        yield Finding(
            rule=check.rule,
            severity=check.severity,
            where="checks",
            message=f"the check can't be worked out: {error}",
            fix="hand in what it reads",
        )
        return
    given = Given(output=output, evaluate=partial(evaluated_of, output, run=run, lane=lane), fits=means.fits)
    for found in rule(parameters, given):
        yield replace(found, severity=check.severity, message=check.message or found.message)


def _not_run(check: Check) -> Finding:
    message = f"`{check.rule}` was not run: there is no such rule here yet, so the step counts as claimed"
    return Finding(rule=check.rule, severity=Severity.MINOR, where="checks", message=message)
