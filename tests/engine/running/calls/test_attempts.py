"""Attempts: retries by policy, waits that are journaled first, timeouts, heartbeats, late answers, breakers, limits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.stage import Stage, always, done, failing, plan, puppet, taking
from handrail.domain.definition.model import Category, Effect, Retry
from handrail.domain.journal.event import AnswerCameLate, AttemptFailed, AttemptStarted, RetryScheduled, StepFailed
from handrail.domain.journal.store_event import BreakerClosed, BreakerOpened, BreakerProbed
from handrail.domain.run.command import PauseRun
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.domain.scheduling.breaker import TRIPS_AFTER
from handrail.engine.running.calls.tool_answer import HEARTBEATS_MAX
from handrail.engine.tool import ToolFailed
from virtual_time import in_virtual_time

TRANSIENT = Category.TRANSIENT


def test_a_transient_failure_is_tried_again_under_the_same_key() -> None:
    stage = Stage(puppet("x.flaky", failing(TRANSIENT, TRANSIENT)))
    run = in_virtual_time(lambda: stage.play(plan({"id": "a", "tool": "x.flaky"})))
    assert run.status is RunStatus.COMPLETED
    calls = stage.box.tools["x.flaky"].calls
    assert [call.attempt for call in calls] == [1, 2, 3]
    assert {call.key for call in calls} == {f"{run.id}:a"}


def test_the_policy_allows_so_many_attempts_and_no_more() -> None:
    stage = Stage(puppet("x.bad", always(TRANSIENT)))
    run = in_virtual_time(lambda: stage.play(plan({"id": "a", "tool": "x.bad", "retry": {"attempts": 4}})))
    assert len(stage.box.tools["x.bad"].calls) == 4
    assert run.step("a").status is StepStatus.FAILED


@pytest.mark.parametrize("category", sorted(set(Category) - {TRANSIENT, Category.TIMEOUT, Category.RATE_LIMITED}))
def test_a_failure_that_time_does_not_heal_is_final_at_once(category: Category) -> None:
    stage = Stage(puppet("x.bad", always(category)))
    run = in_virtual_time(lambda: stage.play(plan({"id": "a", "tool": "x.bad"})))
    assert len(stage.box.tools["x.bad"].calls) == 1
    assert run.step("a").category is category


def test_the_wait_is_journaled_before_it_is_waited_for_and_never_shorter() -> None:
    stage = Stage(puppet("x.flaky", failing(TRANSIENT)))
    retry = {"first": "10s", "jitter": False}

    async def scene() -> tuple[list[tuple[str, int]], list[Any]]:
        run = await stage.play(plan({"id": "a", "tool": "x.flaky", "retry": retry}))
        return [(record.kind, record.at) for record in await stage.store.read(run.id)], await stage.events(run.id)

    (times, events) = in_virtual_time(scene)
    scheduled = next(event for event in events if isinstance(event, RetryScheduled))
    kinds = [kind for kind, _ in times]
    assert kinds[1:5] == ["attempt_started", "attempt_failed", "retry_scheduled", "attempt_started"]
    assert scheduled.due == times[3][1] + 10_000
    assert times[4][1] >= scheduled.due


def test_what_a_server_asks_for_is_waited_for() -> None:
    stage = Stage(puppet("x.busy", failing(Category.RATE_LIMITED, retry_after_ms=45_000)))
    run = in_virtual_time(lambda: stage.play(plan({"id": "a", "tool": "x.busy"})))
    assert run.ended is not None
    assert run.ended - run.started >= 45_000


def test_the_steps_policy_wins_over_the_tools_key_by_key() -> None:
    own = Retry(attempts=2, first="30s", jitter=False)
    stage = Stage(puppet("x.bad", always(TRANSIENT), retry=own))
    run = in_virtual_time(lambda: stage.play(plan({"id": "a", "tool": "x.bad", "retry": {"attempts": 3}})))
    assert len(stage.box.tools["x.bad"].calls) == 3
    assert run.updated - run.started >= 30_000 + 60_000


def test_a_call_that_takes_too_long_is_given_up_and_has_timed_out() -> None:
    stage = Stage(puppet("x.slow", taking(100)))
    step = {"id": "a", "tool": "x.slow", "timeout": "5s", "retry": {"attempts": 1}}
    run = in_virtual_time(lambda: stage.play(plan(step)))
    assert run.step("a").category is Category.TIMEOUT
    assert "5s" in run.step("a").message
    assert run.updated - run.started < 7_000


def test_progress_is_a_heartbeat_that_extends_the_timeout_up_to_a_bound() -> None:
    stage = Stage(puppet("x.busy", taking(20, beats=9)), puppet("x.endless", taking(1_000, beats=999)))
    step = {"id": "a", "tool": "x.busy", "timeout": "5s", "retry": {"attempts": 1}}
    assert in_virtual_time(lambda: stage.play(plan(step))).status is RunStatus.COMPLETED
    endless = Stage(puppet("x.endless", taking(1_000, beats=999)))
    run = in_virtual_time(lambda: endless.play(plan({**step, "tool": "x.endless"})))
    assert run.step("a").category is Category.TIMEOUT
    assert 5_000 * HEARTBEATS_MAX <= run.updated - run.started < 5_000 * HEARTBEATS_MAX + 2_000


def test_an_answer_after_the_timeout_is_journaled_as_late_and_changes_nothing() -> None:
    async def deaf(call: Any) -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return {"too": "late"}

    stage = Stage(puppet("x.deaf", deaf))
    step = {"id": "a", "tool": "x.deaf", "timeout": "5s", "retry": {"attempts": 1}}

    async def scene() -> tuple[Run, list[Any]]:
        run = await stage.play(plan(step))
        return run, await stage.events(run.id)

    run, events = in_virtual_time(scene)
    late = next(event for event in events if isinstance(event, AnswerCameLate))
    assert late.output == {"too": "late"}
    assert run.step("a").status is StepStatus.FAILED


def test_whatever_a_tool_raises_or_answers_is_a_failure_with_a_category() -> None:
    async def raises(call: Any) -> Any:
        raise KeyError("oops")

    async def nonsense(call: Any) -> Any:
        return object()

    async def huge(call: Any) -> Any:
        return "x" * 2_000_000

    for deed, category, words in (
        (raises, Category.INTERNAL, "KeyError"),
        (nonsense, Category.TOOL_ERROR, "not JSON"),
        (huge, Category.TOOL_ERROR, "bytes"),
    ):
        stage = Stage(puppet("x.odd", deed))
        run = in_virtual_time(lambda stage=stage: stage.play(plan({"id": "a", "tool": "x.odd"})))  # type: ignore[misc]
        assert run.step("a").category is category
        assert words in run.step("a").message


def test_a_server_that_keeps_failing_is_left_alone_and_its_steps_wait() -> None:
    answers = [TRANSIENT] * TRIPS_AFTER
    stage = Stage(puppet("x.down", failing(*answers), reach="x"))

    async def scene() -> tuple[Run, list[Any], list[str]]:
        retry = {"attempts": 9, "first": "1ms", "max": "1ms"}
        await stage.open()
        run = await stage.start(plan({"id": "a", "tool": "x.down", "retry": retry}))
        await asyncio.sleep(5)
        postponed = [postponed.reason for postponed in stage.worker.conductors[run.id].postponements.by_name.values()]
        after = await stage.worker.settled(run.id)
        return after, await stage.events("server/x"), postponed

    run, events, postponed = in_virtual_time(scene)
    assert run.status is RunStatus.COMPLETED
    assert postponed == ["the circuit breaker of x is open"]
    assert [type(event) for event in events] == [BreakerOpened, BreakerProbed, BreakerClosed]
    assert run.ended is not None
    assert run.ended - run.started >= 5_000


def test_a_breaker_that_is_open_is_known_after_a_restart() -> None:
    stage = Stage(puppet("x.down", failing(*[TRANSIENT] * TRIPS_AFTER), reach="x"))

    async def scene() -> list[float]:
        retry = {"attempts": 9, "first": "1ms", "max": "1ms"}
        await stage.open()
        run = await stage.start(plan({"id": "a", "tool": "x.down", "retry": retry, "idempotent": True}))
        await asyncio.sleep(1)
        await stage.die()
        await stage.open("w-two")
        before = asyncio.get_running_loop().time()
        await stage.worker.settled(run.id)
        return [asyncio.get_running_loop().time() - before]

    (waited_s,) = in_virtual_time(scene)
    assert waited_s >= 3


def test_a_tool_is_called_no_faster_than_its_rate() -> None:
    stage = Stage(puppet("x.paced", done, rate="2/s"))
    steps = [{"id": f"s{n}", "tool": "x.paced", "after": []} for n in range(10)]
    run = in_virtual_time(lambda: stage.play(plan(*steps, max_parallel=10)))
    assert run.status is RunStatus.COMPLETED
    assert run.ended is not None
    assert run.ended - run.started >= 4_000


def test_a_retry_timer_survives_a_restart_with_schedule_and_count() -> None:
    stage = Stage(puppet("x.flaky", failing(TRANSIENT, TRANSIENT)))
    retry = {"attempts": 3, "first": "60s", "jitter": False}

    async def scene() -> tuple[Run, list[Any]]:
        await stage.open()
        run = await stage.start(plan({"id": "a", "tool": "x.flaky", "retry": retry}))
        await asyncio.sleep(10)
        await stage.die()
        await stage.open("w-two")
        after = await stage.worker.settled(run.id)
        return after, await stage.events(run.id)

    run, events = in_virtual_time(scene)
    assert run.status is RunStatus.COMPLETED
    assert [event.attempt for event in events if isinstance(event, AttemptStarted)] == [1, 2, 3]
    assert run.ended is not None
    assert run.ended - run.started >= 60_000 + 60_000
    assert len([event for event in events if isinstance(event, AttemptFailed)]) == 2


def test_a_failure_while_the_run_is_paused_waits_for_the_resume() -> None:
    stage = Stage(puppet("x.flaky", failing(TRANSIENT)))

    async def scene() -> tuple[Run, int]:
        await stage.open()
        run = await stage.start(plan({"id": "a", "tool": "x.flaky", "retry": {"first": "1s", "jitter": False}}))
        await asyncio.sleep(0.5)
        await stage.worker.dispatch.grant(run.id, PauseRun(reason="lunch"), actor="person:ada")
        await asyncio.sleep(100)
        calls = len(stage.box.tools["x.flaky"].calls)
        await stage.control.act(run.id, Action.RESUME, actor="person:ada", reason="back")
        return await stage.worker.settled(run.id), calls

    run, calls = in_virtual_time(scene)
    assert calls == 1
    assert run.status is RunStatus.COMPLETED


def test_a_failed_capture_fails_the_attempt_before_any_effect() -> None:
    tool = puppet("x.kept")

    async def refuses(call: Any) -> Any:
        raise ToolFailed(Category.NOT_FOUND, "no such file")

    tool.capture = refuses  # type: ignore[method-assign]
    stage = Stage(tool)
    run = in_virtual_time(lambda: stage.play(plan({"id": "a", "tool": "x.kept"})))
    assert run.step("a").category is Category.NOT_FOUND
    assert run.step("a").effect is Effect.NONE
    assert not tool.calls


def test_a_step_that_failed_for_good_says_why() -> None:
    stage = Stage(puppet("x.bad", always(Category.PERMISSION)))

    async def scene() -> list[Any]:
        run = await stage.play(plan({"id": "a", "tool": "x.bad"}))
        return await stage.events(run.id)

    events = in_virtual_time(scene)
    assert events[-1] == StepFailed(step="a", category=Category.PERMISSION, message="it is permission")
