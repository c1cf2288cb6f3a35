"""The checks of a step for readers: what each looked at, whether it passed, its evidence and its findings.

Pure functions of the events in which outputs were accepted or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from handrail.domain.checks.rule import LooksAt, looked_at
from handrail.domain.instant import instant_text
from handrail.domain.journal.event import Entry, OutputRefused, Proof, StepCompleted
from handrail.engine.reading.step_view import Shown

JUDGED: Final = frozenset({"step_completed", "output_refused"})
"""The kinds of events that carry evidence."""


class JudgedCheck(Shown, frozen=True):
    """One check that an output went through."""

    rule: str
    passed: bool
    looks_at: LooksAt
    evidence: Mapping[str, Any] = {}
    findings: tuple[Mapping[str, Any], ...] = ()


class JudgedOutput(Shown, frozen=True):
    """An output that was accepted or refused, and the checks that it went through."""

    n: int
    at: str
    by: str
    accepted: bool
    proof: Proof | None = None
    checks: tuple[JudgedCheck, ...] = ()
    findings: tuple[Mapping[str, Any], ...] = ()
    """Findings of no check that left evidence, such as those of the output's schema."""


def judged_output(entry: Entry) -> JudgedOutput | None:
    """The output that an event is about, if it went through checks or was refused."""
    event = entry.event
    if not isinstance(event, StepCompleted | OutputRefused) or not (event.evidence or event.findings):
        return None
    rules = {str(one.get("rule", "")) for one in event.evidence}
    return JudgedOutput(
        n=entry.n,
        at=instant_text(entry.at),
        by=entry.actor,
        accepted=isinstance(event, StepCompleted),
        proof=event.proof if isinstance(event, StepCompleted) else None,
        checks=tuple(_check(one, event.findings) for one in event.evidence),
        findings=tuple(one for one in event.findings if one.get("rule") not in rules),
    )


def _check(evidence: Mapping[str, Any], findings: Sequence[Mapping[str, Any]]) -> JudgedCheck:
    rule = str(evidence.get("rule", ""))
    return JudgedCheck(
        rule=rule,
        passed=bool(evidence.get("passed")),
        looks_at=looked_at(evidence),
        evidence=evidence,
        findings=tuple(one for one in findings if one.get("rule") == rule),
    )
