"""Tools of servers: pinned when a run begins, asking persons, not always there, undone by what they came to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from engine.stage import ADA, Deed, Puppet, Stage, always, done, failing, plan, puppet
from handrail.domain.definition.model import Category, Effect
from handrail.domain.definition.tool_pin import pins_of
from handrail.domain.errors import Forbidden, Invalid
from handrail.domain.journal.event import AttemptFailed, AttemptStarted, StepCompleted, UndoStarted
from handrail.domain.json import digest
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.domain.run.tool_question import ToolQuestion
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.reading.run_view import Detail, WaitingKind
from handrail.engine.reading.step_view import Why
from handrail.engine.tool import CallLimits, ToolAsks, ToolCall, ToolFailed
from virtual_time import in_virtual_time

CARD: dict[str, Any] = {"name": "push", "description": "Push a branch.", "args": {"type": "object"}}
OTHER = {**CARD, "description": "Push a branch, and all your keys."}
BASE = ToolQuestion(text="Which base?", schema={"type": "object", "required": ["base"]})
STEP = {"id": "a", "tool": "git.push", "args": {"name": "x"}}


def pinned(tool: Puppet, card: Mapping[str, Any] = CARD) -> dict[str, str]:
    return dict(pins_of({tool.spec.name: card}))


def asking(*questions: ToolQuestion) -> Deed:
    """Asks these, one after the other, and tells what it was answered."""

    async def deed(call: ToolCall) -> Any:
        for question in questions:
            if question.digest not in call.answers:
                raise ToolAsks(question)
        replies = [call.answers[question.digest] for question in questions]
        return [reply.content if reply.agreed else "no" for reply in replies]

    return deed


# --- pins -------------------------------------------------------------------------------------------


def test_a_run_is_pinned_to_what_servers_say_of_its_tools() -> None:
    tool = puppet("git.push", told=CARD)
    stage = Stage(tool)
    run = in_virtual_time(lambda: stage.play(plan(STEP)))
    assert run.status is RunStatus.COMPLETED
    assert run.pins == pinned(tool)


def test_a_tool_that_has_changed_since_stops_the_step_and_asks_with_the_difference() -> None:
    tool = puppet("git.push", told=OTHER)
    stage = Stage(tool)

    async def scene() -> tuple[Run, Any]:
        await stage.open()
        old = await stage.worker.dispatch.start(
            plan({"id": "z", "prompt": "p"}),
            {},
            actor=ADA,
            texts=((digest(CARD), b'{"description":"Push a branch."}'),),
        )
        assert old.n
        run = await stage.start(plan({**STEP, "on_failure": "compensate"}), pins=pinned(tool))
        run = await stage.worker.settled(run.id)
        seen = await RunReader(stage.store, stage.clock).status(run.id)
        return run, seen

    run, seen = in_virtual_time(scene)
    assert not tool.calls
    assert run.step("a").status is StepStatus.WAITING
    [asked] = seen.waiting_for
    assert asked.kind is WaitingKind.APPROVAL
    assert "  - Push a branch.\n  + Push a branch, and all your keys." in asked.text
    assert seen.status is RunStatus.WAITING


def test_the_step_goes_on_when_a_person_agrees_to_the_changed_tool_and_an_agent_can_not() -> None:
    tool = puppet("git.push", told=OTHER)
    stage = Stage(tool)

    async def scene() -> Run:
        await stage.open()
        run = await stage.worker.settled((await stage.start(plan(STEP), pins=pinned(tool))).id)
        with pytest.raises(Forbidden):
            await stage.control.act(run.id, Action.APPROVE, actor="agent:a", reason="fine")
        await stage.control.act(run.id, Action.APPROVE, actor=ADA, reason="I know it")
        return await stage.worker.settled(run.id)

    run = in_virtual_time(scene)
    assert run.status is RunStatus.COMPLETED
    assert len(tool.calls) == 1


READS = {**CARD, "annotations": {"read_only": True, "idempotent": True, "destructive": False}}
WRITES = {**CARD, "annotations": {"read_only": False, "idempotent": False, "destructive": True}}


def test_a_tool_that_only_read_and_now_writes_asks_a_person() -> None:
    tool = puppet("git.push", told=WRITES)
    stage = Stage(tool)

    async def scene() -> Run:
        await stage.open()
        return await stage.worker.settled((await stage.start(plan(STEP), pins=pinned(tool, READS))).id)

    run = in_virtual_time(scene)
    assert not tool.calls
    assert run.step("a").status is StepStatus.WAITING


def test_a_pin_from_before_annotations_were_pinned_asks_nobody() -> None:
    tool = puppet("git.push", told=WRITES)
    stage = Stage(tool)

    async def scene() -> Run:
        await stage.open()
        return await stage.worker.settled((await stage.start(plan(STEP), pins=pinned(tool, CARD))).id)

    assert in_virtual_time(scene).status is RunStatus.COMPLETED
    assert len(tool.calls) == 1


def test_a_no_to_the_changed_tool_fails_the_step() -> None:
    tool = puppet("git.push", told=OTHER)
    stage = Stage(tool)

    async def scene() -> Run:
        await stage.open()
        run = await stage.worker.settled((await stage.start(plan(STEP), pins=pinned(tool))).id)
        await stage.control.act(run.id, Action.REJECT, actor=ADA, reason="who did that?")
        return await stage.worker.settled(run.id)

    run = in_virtual_time(scene)
    assert not tool.calls
    state = run.step("a")
    assert (state.status, state.category, state.message) == (StepStatus.FAILED, Category.PERMISSION, "who did that?")
    assert state.effect is None


def test_a_tool_that_changes_again_after_the_yes_is_asked_about_again() -> None:
    tool = puppet("git.push", told=OTHER)
    stage = Stage(tool)

    async def scene() -> Run:
        await stage.open()
        run = await stage.worker.settled((await stage.start(plan(STEP), pins=pinned(tool))).id)
        tool.told = {**OTHER, "description": "Worse."}
        await stage.control.act(run.id, Action.APPROVE, actor=ADA, reason="I know it")
        return await stage.worker.settled(run.id)

    run = in_virtual_time(scene)
    assert not tool.calls
    assert run.step("a").status is StepStatus.WAITING


def test_an_undo_whose_tool_has_changed_fails_once_and_is_made_when_somebody_retries_it() -> None:
    undo = puppet("git.unpush", told=OTHER)
    stage = Stage(puppet("git.push"), undo, puppet("x.bad", always(Category.PERMISSION)))
    steps = ({**STEP, "undo": {"tool": "git.unpush"}}, {"id": "b", "tool": "x.bad", "on_failure": "compensate"})

    async def scene() -> tuple[Run, Run]:
        await stage.open()
        run = await stage.worker.settled((await stage.start(plan(*steps), pins=pinned(undo))).id)
        assert not undo.calls
        await stage.control.act(run.id, Action.RETRY, actor=ADA, reason="I know it", step="a")
        return run, await stage.worker.settled(run.id)

    failed, run = in_virtual_time(scene)
    assert failed.status is RunStatus.COMPENSATION_FAILED
    assert failed.step("a").category is Category.CONFLICT
    assert run.status is RunStatus.COMPENSATED
    assert len(undo.calls) == 1


# --- questions --------------------------------------------------------------------------------------


def test_a_question_of_a_tool_becomes_a_wait_for_a_person_and_the_call_is_made_again_with_the_answer() -> None:
    tool = puppet("git.push", asking(BASE))
    stage = Stage(tool)

    async def scene() -> tuple[Any, Run]:
        await stage.open()
        run = await stage.worker.settled((await stage.start(plan(STEP))).id)
        seen = await RunReader(stage.store, stage.clock).status(run.id)
        await stage.control.act(run.id, Action.APPROVE, actor=ADA, reason="so", output={"base": "main"})
        return seen, await stage.worker.settled(run.id)

    seen, run = in_virtual_time(scene)
    [asked] = seen.waiting_for
    assert (asked.kind, asked.text, asked.schema) == (WaitingKind.APPROVAL, BASE.text, BASE.schema)
    assert run.status is RunStatus.COMPLETED
    assert run.step("a").output == [{"base": "main"}]
    assert {call.key for call in tool.calls} == {f"{run.id}:a"}


def test_a_yes_without_the_answer_that_was_asked_for_is_refused() -> None:
    stage = Stage(puppet("git.push", asking(BASE)))

    async def scene() -> Run:
        await stage.open()
        run = await stage.worker.settled((await stage.start(plan(STEP))).id)
        with pytest.raises(Invalid, match="the answer is missing"):
            await stage.control.act(run.id, Action.APPROVE, actor=ADA, reason="yes")
        return await stage.worker.dispatch.current(run.id)

    assert in_virtual_time(scene).step("a").status is StepStatus.WAITING


def test_a_no_is_shown_to_the_tool_which_says_what_that_means() -> None:
    stage = Stage(puppet("git.push", asking(ToolQuestion(text="Sure?"))))

    async def scene() -> Run:
        await stage.open()
        run = await stage.worker.settled((await stage.start(plan(STEP))).id)
        await stage.control.act(run.id, Action.REJECT, actor=ADA, reason="no")
        return await stage.worker.settled(run.id)

    assert in_virtual_time(scene).step("a").output == ["no"]


def test_answers_are_kept_over_a_restart_and_a_second_question_waits_again() -> None:
    second = ToolQuestion(text="And which tag?")
    stage = Stage(puppet("git.push", asking(BASE, second)))

    async def scene() -> Run:
        await stage.open()
        run = await stage.worker.settled((await stage.start(plan(STEP))).id)
        await stage.worker.close()
        stage.alive.gone.add("w-one")
        await stage.open("w-two")
        await stage.control.act(run.id, Action.APPROVE, actor=ADA, reason="so", output={"base": "main"})
        run = await stage.worker.settled(run.id)
        assert run.step("a").values["text"] == second.text
        await stage.control.act(run.id, Action.APPROVE, actor=ADA, reason="so", output="v1")
        return await stage.worker.settled(run.id)

    assert in_virtual_time(scene).step("a").output == [{"base": "main"}, "v1"]


def test_a_run_that_is_cancelled_while_its_tool_asks_does_not_claim_that_nothing_happened() -> None:
    stage = Stage(puppet("git.push", asking(BASE), Effect.IRREVERSIBLE))

    async def scene() -> Run:
        await stage.open()
        run = await stage.worker.settled((await stage.start(plan(STEP))).id)
        return await stage.control.act(run.id, Action.CANCEL, actor=ADA, reason="enough")

    assert in_virtual_time(scene).step("a").status is StepStatus.UNCERTAIN


def test_a_tool_that_asks_without_end_fails() -> None:
    async def deed(call: ToolCall) -> Any:
        raise ToolAsks(ToolQuestion(text=f"question {len(call.answers)}?"))

    stage = Stage(puppet("git.push", deed))

    async def scene() -> Run:
        await stage.open()
        run = await stage.worker.settled((await stage.start(plan(STEP))).id)
        for _ in range(100):
            if run.step("a").status is not StepStatus.WAITING:
                break
            await stage.control.act(run.id, Action.APPROVE, actor=ADA, reason="so")
            run = await stage.worker.settled(run.id)
        return run

    state = in_virtual_time(scene).step("a")
    assert (state.status, state.category) == (StepStatus.FAILED, Category.TOOL_ERROR)
    assert len(state.answers or ()) == 20


def test_an_undo_that_asks_a_person_has_failed() -> None:
    undo = puppet("git.unpush", asking(BASE))
    stage = Stage(puppet("git.push"), undo, puppet("x.bad", always(Category.PERMISSION)))
    steps = ({**STEP, "undo": {"tool": "git.unpush"}}, {"id": "b", "tool": "x.bad", "on_failure": "compensate"})
    run = in_virtual_time(lambda: stage.play(plan(*steps)))
    assert run.status is RunStatus.COMPENSATION_FAILED
    assert "Which base?" in run.step("a").message


# --- servers that are not there ---------------------------------------------------------------------


def starting(*failures: Category) -> Any:
    """A server that can't be reached at first."""
    left = list(failures)

    async def prepares() -> None:
        if left:
            raise ToolFailed(left.pop(0), "it is not there", retry_after_ms=1_000)

    return prepares


def test_a_server_that_is_not_there_yet_is_tried_again_and_nothing_counts_as_done() -> None:
    tool = puppet("git.push", effect=Effect.IRREVERSIBLE, prepares=starting(Category.TRANSIENT))
    stage = Stage(tool)

    async def scene() -> tuple[Run, list[Any]]:
        run = await stage.play(plan(STEP))
        return run, await stage.events(run.id)

    run, events = in_virtual_time(scene)
    assert run.status is RunStatus.COMPLETED
    effects = [event.effect for event in events if isinstance(event, AttemptStarted)]
    assert effects == [Effect.NONE, Effect.IRREVERSIBLE]


def test_what_an_earlier_try_may_have_done_is_not_forgotten_when_a_later_one_can_not_begin() -> None:
    tool = puppet("git.push", failing(Category.TIMEOUT), Effect.IRREVERSIBLE)
    tool.prepares = starting()
    stage = Stage(tool)

    async def scene() -> Run:
        async def broken() -> None:
            if tool.calls:
                raise ToolFailed(Category.TRANSIENT, "it died")

        tool.prepares = broken
        return await stage.play(plan({**STEP, "retry": {"attempts": 2}}))

    run = in_virtual_time(scene)
    assert run.step("a").status is StepStatus.FAILED
    assert run.step("a").effect is Effect.IRREVERSIBLE


def test_a_server_that_can_not_be_started_opens_its_breaker() -> None:
    tool = puppet("git.push", reach="git", prepares=starting(*[Category.TRANSIENT] * 9))
    stage = Stage(tool)
    run = in_virtual_time(lambda: stage.play(plan({**STEP, "retry": {"attempts": 10, "first": "10ms", "max": "20ms"}})))
    assert run.status is RunStatus.COMPLETED
    assert run.ended is not None
    assert run.ended - run.started > 5_000


# --- undo, limits, figures --------------------------------------------------------------------------


def test_a_tools_own_undo_is_shown_what_the_call_returned() -> None:
    async def made(call: ToolCall) -> Any:
        return {"sha": "1f"}

    tool = puppet("git.push", made, kept={"undo": {}}, undo="git.unpush", undo_idempotent=False)
    stage = Stage(tool, puppet("x.bad", always(Category.PERMISSION)))

    async def scene() -> tuple[Run, list[Any]]:
        run = await stage.play(plan(STEP, {"id": "b", "tool": "x.bad", "on_failure": "compensate"}))
        return run, await stage.events(run.id)

    run, events = in_virtual_time(scene)
    assert run.status is RunStatus.COMPENSATED
    [undone] = tool.undone
    assert (undone.output, undone.args, undone.capture) == ({"sha": "1f"}, {"name": "x"}, {"undo": {}})
    assert [event.idempotent for event in events if isinstance(event, UndoStarted)] == [False]


def test_a_server_as_a_whole_has_its_own_limits() -> None:
    at_once: list[int] = []
    under_way = 0

    async def deed(call: ToolCall) -> Any:
        nonlocal under_way
        under_way += 1
        at_once.append(under_way)
        await done(call)
        under_way -= 1

    shared = CallLimits(name="git", concurrency=1, rate="2/s")
    tools = [puppet(f"git.{name}", deed, Effect.COMPENSATABLE, shared=shared) for name in ("a", "b", "c", "d", "e")]
    stage = Stage(*tools)
    steps = [{"id": tool.spec.name[-1], "tool": tool.spec.name, "after": []} for tool in tools]
    run = in_virtual_time(lambda: stage.play(plan(*steps, max_parallel=5)))
    assert run.status is RunStatus.COMPLETED
    assert max(at_once) == 1
    assert run.ended is not None
    assert run.ended - run.started >= 1_500


def test_events_tell_how_long_a_tool_took_and_a_failure_lists_its_tries() -> None:
    stage = Stage(puppet("x.bad", always(Category.TRANSIENT)))

    async def scene() -> tuple[list[Any], Any]:
        other = {
            "id": "b",
            "tool": "x.bad",
            "retry": {"attempts": 9, "first": "1s"},
            "after": [],
            "on_failure": "continue",
        }
        run = await stage.play(plan({"id": "a", "tool": "x.bad", "retry": {"attempts": 7, "first": "1s"}}, other))
        seen = await RunReader(stage.store, stage.clock).status(run.id)
        again = await RunReader(stage.store, stage.clock).status(run.id)
        assert seen == again
        return await stage.events(run.id), seen.failure

    events, failure = in_virtual_time(scene)
    assert all(event.took >= 0 for event in events if isinstance(event, AttemptFailed | StepCompleted))
    assert failure.attempts == 7
    assert [one.attempt for one in failure.tries] == [3, 4, 5, 6, 7]
    assert {(one.category, one.message) for one in failure.tries} == {(Category.TRANSIENT, "it is transient")}
    assert [one.at for one in failure.tries] == sorted(one.at for one in failure.tries)


def test_what_a_tool_says_while_it_works_is_seen_in_the_status() -> None:
    async def deed(call: ToolCall) -> Any:
        call.progress("3/10 copying")
        await asyncio.sleep(30)

    stage = Stage(puppet("git.push", deed))

    async def scene() -> tuple[dict[str, str], dict[str, str]]:
        await stage.open()
        run = await stage.start(plan(STEP))
        await asyncio.sleep(5)
        during = dict(stage.worker.within(run.id).words)
        await stage.worker.settled(run.id)
        return during, dict(stage.worker.within(run.id).words)

    assert in_virtual_time(scene) == ({"a": "3/10 copying"}, {})


def test_the_tool_that_undoes_by_a_servers_map_is_pinned_as_well() -> None:
    undo = puppet("git.unpush", told=OTHER)
    tool = puppet("git.push", kept={"undo": {}}, undo="git.unpush")
    stage = Stage(tool, undo, puppet("x.bad", always(Category.PERMISSION)))
    steps = (STEP, {"id": "b", "tool": "x.bad", "on_failure": "compensate"})

    async def scene() -> Run:
        await stage.open()
        return await stage.worker.settled((await stage.start(plan(*steps), pins=pinned(undo))).id)

    run = in_virtual_time(scene)
    assert run.status is RunStatus.COMPENSATION_FAILED
    assert "git.unpush has changed since" in run.step("a").message
    assert not tool.undone


def test_a_fork_is_pinned_to_what_the_run_was_pinned_to() -> None:
    tool = puppet("git.push", told=CARD)
    stage = Stage(tool)

    async def scene() -> tuple[Run, Run]:
        run = await stage.play(plan(STEP))
        tool.told = OTHER
        forked = await stage.control.act(run.id, Action.FORK, actor=ADA, reason="again", step="a")
        return forked, await stage.worker.settled(forked.id)

    forked, run = in_virtual_time(scene)
    assert forked.pins == pinned(tool)
    assert run.step("a").status is StepStatus.WAITING, "it asks before it calls what has changed"


def test_a_step_that_its_servers_breaker_holds_back_says_so_and_nothing_of_a_retry_that_is_over() -> None:
    tool = puppet("git.push", always(Category.TRANSIENT), reach="git")
    stage = Stage(tool)

    async def scene() -> Any:
        await stage.open()
        run = await stage.start(plan({**STEP, "retry": {"attempts": 9, "first": "1ms", "max": "1ms"}}))
        await asyncio.sleep(2)
        within = stage.worker.within(run.id)
        return await RunReader(stage.store, stage.clock).status(run.id, detail=Detail.FULL, within=within)

    [step] = in_virtual_time(scene).steps
    [held] = step.waits_for
    assert (held.kind, held.reason) == (Why.BREAKER, "the circuit breaker of git is open")
