"""The gate: checks side by side, within their time, remembered, and rules that break without harm."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.guided_runs import gate_of, led
from engine.stage import Stage, always, plan, puppet
from handrail.domain.checks.finding import Finding, FixedBy, Severity
from handrail.domain.checks.judgement import Judgement
from handrail.domain.checks.rule import CheckOutcome, Evidence, LooksAt, Reads, RuleCard
from handrail.domain.definition.model import Category, Definition, Prompt
from handrail.domain.errors import Conflict
from handrail.domain.journal.event import AttemptFailed, How, OutputRefused, Proof, StepCompleted
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.domain.run.step_path import top_lane
from handrail.engine.checking.gate import AT_ONCE, QualityGate
from handrail.engine.checking.rule import RuleUnavailable, Setting
from virtual_time import in_virtual_time

Deed = Callable[[Mapping[str, Any], Setting], Awaitable[CheckOutcome]]
BAD = Finding(rule="x", severity=Severity.MAJOR, where="a.py:3", message="it is wrong", fix="mend it", excerpt="a = 1")


@dataclass
class Puppet:
    """A rule that does as it is told."""

    name: str = "look"
    deed: Deed | None = None
    seen: str = ""
    reads: Reads = Reads.PROJECT
    calls: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def card(self) -> RuleCard:
        schema = {"path": {"type": "string"}}
        return RuleCard(name=self.name, summary="It is so.", parameters=schema, reads=self.reads, timeout="5s")

    async def apply(self, parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
        self.calls.append(parameters)
        return await self.deed(parameters, setting) if self.deed else CheckOutcome()

    async def inputs(self, parameters: Mapping[str, Any], setting: Setting) -> str:
        if self.seen == "broken":
            raise SystemExit(3)
        return self.seen


@dataclass
class Remembering:
    kept: dict[str, CheckOutcome] = field(default_factory=dict)

    async def find(self, key: str) -> CheckOutcome | None:
        return self.kept.get(key)

    async def keep(self, key: str, outcome: CheckOutcome) -> None:
        self.kept[key] = outcome


def finding(*found: Finding) -> Deed:
    async def deed(_parameters: Mapping[str, Any], _setting: Setting) -> CheckOutcome:
        return CheckOutcome(findings=found)

    return deed


def raising(error: BaseException) -> Deed:
    async def deed(_parameters: Mapping[str, Any], _setting: Setting) -> CheckOutcome:
        raise error

    return deed


def step_with(*checks: Mapping[str, Any], **more: Any) -> Definition:
    return plan({"id": "write", "prompt": "write", "checks": list(checks), **more})


async def judged(gate: QualityGate, definition: Definition, output: Any = "text") -> Judgement:
    work = definition.steps[0].work
    assert isinstance(work, Prompt)
    return await gate.judge(work, output, Run(id="run_22222222"), top_lane(definition))


def of(gate: QualityGate, *checks: Mapping[str, Any], output: Any = "text", **more: Any) -> Judgement:
    return in_virtual_time(lambda: judged(gate, step_with(*checks, **more), output))


def test_a_check_that_finds_nothing_passes_and_leaves_evidence() -> None:
    judgement = of(gate_of(Puppet()), {"rule": "look"})
    assert judgement.is_good
    assert judgement.passed == ("look",)
    assert judgement.evidence == (Evidence(rule="look", version="1.0.0", passed=True, looks_at=LooksAt.WORLD),)


WORDS, WORLD = {"rule": "contains", "text": "text"}, {"rule": "look"}
NOT_SO = {"rule": "contains", "text": "nobody says this"}


def nothing_to_judge() -> Puppet:
    async def deed(_parameters: Mapping[str, Any], _setting: Setting) -> CheckOutcome:
        note = Finding(rule="lint", severity=Severity.MINOR, where="checks", message="there is no linter")
        return CheckOutcome(findings=(note,), was_run=False, is_note=True)

    return Puppet("lint", deed)


@pytest.mark.parametrize(
    ("checks", "proof"),
    [
        ([{"rule": "lint", "severity": "critical"}], Proof.CLAIMED),
        ([{"rule": "lint"}, WORDS], Proof.CHECKED),
        ([{"rule": "lint"}, WORLD], Proof.VERIFIED),
        ([{"rule": "all_of", "checks": [{"rule": "lint"}, WORDS]}], Proof.CLAIMED),
        ([{"rule": "any_of", "checks": [{"rule": "lint"}, WORDS]}], Proof.CHECKED),
        ([{"rule": "any_of", "checks": [{"rule": "lint"}]}], Proof.CLAIMED),
        ([{"rule": "none_of", "checks": [{"rule": "lint"}]}], Proof.CLAIMED),
    ],
)
def test_a_rule_that_had_nothing_to_judge_refuses_nothing_and_proves_nothing(
    checks: list[Mapping[str, Any]], proof: Proof
) -> None:
    judgement = of(gate_of(nothing_to_judge(), Puppet()), *checks, bar="minor")
    assert judgement.is_good
    assert judgement.proof is proof
    assert [one.rule for one in judgement.evidence if one.rule == "lint"] == []


def test_a_rule_that_had_nothing_to_judge_does_not_save_one_that_fails() -> None:
    wrong = {"rule": "any_of", "checks": [{"rule": "lint"}, NOT_SO]}
    [found] = of(gate_of(nothing_to_judge()), wrong).blocking
    assert found.message == "none of these passes: lint, contains"


@pytest.mark.parametrize(
    ("checks", "proof"),
    [
        ([], Proof.CLAIMED),
        ([WORDS], Proof.CHECKED),
        ([WORLD], Proof.VERIFIED),
        ([WORDS, WORLD], Proof.VERIFIED),
        ([{"rule": "all_of", "checks": [WORDS]}], Proof.CHECKED),
        ([{"rule": "all_of", "checks": [WORDS, WORLD]}], Proof.VERIFIED),
        ([{"rule": "any_of", "checks": [WORDS, {"rule": "fail"}]}], Proof.CHECKED),
        ([{"rule": "any_of", "checks": [NOT_SO, WORLD]}], Proof.VERIFIED),
        ([{"rule": "none_of", "checks": [NOT_SO]}], Proof.CHECKED),
        ([{"rule": "none_of", "checks": [{"rule": "fail"}]}], Proof.VERIFIED),
        ([WORDS, {"rule": "fail", "severity": "minor"}], Proof.CHECKED),
    ],
)
def test_an_output_is_verified_only_if_a_check_that_passed_looked_at_the_world(
    checks: list[Mapping[str, Any]], proof: Proof
) -> None:
    judgement = of(gate_of(Puppet(), Puppet(name="fail", deed=finding(BAD))), *checks)
    assert judgement.is_good
    assert judgement.proof is proof


def test_a_remembered_look_at_the_world_is_one() -> None:
    gate = gate_of(Puppet(seen="x"), memory=Remembering())
    assert [of(gate, WORLD).proof for _ in range(2)] == [Proof.VERIFIED, Proof.VERIFIED]


def test_findings_are_as_bad_as_the_check_says_and_keep_their_excerpt() -> None:
    judgement = of(gate_of(Puppet(deed=finding(BAD))), {"rule": "look", "severity": "critical", "message": "Mend it!"})
    [found] = judgement.findings
    assert (found.severity, found.message, found.excerpt) == (Severity.CRITICAL, "Mend it!", "a = 1")
    assert not judgement.is_good
    assert judgement.passed == ()
    assert not judgement.evidence[0].passed


@pytest.mark.parametrize(
    ("bar", "severity", "is_good"),
    [
        ("major", "minor", True),
        ("major", "major", False),
        ("critical", "major", True),
        ("critical", "critical", False),
        ("minor", "minor", False),
    ],
)
def test_a_step_may_set_its_own_bar(bar: str, severity: str, is_good: bool) -> None:
    gate = gate_of(Puppet(deed=finding(BAD)))
    assert of(gate, {"rule": "look", "severity": severity}, bar=bar).is_good is is_good


def test_checks_that_wait_run_side_by_side_but_only_so_many() -> None:
    at_once: list[int] = [0]
    under_way = 0

    async def deed(_parameters: Mapping[str, Any], _setting: Setting) -> CheckOutcome:
        nonlocal under_way
        under_way += 1
        at_once.append(under_way)
        await asyncio.sleep(1)
        under_way -= 1
        return CheckOutcome()

    async def scene() -> float:
        began = asyncio.get_running_loop().time()
        await judged(gate_of(Puppet(deed=deed)), step_with(*[{"rule": "look"}] * 8))
        return asyncio.get_running_loop().time() - began

    assert in_virtual_time(scene) == pytest.approx(2.0, abs=0.1)
    assert max(at_once) == AT_ONCE


def test_what_was_found_on_the_very_same_is_not_looked_for_again() -> None:
    async def deed(_parameters: Mapping[str, Any], _setting: Setting) -> CheckOutcome:
        return CheckOutcome(findings=(BAD,), evidence=Evidence(rule="look", version="1", passed=False))

    rule, memory = Puppet(deed=deed, seen="sha256:1"), Remembering()
    gate = gate_of(rule, memory=memory)
    first = of(gate, {"rule": "look", "path": "a"})
    second = of(gate, {"rule": "look", "path": "a"})
    assert len(rule.calls) == 1
    assert second.findings == first.findings
    assert [one.evidence[0].cached for one in (first, second)] == [False, True]
    assert second.evidence[0].digest == "sha256:1"
    of(gate, {"rule": "look", "path": "b"})
    rule.seen = "sha256:2"
    of(gate, {"rule": "look", "path": "a"})
    assert len(rule.calls) == 3


def test_what_is_not_settled_is_not_remembered() -> None:
    async def deed(_parameters: Mapping[str, Any], _setting: Setting) -> CheckOutcome:
        missing = Evidence(rule="look", version="1", passed=False, is_settled=False)
        return CheckOutcome(findings=(BAD,), evidence=missing)

    memory = Remembering()
    of(gate_of(Puppet(deed=deed, seen="sha256:1"), memory=memory), {"rule": "look"})
    of(gate_of(Puppet(deed=raising(ValueError("no")), seen="sha256:1"), memory=memory), {"rule": "look"})
    of(gate_of(Puppet(deed=finding(BAD), seen="sha256:1"), memory=memory), {"rule": "look"})
    assert not memory.kept


def test_what_was_changed_while_it_was_judged_is_neither_accepted_nor_remembered() -> None:
    async def deed(_parameters: Mapping[str, Any], _setting: Setting) -> CheckOutcome:
        rule.seen = "sha256:2"
        return CheckOutcome(evidence=Evidence(rule="look", version="1", passed=True))

    rule, memory = Puppet(deed=deed, seen="sha256:1"), Remembering()
    [found] = of(gate_of(rule, memory=memory), {"rule": "look"}).findings
    assert (found.message, found.fixed_by) == ("the project changed while it was checked", FixedBy.AGENT)
    assert not memory.kept, "it may be the outcome of either"


async def _hanging(_parameters: Mapping[str, Any], _setting: Setting) -> CheckOutcome:
    await asyncio.sleep(1_000)
    return CheckOutcome()


async def _nonsense(_parameters: Mapping[str, Any], _setting: Setting) -> Any:
    return "fine"


async def _odd_findings(_parameters: Mapping[str, Any], _setting: Setting) -> Any:
    return CheckOutcome(findings=("wrong",))  # type: ignore[arg-type]  # what a rule of others may do


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        (raising(ValueError("no such thing")), "ValueError: no such thing"),
        (raising(SystemExit(3)), "SystemExit"),
        (raising(RecursionError()), "RecursionError"),
        (_hanging, "longer than 5s"),
        (_nonsense, "AttributeError"),
        (_odd_findings, "not a finding"),
    ],
)
def test_a_rule_that_breaks_is_a_finding_of_its_own_and_never_a_pass(deed: Deed, words: str) -> None:
    judgement = of(gate_of(Puppet(deed=deed)), {"rule": "look", "severity": "minor"}, {"rule": "contains", "text": "t"})
    [found] = judgement.findings
    assert found.message.startswith("the rule is broken: ")
    assert words in found.message
    assert judgement.passed == ("contains",)
    assert not of(gate_of(Puppet(deed=deed)), {"rule": "look"}).is_good


def test_a_rule_that_can_not_say_what_it_looks_at_is_broken_too() -> None:
    rule = Puppet(seen="broken")
    [found] = of(gate_of(rule), {"rule": "look"}).findings
    assert found.message == "the rule is broken: it can't say what it reads: SystemExit: 3"
    assert not rule.calls


def test_a_rule_that_asks_for_it_is_retried() -> None:
    tries: list[int] = []

    async def deed(_parameters: Mapping[str, Any], _setting: Setting) -> CheckOutcome:
        tries.append(1)
        if len(tries) < 3:
            raise RuleUnavailable("the network is down")
        return CheckOutcome()

    assert of(gate_of(Puppet(deed=deed)), {"rule": "look"}).is_good
    tries.clear()
    assert (
        "it failed 3 times"
        in of(gate_of(Puppet(deed=raising(RuleUnavailable("no")))), {"rule": "look"}).findings[0].message
    )


def test_parameters_that_do_not_fit_must_be_fixed_by_the_author_and_never_a_pass() -> None:
    rule = Puppet()
    judgement = of(gate_of(rule), {"rule": "look", "path": 3, "severity": "minor"}, {"rule": "look", "pth": "a"})
    assert not judgement.is_good
    assert [found.fix for found in judgement.findings] == ["the workflow's author must fix it"] * 2
    assert not rule.calls


def test_a_rule_that_is_unknown_is_reported_with_the_nearest() -> None:
    [found] = of(gate_of(Puppet()), {"rule": "lok", "severity": "minor"}).findings
    assert found.severity is Severity.CRITICAL
    assert "look" in found.message


def test_where_only_plain_rules_are_run_the_others_are_reported_and_the_step_is_claimed() -> None:
    rule = Puppet()
    judgement = of(
        gate_of(rule, is_plain=True), {"rule": "look", "severity": "critical"}, {"rule": "contains", "text": "t"}
    )
    assert judgement.is_good
    assert judgement.passed == ("contains",)
    assert not rule.calls


def test_a_check_inside_another_may_wait_and_its_condition_counts() -> None:
    rule = Puppet(deed=finding(BAD))
    inner = {"rule": "look"}
    gate = gate_of(rule)
    assert not of(gate, {"rule": "all_of", "checks": [inner]}).is_good
    assert of(gate, {"rule": "any_of", "checks": [inner, {"rule": "contains", "text": "text"}]}).is_good
    assert of(gate, {"rule": "none_of", "checks": [inner]}).is_good
    assert not of(gate, {"rule": "none_of", "checks": [{"rule": "contains", "text": "text"}]}).is_good
    assert of(gate, {"rule": "all_of", "checks": [{**inner, "when": "1 == 2"}]}).is_good
    assert not of(gate, {"rule": "none_of", "checks": [{"rule": "nobody"}]}).is_good
    assert not of(gate, {"rule": "any_of", "checks": [{"rule": "nobody"}]}).is_good


def test_checks_in_checks_have_an_end() -> None:
    deep: dict[str, Any] = {"rule": "contains", "text": "text"}
    for _ in range(20):
        deep = {"rule": "all_of", "checks": [deep]}
    [found] = of(gate_of(), deep).findings
    assert "deep" in found.message


def test_a_rule_sees_the_output_the_project_and_what_the_run_says(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def deed(_parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
        seen.extend([setting.given.output, setting.given.evaluate("run.id"), setting.project])
        return CheckOutcome()

    of(gate_of(Puppet(deed=deed), project=tmp_path), {"rule": "look"}, output={"a": 1})
    assert seen == [{"a": 1}, "run_22222222", tmp_path]


# --- tries ------------------------------------------------------------------------------------------


def test_after_so_many_tries_somebody_must_decide_whatever_the_policy() -> None:
    definition = step_with({"rule": "equals", "value": "right"}, max_tries=3, on_failure="compensate")

    async def scene() -> tuple[Run, Run]:
        climb = await led(definition)
        for _ in range(3):
            assert not (await climb.submit("write", "wrong")).accepted
        failed = await climb.now()
        await climb.stage.control.act(climb.run, Action.RETRY, actor="person:ada", reason="once more", step="write")
        await climb.submit("write", "right")
        return failed, await climb.stage.worker.settled(climb.run)

    failed, run = in_virtual_time(scene)
    state = failed.step("write")
    assert failed.status is RunStatus.RUNNING
    assert (state.status, state.asks, state.category) == (StepStatus.FAILED, True, Category.INVALID_INPUT)
    assert state.message == "the output was refused 3 times"
    assert run.status is RunStatus.COMPLETED


FOR_A_PERSON = replace(BAD, unapplied=True, fixed_by=FixedBy.PERSON)
FAILING, MISSING = {"rule": "look"}, {"rule": "gone"}


@pytest.mark.parametrize(
    ("check", "fixed_by"),
    [
        (MISSING, FixedBy.PERSON),
        (FAILING, FixedBy.AGENT),
        ({"rule": "unknown"}, FixedBy.AUTHOR),
        ({"rule": "crash"}, FixedBy.AUTHOR),
        ({"rule": "look", "path": 3}, FixedBy.AUTHOR),
        ({"rule": "look", "path": "{{ output.path }}"}, FixedBy.AGENT),
        ({"rule": "all_of", "checks": [{"rule": "look", "path": "{{ output.path }}"}]}, FixedBy.AGENT),
        ({"rule": "length", "of": "missing", "min": 1}, FixedBy.AGENT),
        ({"rule": "expression", "that": "output.missing.more > 1"}, FixedBy.AGENT),
        ({"rule": "any_of", "checks": [MISSING]}, FixedBy.PERSON),
        ({"rule": "any_of", "checks": [MISSING, FAILING]}, FixedBy.AGENT),
        ({"rule": "none_of", "checks": [MISSING]}, FixedBy.PERSON),
        ({"rule": "all_of", "checks": [MISSING]}, FixedBy.PERSON),
    ],
)
def test_a_refusal_says_who_can_fix_it_and_counts_only_for_the_agent(
    check: Mapping[str, Any], fixed_by: FixedBy
) -> None:
    missing = Puppet(name="gone", deed=finding(FOR_A_PERSON))
    gate = gate_of(Puppet(deed=finding(BAD)), missing, Puppet(name="crash", deed=raising(OSError("no"))))
    judgement = of(gate, check, output={"path": 3})
    assert not judgement.is_good
    assert {found.fixed_by for found in judgement.blocking} == {fixed_by}
    assert judgement.is_try is (fixed_by is FixedBy.AGENT)


def test_what_can_not_be_checked_may_be_submitted_until_somebody_has_fixed_it() -> None:
    rule = Puppet(deed=finding(FOR_A_PERSON))

    async def scene() -> tuple[Run, list[Any]]:
        climb = await led(step_with({"rule": "look"}, max_tries=2))
        climb.guide = dataclasses.replace(climb.guide, gate=gate_of(rule))
        for _ in range(4):
            assert (await climb.submit("write", "text")).unchecked
        assert (await climb.now()).step("write").unchecked
        rule.deed = None
        assert (await climb.submit("write", "text")).accepted
        return await climb.stage.worker.settled(climb.run), await climb.events()

    run, events = in_virtual_time(scene)
    assert run.status is RunStatus.COMPLETED
    refused = [event for event in events if isinstance(event, OutputRefused)]
    assert [(event.unchecked, event.findings[0]["fixed_by"]) for event in refused] == [(True, "person")] * 4


def test_only_what_still_blocks_is_reported_of_a_failed_try() -> None:
    checks = ({"rule": "equals", "value": "right"}, {"rule": "length", "min": 100, "severity": "minor"})

    async def scene() -> tuple[int, int, list[Any]]:
        climb = await led(step_with(*checks))
        refused = await climb.submit("write", "wrong")
        accepted = await climb.submit("write", "right")
        return len(refused.findings), len(accepted.findings), await climb.events()

    refused, accepted, events = in_virtual_time(scene)
    assert (refused, accepted) == (1, 1)
    [done] = [event for event in events if isinstance(event, StepCompleted)]
    assert [one["rule"] for one in done.findings] == ["length"], "what nobody has to mend is carried on as a note"


def test_the_journal_keeps_what_checks_found_and_what_they_leave() -> None:
    async def scene() -> list[Any]:
        climb = await led(step_with({"rule": "equals", "value": "right"}))
        await climb.submit("write", "wrong")
        await climb.submit("write", "right")
        return await climb.events()

    events = in_virtual_time(scene)
    [refused] = [event for event in events if isinstance(event, OutputRefused)]
    [done] = [event for event in events if isinstance(event, StepCompleted)]
    assert refused.evidence == ({"rule": "equals", "version": "1.0.0", "passed": False},)
    assert (done.proof, done.checks) == (Proof.CHECKED, ("equals",))
    assert done.evidence == ({"rule": "equals", "version": "1.0.0", "passed": True},)


# --- results of tools -------------------------------------------------------------------------------


def checked_run(*checks: Mapping[str, Any], **step: Any) -> tuple[Run, list[Any], Stage]:
    stage = Stage(puppet("x.make"), puppet("x.unmake"), puppet("x.bad", always(Category.PERMISSION)))
    steps = plan({"id": "a", "tool": "x.make", "checks": list(checks), "undo": {"tool": "x.unmake"}, **step})

    async def scene() -> tuple[Run, list[Any]]:
        await stage.open(judge=gate_of().judge)
        run = await stage.worker.settled((await stage.start(steps)).id)
        return run, await stage.events(run.id)

    run, events = in_virtual_time(scene)
    return run, events, stage


def test_a_tools_result_is_checked_like_an_agents_output() -> None:
    run, events, _ = checked_run({"rule": "equals", "value": {"did": "a"}})
    assert run.status is RunStatus.COMPLETED
    [done] = [event for event in events if isinstance(event, StepCompleted)]
    assert done.checks == ("equals",)
    assert done.evidence


def test_a_result_that_fails_its_checks_fails_the_step_and_what_was_done_is_undone() -> None:
    run, events, stage = checked_run({"rule": "equals", "value": "else"}, on_failure="compensate")
    assert run.status is RunStatus.COMPENSATED
    assert run.step("a").status is StepStatus.COMPENSATED
    assert len(stage.box.tools["x.unmake"].calls) == 1
    [refused] = [event for event in events if isinstance(event, OutputRefused)]
    assert refused.output == {"did": "a"}
    [failed] = [event for event in events if isinstance(event, AttemptFailed)]
    assert failed.category is Category.TOOL_ERROR
    assert "failed its checks" in failed.message


def test_an_instant_tools_result_is_checked_too() -> None:
    stage = Stage()
    steps = plan({"id": "a", "tool": "value.set", "args": {"value": 1}, "checks": [{"rule": "equals", "value": 2}]})

    async def scene() -> Run:
        await stage.open(judge=gate_of().judge)
        return await stage.worker.settled((await stage.start(steps)).id)

    assert in_virtual_time(scene).step("a").status is StepStatus.FAILED


def test_a_step_that_failed_by_itself_has_nothing_to_undo() -> None:
    stage = Stage(puppet("x.bad", always(Category.PERMISSION)))

    async def scene() -> None:
        run = await stage.play(plan({"id": "a", "tool": "x.bad", "undo": {"tool": "x.undo"}}))
        with pytest.raises(Conflict, match="nothing to undo"):
            await stage.control.record_compensation(
                run.id, "a", how=How.RECORDED, description="d", actor="person:ada", details={}
            )

    in_virtual_time(scene)
