"""One judge: a rehearsal and the gate say the same of every output, whichever applies the checks.

Each case is judged by both: by the gate with all rules, by the gate where only plain rules are run, and by the function
that rehearsals use. The last two must agree in everything but evidence; the first must never accept less than they."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.guided_runs import gate_of
from engine.guided_runs import judge as fits
from engine.stage import plan
from handrail.domain.checks.finding import Finding, Severity
from handrail.domain.checks.judgement import FINDINGS_MAX, Judgement, PlainRuleSet, judge, judgement_of
from handrail.domain.checks.rule import CheckOutcome
from handrail.domain.definition import model
from handrail.domain.definition.model import Definition, Prompt
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import top_lane
from handrail.rules.registry import built_in
from virtual_time import in_virtual_time

Check = Mapping[str, Any]

HERE: Check = {"rule": "file_exists", "path": "here.txt"}
GONE: Check = {"rule": "file_exists", "path": "gone.txt"}
YES: Check = {"rule": "contains", "text": "x"}
NO: Check = {"rule": "contains", "text": "y"}
BAD: Check = {"rule": "contains", "txt": "x"}
RUN = Run(id="run_22222222", inputs={"least": 2})


def of(rule: str, *checks: Check, **more: Any) -> Check:
    return {"rule": rule, "checks": list(checks), **more}


CASES: list[tuple[Check, str]] = [
    # A check, and what the function for rehearsals says: passed, refused, or not run.
    (YES, "passed"),
    (NO, "refused"),
    (BAD, "refused"),
    ({"rule": "length"}, "refused"),
    (HERE, "not run"),
    (GONE, "not run"),
    ({**NO, "severity": "minor"}, "noted"),
    ({**NO, "when": "inputs.least > 2"}, "left out"),
    ({**NO, "when": "output.a.b == 1"}, "refused"),
    (of("all_of", YES, YES), "passed"),
    (of("all_of", YES, NO), "refused"),
    (of("all_of", HERE, YES), "not run"),
    (of("all_of", HERE, NO), "refused"),
    (of("all_of", HERE, BAD), "refused"),
    (of("all_of", HERE, YES, severity="critical"), "not run"),
    (of("all_of", {**NO, "when": "nobody.knows"}), "refused"),
    (of("all_of", {**NO, "when": "inputs.least > 2"}), "left out"),
    (of("any_of", HERE, YES), "passed"),
    (of("any_of", HERE, NO), "not run"),
    (of("any_of", NO, NO), "refused"),
    (of("any_of", BAD), "refused"),
    (of("any_of", {**NO, "when": "inputs.least > 2"}), "left out"),
    (of("none_of", GONE, NO), "not run"),
    (of("none_of", GONE, YES), "refused"),
    (of("none_of", NO), "passed"),
    (of("none_of", BAD), "refused"),
    (of("none_of", of("any_of", BAD)), "refused"),
    (of("none_of", {**NO, "when": "nobody.knows"}), "refused"),
    (of("none_of", {**YES, "when": "inputs.least > 2"}), "left out"),
    (of("any_of"), "refused"),
    (of("all_of", of("any_of", HERE, NO), YES), "not run"),
    (of("all_of", of("any_of", HERE, NO), NO), "refused"),
    (of("any_of", of("all_of", HERE, YES), YES), "passed"),
    (of("none_of", of("all_of", HERE, NO)), "passed"),
    (of("none_of", of("none_of", GONE)), "not run"),
    (of("all_of"), "refused"),
    (of("all_of", YES, timeout="5s", of="a"), "passed"),
    (of("all_of", YES, surplus=True), "refused"),
]


def definition_of(check: Check, bar: str) -> Definition:
    return plan({"id": "write", "prompt": "write", "checks": [check], "bar": bar}, inputs={"least": {"default": 2}})


def work_of(definition: Definition) -> Prompt:
    work = definition.steps[0].work
    assert isinstance(work, Prompt)
    return work


def rehearsed(check: Check, bar: str = "major") -> Judgement:
    definition = definition_of(check, bar)
    return judge(work_of(definition), "x", RUN, top_lane(definition), PlainRuleSet(built_in(), fits))


def gated(check: Check, bar: str = "major", **more: Any) -> Judgement:
    definition = definition_of(check, bar)
    gate = gate_of(**more)
    return in_virtual_time(lambda: gate.judge(work_of(definition), "x", RUN, top_lane(definition)))


def word_for(judgement: Judgement) -> str:
    if judgement.passed:
        return "passed"
    if not judgement.is_good:
        return "refused"
    if judgement.notes:
        return "not run"
    return "noted" if judgement.findings else "left out"


@pytest.mark.parametrize(("check", "expected"), CASES, ids=repr)
def test_a_rehearsal_says_what_the_gate_says_where_only_plain_rules_are_run(check: Check, expected: str) -> None:
    by_rehearsal = rehearsed(check)
    assert replace(gated(check, is_plain=True), evidence=()) == by_rehearsal
    assert word_for(by_rehearsal) == expected


@pytest.mark.parametrize(("check", "expected"), CASES, ids=repr)
def test_what_a_rehearsal_decides_the_gate_decides_with_all_rules(check: Check, expected: str, tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("x", encoding="utf-8")
    said = word_for(gated(check, project=tmp_path))
    assert said != "not run", "with all rules, each is run"
    if expected != "not run":
        assert said == expected


@pytest.mark.parametrize(
    "check", [HERE, of("all_of", HERE, YES), of("any_of", GONE, NO), of("none_of", HERE)], ids=repr
)
def test_what_is_not_run_never_refuses_and_never_vouches_whatever_the_bar(check: Check) -> None:
    for bar in Severity:
        for judgement in (rehearsed(check, bar.value), gated(check, bar.value, is_plain=True)):
            assert judgement.is_good
            assert judgement.passed == ()
            assert judgement.evidence == ()
            assert judgement.findings


def test_a_file_whose_name_looks_like_a_place_in_the_checks_is_only_a_file(tmp_path: Path) -> None:
    for path in ("checks", "checks.py"):
        assert gated(of("none_of", {"rule": "file_exists", "path": path}), project=tmp_path).passed == ("none_of",)


def test_a_step_is_judged_by_its_own_bar_in_both() -> None:
    major = {**NO, "severity": "major"}
    assert rehearsed(major, "critical").is_good
    assert gated(major, "critical").is_good
    assert not rehearsed({**NO, "severity": "minor"}, "minor").is_good
    assert not gated({**NO, "severity": "minor"}, "minor").is_good


def test_a_finding_that_blocks_is_never_cut_off_by_many_that_do_not() -> None:
    minor = model.Check(rule="contains", severity=Severity.MINOR)
    critical = model.Check(rule="length", severity=Severity.CRITICAL)
    small = Finding(rule="contains", severity=Severity.MINOR, where="output", message="missing")
    large = Finding(rule="length", severity=Severity.CRITICAL, where="output", message="too short")
    outcomes = [(minor, CheckOutcome(findings=(small,) * 60)), (critical, CheckOutcome(findings=(large,)))]
    judgement = judgement_of(Prompt(prompt="Go."), (), outcomes)
    assert len(judgement.findings) == FINDINGS_MAX
    assert [one.rule for one in judgement.blocking] == ["length"]
