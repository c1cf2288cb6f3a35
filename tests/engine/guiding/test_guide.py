"""The guide: one step at a time to each agent, what it did is taken in once, and what does not hold is not taken in."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.guided_runs import CLAUDE, ONE, SHAPED, TWO, guide_of, led
from engine.stage import Stage, plan, puppet, taking
from handrail.domain.checks.finding import Severity
from handrail.domain.errors import Conflict, Invalid, NotFound
from handrail.domain.journal.event import (
    ActionRecorded,
    DecisionRecorded,
    Event,
    Mode,
    Outcome,
    OutputRefused,
    Proof,
    StepCompleted,
    VarsSet,
)
from handrail.domain.run.command import StartRun
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.domain.run.submission import Submission, Verdict
from virtual_time import in_virtual_time


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


# --- what comes next -------------------------------------------------------------------------------------


def test_steps_come_one_by_one_and_handrail_does_its_own_between_them() -> None:
    definition = plan(
        {"id": "write", "prompt": "write"},
        {"id": "build", "tool": "x.slow"},
        {"id": "read", "prompt": "read"},
    )

    async def scene() -> tuple[list[str], Run]:
        climb = await led(definition, puppets=[puppet("x.slow", taking(5))])
        first = await climb.next()
        await climb.submit("write", "text")
        second = await climb.next()
        await climb.submit("read")
        return [first.step, second.step, (await climb.next()).step], await climb.now()

    steps, run = in_virtual_time(scene)
    assert steps == ["write", "read", ""]
    assert run.status is RunStatus.COMPLETED
    assert run.step("write").output == "text"
    assert run.step("write").proof == Proof.CLAIMED.value


def test_whoever_can_not_wait_for_handrails_own_steps_is_shown_that_they_go_on() -> None:
    definition = plan({"id": "build", "tool": "x.slow"}, {"id": "read", "prompt": "read"})

    async def scene() -> tuple[str, bool, str]:
        climb = await led(definition, puppets=[puppet("x.slow", taking(60))])
        early = await climb.next(within_s=10)
        return early.step, early.prospect.is_settled, (await climb.next(within_s=60)).step

    assert in_virtual_time(scene) == ("", False, "read")


def test_while_it_waits_an_agent_is_shown_how_far_handrail_is_each_number_once() -> None:
    steps = [{"id": f"s{number}", "tool": "x.slow"} for number in range(3)]
    definition = plan(*steps, {"id": "read", "prompt": "read"})
    told: list[tuple[int, int | None]] = []

    async def tell(number: int, total: int | None) -> None:
        told.append((number, total))

    async def scene() -> str:
        climb = await led(definition, puppets=[puppet("x.slow", taking(5))])
        return (await climb.guide.look(climb.run, within_s=100, report=tell)).step

    assert in_virtual_time(scene) == "read"
    assert told == [(0, 4), (1, 4), (2, 4)]


def test_asking_again_brings_the_same_step_and_writes_nothing() -> None:
    async def scene() -> tuple[str, str, int, int]:
        climb = await led(TWO)
        first = await climb.next()
        again = await climb.next()
        return first.step, again.step, first.run.n, again.run.n

    first, again, n, still = in_virtual_time(scene)
    assert first == again == "write"
    assert n == still


def test_a_step_whose_condition_does_not_hold_is_not_offered_nor_taken_in() -> None:
    definition = plan(
        {"id": "write", "prompt": "write", "when": "inputs.wanted"},
        {"id": "read", "prompt": "read", "after": []},
        inputs={"wanted": {"type": "boolean"}},
    )

    async def scene() -> str:
        stage = Stage()
        await stage.open(picks_up=False)
        run = await stage.worker.dispatch.start(definition, {"wanted": False}, actor=CLAUDE)
        guide = guide_of(stage)
        with pytest.raises(Conflict, match="its condition does not hold"):
            await guide.submit(run.id, Submission(step="write"), actor=CLAUDE)
        return (await guide.look(run.id)).step

    assert in_virtual_time(scene) == "read"


def test_a_paused_run_has_nothing_for_agents_and_takes_in_no_step_that_was_not_started() -> None:
    async def scene() -> str:
        climb = await led(TWO)
        await climb.act(Action.PAUSE)
        with pytest.raises(Conflict, match="paused"):
            await climb.submit("write")
        return (await climb.next(within_s=0)).step

    assert in_virtual_time(scene) == ""


def test_what_an_agent_has_started_before_the_run_was_paused_it_may_submit() -> None:
    async def scene() -> tuple[Verdict, Run, str]:
        climb = await led(TWO)
        await climb.next("ann")
        await climb.act(Action.PAUSE)
        verdict = await climb.submit("write", "x", agent="ann")
        return verdict, await climb.now(), (await climb.next("ann", within_s=0)).step

    verdict, run, step = in_virtual_time(scene)
    assert verdict.accepted
    assert (run.status, run.step("write").status, step) == (RunStatus.PAUSED, StepStatus.COMPLETED, "")


# --- submitting ------------------------------------------------------------------------------------------


def test_what_is_submitted_twice_is_taken_in_once_and_the_second_time_says_so() -> None:
    async def scene() -> tuple[list[Verdict], list[Event]]:
        climb = await led(TWO)
        verdicts = [await climb.submit("write", {"file": "a"}, vars={"x": 1}, note="hard") for _ in range(2)]
        return verdicts, await climb.events()

    verdicts, events = in_virtual_time(scene)
    assert verdicts == [Verdict(accepted=True), Verdict(accepted=True, repeated=True)]
    assert kinds(events).count("StepCompleted") == kinds(events).count("VarsSet") == 1
    assert kinds(events).count("ActionRecorded") == 1


@pytest.mark.parametrize("is_slow", [False, True])
def test_what_is_submitted_twice_at_the_same_instant_is_taken_in_once(is_slow: bool) -> None:
    async def scene() -> tuple[list[Verdict], list[Event]]:
        climb = await led(TWO, is_slow=is_slow)
        verdicts = await asyncio.gather(*(climb.submit("write", "same") for _ in range(5)))
        return list(verdicts), await climb.events()

    verdicts, events = in_virtual_time(scene)
    assert all(verdict.accepted for verdict in verdicts)
    assert [verdict.repeated for verdict in verdicts].count(False) == 1
    assert kinds(events).count("StepCompleted") == 1


@pytest.mark.parametrize("is_slow", [False, True])
def test_of_two_outputs_at_the_same_instant_one_counts_and_the_other_is_a_conflict(is_slow: bool) -> None:
    async def scene() -> tuple[list[Any], Run]:
        climb = await led(TWO, is_slow=is_slow)
        answers = await asyncio.gather(
            climb.submit("write", "one"), climb.submit("write", "two"), return_exceptions=True
        )
        return list(answers), await climb.now()

    answers, run = in_virtual_time(scene)
    assert sorted(type(answer).__name__ for answer in answers) == ["Conflict", "Verdict"]
    assert run.step("write").output == ("one" if isinstance(answers[0], Verdict) else "two")


def test_another_output_or_outcome_after_completion_is_a_conflict() -> None:
    async def scene() -> None:
        climb = await led(TWO)
        await climb.submit("write", "one")
        with pytest.raises(Conflict, match="already completed, with another output"):
            await climb.submit("write", "two")
        with pytest.raises(Conflict, match="already completed"):
            await climb.fail("write")

    in_virtual_time(scene)


def test_an_output_with_a_secret_in_it_is_known_again_when_it_comes_twice() -> None:
    output = {"log": "Authorization: Bearer abcdefghij0123456789abcdefghij"}

    async def scene() -> tuple[Any, Verdict]:
        climb = await led(TWO)
        await climb.submit("write", output)
        return (await climb.now()).step("write").output, await climb.submit("write", output)

    kept, verdict = in_virtual_time(scene)
    assert kept != output
    assert verdict.repeated


def test_a_repeated_submission_is_known_even_when_the_run_has_ended_and_was_read_again() -> None:
    async def scene() -> Verdict:
        climb = await led(ONE)
        await climb.submit("write", "x")
        assert (await climb.now()).status is RunStatus.COMPLETED
        await climb.stage.worker.close()
        later = Stage(store=climb.stage.store)
        await later.open("w-two")
        return await guide_of(later).submit(climb.run, Submission(step="write", output="x"), actor=CLAUDE)

    assert in_virtual_time(scene) == Verdict(accepted=True, repeated=True)


def test_a_step_whose_turn_has_not_come_is_refused_with_what_it_waits_for() -> None:
    async def scene() -> None:
        climb = await led(plan({"id": "a", "prompt": "a"}, {"id": "b", "prompt": "b"}, {"id": "c", "prompt": "c"}))
        with pytest.raises(Conflict, match="'c' is not ready: it waits for 'b'") as refused:
            await climb.submit("c")
        assert refused.value.hint == "open now: 'a'; do that first"

    in_virtual_time(scene)


def test_a_step_of_a_loop_that_has_not_started_is_refused_with_the_step_that_is_open() -> None:
    async def scene() -> None:
        loop = {"id": "read", "each": "[1, 2]", "as": "part", "steps": [{"id": "look", "prompt": "Look."}]}
        climb = await led(plan({"id": "scope", "prompt": "a"}, loop))
        with pytest.raises(Conflict, match=r"'read\[0\].look' is not ready: 'read' has not started") as refused:
            await climb.submit("read[0].look")
        assert refused.value.hint == "open now: 'scope'; do that first"

    in_virtual_time(scene)


def test_what_is_no_step_or_no_agents_step_is_refused() -> None:
    async def scene() -> None:
        climb = await led(plan({"id": "build", "tool": "x.slow"}), puppets=[puppet("x.slow", taking(9))])
        with pytest.raises(NotFound, match="there is no step 'built'") as unknown:
            await climb.submit("built")
        assert "build" in unknown.value.hint
        with pytest.raises(Conflict, match="not for an agent: it is of the kind `tool`"):
            await climb.submit("build")
        with pytest.raises(NotFound, match="no run"):
            await climb.guide.submit("run_nowhere2", Submission(step="build"), actor=CLAUDE)

    in_virtual_time(scene)


def test_when_the_run_is_over_nothing_new_is_taken_in() -> None:
    async def scene() -> None:
        climb = await led(TWO)
        await climb.act(Action.CANCEL)
        with pytest.raises(Conflict, match="is cancelled: no step can be worked on"):
            await climb.submit("write")

    in_virtual_time(scene)


def test_a_recorded_run_is_reported_on_and_not_submitted() -> None:
    async def scene() -> None:
        stage = Stage()
        await stage.open()
        run = await stage.worker.start(ONE, {}, actor=CLAUDE, ask=StartRun(mode=Mode.RECORD))
        with pytest.raises(Conflict, match="only recorded") as refused:
            await guide_of(stage).submit(run.id, Submission(step="write"), actor=CLAUDE)
        assert "report what was done" in refused.value.hint

    in_virtual_time(scene)


def test_a_step_can_not_be_submitted_as_started() -> None:
    async def scene() -> None:
        climb = await led(ONE)
        with pytest.raises(Invalid, match="can't be submitted as 'started'"):
            await climb.submit("write", outcome=Outcome.STARTED)

    in_virtual_time(scene)


def test_vars_and_notes_come_with_what_was_submitted_and_the_next_step_may_speak_of_them() -> None:
    definition = plan(
        {"id": "write", "prompt": "write"}, {"id": "use", "tool": "value.set", "args": {"value": "{{ vars.branch }}"}}
    )

    async def scene() -> tuple[Run, list[Event]]:
        climb = await led(definition)
        await climb.submit("write", vars={"branch": "main"}, note="it was easy")
        return await climb.now(), await climb.events()

    run, events = in_virtual_time(scene)
    assert run.vars == {"branch": "main"}
    assert run.step("use").output == "main"
    assert VarsSet(vars={"branch": "main"}) in events
    assert ActionRecorded(description="it was easy", step="write", outcome=Outcome.DONE) in events


def test_rounds_of_a_loop_are_submitted_by_their_path() -> None:
    definition = plan({"id": "loop", "each": "['a', 'b']", "steps": [{"id": "make", "prompt": "make {{ item }}"}]})

    async def scene() -> tuple[list[str], Run]:
        climb = await led(definition)
        steps = []
        for _ in range(2):
            steps.append((await climb.next()).step)
            await climb.submit(steps[-1], steps[-1])
        return steps, await climb.now()

    steps, run = in_virtual_time(scene)
    assert steps == ["loop[0].make", "loop[1].make"]
    assert run.status is RunStatus.COMPLETED


# --- what does not hold ----------------------------------------------------------------------------------


def test_an_output_that_does_not_fit_is_not_accepted_and_its_tries_are_counted() -> None:
    async def scene() -> tuple[list[Verdict], Run, list[Event]]:
        climb = await led(SHAPED)
        refused = [await climb.submit("write", value) for value in ("text", {"other": 1})]
        waits = await climb.now()
        accepted = await climb.submit("write", {"file": "a"})
        return [*refused, accepted], waits, await climb.events()

    verdicts, waits, events = in_virtual_time(scene)
    assert [verdict.accepted for verdict in verdicts] == [False, False, True]
    assert [verdict.unconfirmed for verdict in verdicts] == [False, False, False]
    assert verdicts[1].findings[0].where.startswith("output")
    assert verdicts[1].findings[0].severity is not Severity.MINOR
    assert (waits.step("write").status, waits.step("write").tries) == (StepStatus.WAITING, 2)
    refusals = [event for event in events if isinstance(event, OutputRefused)]
    assert "file" in refusals[1].findings[0]["message"]
    assert set(refusals[1].findings[0]) == {"rule", "severity", "where", "message", "fix"}


def test_nobody_has_to_fit_what_it_could_not_do() -> None:
    async def scene() -> Verdict:
        return await (await led(SHAPED)).fail("write")

    assert in_virtual_time(scene).accepted


def test_a_check_that_nobody_runs_is_shown_and_does_not_count_as_passed() -> None:
    definition = plan({"id": "write", "prompt": "write", "checks": [{"rule": "file_exists", "severity": "critical"}]})

    async def scene() -> tuple[Verdict, list[Event]]:
        climb = await led(definition)
        return await climb.submit("write", "x"), await climb.events()

    verdict, events = in_virtual_time(scene)
    assert verdict.accepted
    assert [(finding.rule, finding.severity) for finding in verdict.findings] == [("file_exists", Severity.MINOR)]
    assert "was not run" in verdict.findings[0].message
    [done] = [event for event in events if isinstance(event, StepCompleted)]
    assert (done.proof, done.checks) == (Proof.CLAIMED, ())
    assert "was not run" in done.findings[0]["message"]


def test_what_would_be_said_of_an_output_is_said_without_writing_anything() -> None:
    async def scene() -> tuple[int, int, int]:
        climb = await led(SHAPED)
        run = await climb.now()
        wrong = await climb.guide.judged(run, SHAPED, "write", "text")
        right = await climb.guide.judged(run, SHAPED, "write", {"file": "a"})
        assert (await climb.now()).n == run.n
        tool = plan({"id": "build", "tool": "x.do", "output": {"type": "object"}})
        of_tool = await climb.guide.judged(run, tool, "build", "text")
        return len(wrong.findings), len(right.findings), len(of_tool.findings)

    assert in_virtual_time(scene) == (1, 0, 1)


@pytest.mark.parametrize(("confirm", "asks"), [(True, True), ("inputs.big", True), ("not inputs.big", False)])
def test_a_step_that_a_person_must_agree_to_is_not_accepted_without_their_word(confirm: Any, asks: bool) -> None:
    definition = plan({"id": "write", "prompt": "write", "confirm": confirm}, inputs={"big": {"type": "boolean"}})

    async def scene() -> tuple[Verdict, int, Verdict, list[Event]]:
        climb = await led(definition, {"big": True})
        before = (await climb.now()).n
        first = await climb.submit("write", "x")
        written = (await climb.now()).n - before
        return first, written, await climb.submit("write", "x", confirmed="ada said yes"), await climb.events()

    first, written, second, events = in_virtual_time(scene)
    assert (first.accepted, first.unconfirmed) == (not asks, asks)
    assert second.accepted
    if asks:
        assert [finding.rule for finding in first.findings] == ["confirm"]
        assert not written
        assert DecisionRecorded(decision="confirmed", reason="ada said yes", step="write") in events


def test_what_does_not_fit_is_fixed_before_anybody_is_asked_to_agree() -> None:
    definition = plan({"id": "write", "prompt": "write", "confirm": True, "output": {"type": "object"}})

    async def scene() -> Verdict:
        return await (await led(definition)).submit("write", "text")

    verdict = in_virtual_time(scene)
    assert not verdict.unconfirmed
    assert [finding.rule for finding in verdict.findings] != ["confirm"]


def test_vars_that_come_with_an_output_count_for_its_own_confirmation() -> None:
    definition = plan({"id": "write", "prompt": "write", "confirm": 'vars.size == "big"'})

    async def scene() -> tuple[Verdict, Verdict]:
        climb = await led(definition)
        big = await climb.submit("write", 1, vars={"size": "big"})
        return big, await climb.submit("write", 1, vars={"size": "small"})

    big, small = in_virtual_time(scene)
    assert (big.unconfirmed, small.accepted) == (True, True)
