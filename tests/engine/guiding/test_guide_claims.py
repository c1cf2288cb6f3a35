"""The guide and its claims: a step that an agent has named itself for is its own, for a while."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.guided_runs import CLAUDE, ONE, SHAPED, TWO, led
from engine.stage import plan
from handrail.domain.errors import Conflict
from handrail.domain.journal.event import (
    Event,
    StepHandedOut,
)
from handrail.domain.run.state import Run
from handrail.domain.run.status import StepStatus
from handrail.domain.run.submission import TAKEN_MS, Verdict
from virtual_time import in_virtual_time

TAKEN_S = TAKEN_MS / 1_000 + 0.01
BESIDE = plan({"id": "left", "prompt": "left"}, {"id": "right", "prompt": "right", "after": []})


def test_two_agents_get_different_steps_and_each_keeps_its_own() -> None:
    async def scene() -> list[str]:
        climb = await led(BESIDE)
        return [(await climb.next(agent)).step for agent in ("ann", "bob", "ann", "bob", "cid")]

    assert in_virtual_time(scene) == ["left", "right", "left", "right", ""]


@pytest.mark.parametrize("is_slow", [False, True])
def test_two_agents_who_race_for_one_step_get_it_once(is_slow: bool) -> None:
    async def scene() -> tuple[list[str], list[Event]]:
        climb = await led(ONE, is_slow=is_slow)
        seen = [await climb.guide.look(climb.run, agent=agent) for agent in ("ann", "bob")]
        assert [one.step for one in seen] == ["write", "write"]
        both = await asyncio.gather(
            climb.guide.take(seen[0], "ann", actor=CLAUDE), climb.guide.take(seen[1], "bob", actor=CLAUDE)
        )
        return [one.step for one in both], await climb.events()

    steps, events = in_virtual_time(scene)
    assert sorted(steps) == ["", "write"]
    assert len([event for event in events if isinstance(event, StepHandedOut)]) == 1


@pytest.mark.parametrize("is_slow", [False, True])
def test_two_agents_who_race_for_two_steps_get_one_each(is_slow: bool) -> None:
    async def scene() -> list[str]:
        climb = await led(BESIDE, is_slow=is_slow)
        both = await asyncio.gather(climb.next("ann"), climb.next("bob"))
        return sorted(one.step for one in both)

    assert in_virtual_time(scene) == ["left", "right"]


def test_a_claim_lasts_a_quarter_of_an_hour_and_then_another_may_have_the_step() -> None:
    async def scene() -> list[str]:
        climb = await led(ONE)
        steps = [(await climb.next("ann")).step]
        claimed = await climb.now()
        assert claimed.step("write").due == claimed.updated + TAKEN_MS == claimed.updated + 15 * 60_000
        await asyncio.sleep(15 * 60 - 1)
        steps.append((await climb.next("bob")).step)
        await asyncio.sleep(1.01)
        steps.append((await climb.next("bob")).step)
        return steps

    assert in_virtual_time(scene) == ["write", "", "write"]


def test_who_lost_its_claim_to_another_is_refused_and_who_lost_it_to_nobody_is_not() -> None:
    async def scene() -> Verdict:
        climb = await led(TWO)
        await climb.next("ann")
        await asyncio.sleep(TAKEN_S)
        await climb.next("bob")
        with pytest.raises(Conflict, match="assigned to 'bob' for another 15m"):
            await climb.submit("write", "mine", agent="ann")
        await asyncio.sleep(TAKEN_S)
        return await climb.submit("write", "mine", agent="ann")

    assert in_virtual_time(scene).accepted


def test_a_claimed_step_is_submitted_only_by_the_one_who_has_it() -> None:
    async def scene() -> Verdict:
        climb = await led(ONE)
        await climb.next("ann")
        for agent in ("bob", ""):
            with pytest.raises(Conflict, match="assigned to 'ann'") as refused:
                await climb.submit("write", agent=agent)
            assert "agent 'ann'" in refused.value.hint
        return await climb.submit("write", agent="ann")

    assert in_virtual_time(scene).accepted


def test_an_output_that_is_refused_keeps_the_step_for_its_agent_no_longer_than_a_claim() -> None:
    async def scene() -> list[str]:
        climb = await led(SHAPED)
        assert not (await climb.submit("write", "no object", agent="ann")).accepted
        steps = [(await climb.next("bob")).step]
        await asyncio.sleep(TAKEN_S)
        return [*steps, (await climb.next("bob")).step]

    assert in_virtual_time(scene) == ["", "write"]


def test_an_output_that_nobody_in_particular_submitted_leaves_the_step_to_anybody() -> None:
    async def scene() -> str:
        climb = await led(SHAPED)
        await climb.submit("write", "no object")
        return (await climb.next("bob")).step

    assert in_virtual_time(scene) == "write"


@pytest.mark.parametrize(("later_s", "claim_wins"), [(0, True), (0.0005, True), (0.005, False)])
def test_a_submission_and_a_claim_of_another_in_a_race_do_not_both_get_the_step(
    later_s: float, claim_wins: bool
) -> None:
    async def scene() -> tuple[str, Any, Run]:
        climb = await led(ONE, is_slow=True)
        seen = await climb.guide.look(climb.run, agent="bob")
        submitting = asyncio.ensure_future(climb.submit("write", "x", agent="ann"))
        await asyncio.sleep(later_s)
        claimed = await climb.guide.take(seen, "bob", actor=CLAUDE)
        (submitted,) = await asyncio.gather(submitting, return_exceptions=True)
        return claimed.step, submitted, await climb.now()

    step, submitted, run = in_virtual_time(scene)
    assert step == ("write" if claim_wins else "")
    assert isinstance(submitted, Conflict if claim_wins else Verdict)
    assert run.step("write").status is (StepStatus.WAITING if claim_wins else StepStatus.COMPLETED)


def test_an_agent_from_whom_every_step_is_snatched_away_is_answered_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise Conflict("somebody was quicker")

    async def scene() -> str:
        climb = await led(ONE)
        seen = await climb.next()
        monkeypatch.setattr(climb.guide.dispatch, "grant", refuse)
        return (await climb.guide.take(seen, "ann", actor=CLAUDE)).step

    assert in_virtual_time(scene) == "write"
