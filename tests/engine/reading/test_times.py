"""Where the time of a run went: work, waits and undo apart; its tries; and the steps that decided how long it took."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from engine.stage import ADA, Stage, always, plan, puppet, taking
from handrail.domain.definition.model import Category, Effect
from handrail.domain.history.spans import Span, SpanFold, SpanKind, TryOutcome
from handrail.domain.journal.codec import entry_of
from handrail.domain.run.command import CompleteStep, HandOutStep, RefuseOutput
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.reading.run_view import Detail
from handrail.engine.reading.step_view import StepView
from handrail.engine.reading.time_view import RunTimeline, TryView, duration_words, person_waited
from handrail.engine.tool import ToolCall, ToolFailed
from virtual_time import in_virtual_time

UNDO = {"tool": "x.slow", "args": {}}
Scene = Callable[[Stage, Run], Awaitable[Any]]


async def nothing(_stage: Stage, _run: Run) -> None:
    """The run is left to itself."""


def flaky(failures: int, seconds: float) -> Callable[[ToolCall], Awaitable[Any]]:
    left = [failures]

    async def deed(call: ToolCall) -> Any:
        await asyncio.sleep(seconds)
        if left[0]:
            left[0] -= 1
            raise ToolFailed(Category.TRANSIENT, "not now")
        return {"did": call.step}

    return deed


def seen_of(stage: Stage, what: Any, then: Scene = nothing) -> tuple[dict[str, StepView], RunTimeline, RunReader, str]:
    async def scene() -> tuple[dict[str, StepView], RunTimeline, RunReader, str]:
        run = await stage.play(what)
        await then(stage, run)
        await stage.worker.settled(run.id)
        reader = RunReader(stage.store, stage.clock)
        status = await reader.status(run.id, detail=Detail.FULL)
        return {one.id: one for one in status.steps}, await reader.timeline(run.id), reader, run.id

    return in_virtual_time(scene)


def tries_of(reader: RunReader, run: str, step: str) -> tuple[TryView, ...]:
    return in_virtual_time(lambda: reader.tries(run, step))


def test_an_undone_step_has_its_work_and_its_undo_apart_from_the_time_in_between() -> None:
    async def decide_late(stage: Stage, run: Run) -> None:
        await asyncio.sleep(26)
        await stage.control.act(run.id, Action.COMPENSATE, actor=ADA, reason="enough")

    stage = Stage(puppet("x.slow", taking(2)), puppet("x.bad", always(Category.PERMISSION)))
    what = plan({"id": "a", "tool": "x.slow", "undo": UNDO}, {"id": "bad", "tool": "x.bad"})
    steps, timeline, _, _ = seen_of(stage, what, decide_late)
    assert (steps["a"].worked_ms, steps["a"].waited_ms, steps["a"].undone_ms) == (2_000, 0, 2_000)
    assert steps["bad"].waited_ms == pytest.approx(26_000, abs=50)
    assert (timeline.worked_ms, timeline.undone_ms) == (2_000, 2_000)


def test_a_short_call_without_effect_counts_with_what_it_took_though_its_start_is_written_with_its_end() -> None:
    stage = Stage(puppet("x.look", taking(0.03), Effect.NONE))
    steps, _, reader, run = seen_of(stage, plan({"id": "a", "tool": "x.look"}))
    assert steps["a"].worked_ms == 30
    assert [one.took_ms for one in tries_of(reader, run, "a")] == [30]


def test_tries_have_their_start_end_outcome_category_and_the_wait_before_the_next() -> None:
    stage = Stage(puppet("x.flaky", flaky(2, 1)))
    retry = {"attempts": 3, "first": "4s", "factor": 1, "jitter": False}
    steps, _, reader, run = seen_of(stage, plan({"id": "a", "tool": "x.flaky", "retry": retry}))
    tries = tries_of(reader, run, "a")
    assert [one.outcome for one in tries] == [TryOutcome.FAILED, TryOutcome.FAILED, TryOutcome.COMPLETED]
    assert [(one.took_ms, one.wait_ms) for one in tries] == [(1_000, 4_000), (1_000, 4_000), (1_000, 0)]
    assert {one.category for one in tries[:2]} == {Category.TRANSIENT}
    assert (steps["a"].worked_ms, steps["a"].waited_ms // 100) == (3_000, 80)


def test_the_waits_for_a_person_and_an_agent_count_as_waits_and_a_refused_output_is_a_try() -> None:
    async def others(stage: Stage, run: Run) -> None:
        dispatch = stage.worker.dispatch
        await asyncio.sleep(5)
        await stage.control.act(run.id, Action.APPROVE, actor=ADA, reason="yes")
        await stage.worker.settled(run.id)
        await dispatch.grant(run.id, HandOutStep(step="tell", agent="bo"), actor="agent:bo")
        await asyncio.sleep(3)
        await dispatch.grant(run.id, RefuseOutput(step="tell", findings=({"message": "no"},)), actor="agent:bo")
        await asyncio.sleep(4)
        await dispatch.grant(run.id, CompleteStep(step="tell", output=1), actor="agent:bo")

    what = plan({"id": "go", "approve": "Go?"}, {"id": "tell", "prompt": "Tell."})
    steps, timeline, reader, run = seen_of(Stage(), what, others)
    assert (steps["go"].worked_ms, steps["go"].waited_ms) == (0, 5_000)
    assert steps["tell"].waited_ms == 7_000
    assert [(one.outcome, one.took_ms, one.findings) for one in tries_of(reader, run, "tell")] == [
        (TryOutcome.REFUSED, 3_000, 1),
        (TryOutcome.COMPLETED, 4_000, 0),
    ]
    assert [one.step for one in timeline.critical] == ["go", "tell"]
    assert timeline.says == "The path of 2 steps cost 12.0 s waiting; the longest is Tell (tell): 7.0 s."


def test_the_critical_path_takes_the_slow_branch_and_says_what_was_idle() -> None:
    stage = Stage(puppet("x.slow", taking(5)), puppet("x.quick", taking(1)))
    what = plan(
        {"id": "quick", "tool": "x.quick", "after": []},
        {"id": "slow", "tool": "x.slow", "after": []},
        {"id": "end", "tool": "x.quick", "after": ["quick", "slow"]},
    )
    _, timeline, _, _ = seen_of(stage, what)
    assert [one.step for one in timeline.critical] == ["slow", "end"]
    assert timeline.took_ms == sum(one.worked_ms + one.waited_ms + one.idle_ms for one in timeline.critical) == 6_000


def test_the_critical_path_goes_through_loops_and_inlined_workflows() -> None:
    stage = Stage(puppet("x.slow", taking(2)))
    inner = {"w@1.0.0": {"id": "w", "version": "1.0.0", "steps": [{"id": "in", "tool": "x.slow"}]}}
    what = plan(
        {
            "id": "all",
            "each": "[1, 2]",
            "steps": [{"id": "a", "title": "Do {{ item }}", "tool": "x.slow"}, {"id": "b", "tool": "x.slow"}],
        },
        {"id": "call", "workflow": "w@1.0.0"},
        {"id": "end", "tool": "x.slow"},
        pinned=inner,
    )
    _, timeline, _, _ = seen_of(stage, what)
    wanted = ["all[0].a", "all[0].b", "all[1].a", "all[1].b", "call.in", "end"]
    assert [one.step for one in timeline.critical] == wanted
    assert timeline.critical[2].title == "Do 2"
    assert sum(one.idle_ms for one in timeline.critical) == 0


def test_a_fold_that_goes_on_is_the_same_as_one_made_anew() -> None:
    async def scene() -> None:
        stage = Stage(puppet("x.flaky", flaky(1, 1)))
        run = await stage.play(plan({"id": "a", "tool": "x.flaky", "retry": {"first": "1s"}, "undo": UNDO}))
        entries = [entry_of(record) for record in await stage.store.read(run.id)]
        whole, parts = SpanFold(), SpanFold()
        for entry in entries:
            whole.take(entry)
        for entry in (*entries[:3], *entries[:5], *entries):  # two readers at once may see the same events
            parts.take(entry)
        assert (parts.spans, parts.tries) == (whole.spans, whole.tries)
        assert {span.kind for span in whole.spans} == {SpanKind.FAILED, SpanKind.RETRY_WAIT, SpanKind.WORK}

    in_virtual_time(scene)


@pytest.mark.parametrize(
    ("ms", "words"), [(3, "3 ms"), (3_400, "3.4 s"), (130_000, "2 min 10 s"), (3_900_000, "1 h 5 min")]
)
def test_durations_are_said_as_people_say_them(ms: int, words: str) -> None:
    assert duration_words(ms) == words


def test_what_people_kept_waiting_at_the_same_time_counts_once_and_only_once_they_acted() -> None:
    fold = SpanFold()
    waits = [(SpanKind.PERSON_WAIT, 0, 10), (SpanKind.DECISION_WAIT, 5, 20), (SpanKind.DECISION_WAIT, 30, None)]
    fold.spans = [Span(step="a", kind=kind, start=start, end=end, n=1) for kind, start, end in waits]
    fold.spans.append(Span(step="a", kind=SpanKind.AGENT_WAIT, start=0, end=100, n=1))
    assert person_waited(fold) == 20
