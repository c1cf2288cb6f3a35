"""A run as a story: people's words as they wrote them, the routine folded, and every entry of the journal told once."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from engine.guided_runs import led
from engine.reading.test_control_previews import Planner, stage_of, to_the_end
from engine.stage import ADA, Stage, always, failing, plan, puppet
from handrail.domain.definition.model import Category, Effect
from handrail.domain.history.story import StoryKind
from handrail.domain.run.command import RecordDecision
from handrail.domain.run.legal_controls import Action
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.reading.story_view import RunStory
from handrail.engine.tool import ToolCall, ToolFailed
from virtual_time import in_virtual_time


async def forbidden(_call: ToolCall) -> Any:
    raise ToolFailed(Category.PERMISSION, '403 from registry.test: {"error": "token expired"}')


RELEASE = plan(
    {"id": "notes", "tool": "x.do"},
    {"id": "tag", "tool": "x.do", "undo": {"tool": "x.undo"}},
    {"id": "mail", "tool": "x.irr"},
    {"id": "go", "approve": "Publish 2.4.0?", "by": ["leads"]},
    {"id": "publish", "title": "Publish it", "tool": "http.request", "args": {"method": "POST", "url": "x"}},
)


def told(*acts: tuple[Action, str], what: Any = RELEASE) -> RunStory:
    async def scene() -> RunStory:
        stage = Stage(puppet("x.irr", effect=Effect.IRREVERSIBLE), puppet("http.request", forbidden))
        run = await stage.play(what)
        for action, reason in acts:
            await stage.control.act(run.id, action, actor=ADA, reason=reason)
            await stage.worker.settled(run.id)
            if action is Action.APPROVE:
                note = RecordDecision(decision="roll back", reason="the token is gone", alternatives=("wait",))
                await stage.worker.dispatch.grant(run.id, note, actor="agent:claude-code")
        return await RunReader(stage.store, stage.clock).story(run.id)

    return in_virtual_time(scene)


def test_people_are_told_in_their_own_words_and_the_routine_is_one_sentence() -> None:
    story = told((Action.APPROVE, "all checks are green"), (Action.COMPENSATE, "a new token tomorrow"))
    lines = [(line.kind, line.text, line.words) for line in story.lines]
    assert lines == [
        (StoryKind.START, "ada started a-plan", ""),
        (StoryKind.ROUTINE, "3 steps completed: “Notes”, “Tag”, “Mail”", ""),
        (StoryKind.APPROVAL, "A person is asked about “Go”", "Publish 2.4.0?"),
        (StoryKind.APPROVAL, "ada approved “Go”", "all checks are green"),
        (StoryKind.FAILURE, "“Publish it” failed permanently", "token expired"),
        (StoryKind.DECISION, "claude-code decided: roll back", "the token is gone"),
        (StoryKind.UNDO, "ada chose to undo 1 step", "a new token tomorrow"),
        (StoryKind.UNDO, "1 step undone (executed): “Tag”", ""),
        (StoryKind.END, "The run is undone, except “Mail”, “Notes”", ""),
    ]
    assert story.lines[3].facts["digest"] == story.lines[2].facts["digest"]
    failure = story.lines[4]
    assert (failure.last - failure.first, failure.facts) == (2, {"code": "403, permission", "tries": "1"})
    assert (failure.event, story.subjects["undo"], story.actors) == (
        "step_failed",
        4,
        {"person:ada": 3, "agent:claude-code": 1},
    )


def test_the_why_line_says_what_failed_in_the_tools_words_who_decided_and_what_is_left() -> None:
    story = told((Action.APPROVE, "green"), (Action.COMPENSATE, "a new token tomorrow"))
    assert [one.text for one in story.why] == [
        "“Publish it” failed permanently: token expired (403, permission, not retried).",
        "ada chose to undo: a new token tomorrow (1 step undone, still there: “Mail”, “Notes”).",
    ]
    assert all(one.n for one in story.why)


def test_a_run_that_waits_says_for_whom_and_one_that_is_completed_nothing() -> None:
    assert [one.text for one in told().why] == ["Asked for approval: Publish 2.4.0?"]
    undecided = told((Action.APPROVE, "green"))
    assert undecided.why[-1].text == "Somebody has to decide how to go on with it."
    done = plan({"id": "a", "tool": "x.do"})
    assert told(what=done).why == ()


def test_a_failure_that_somebody_resolved_is_no_reason_any_longer() -> None:
    async def scene() -> tuple[RunStory, RunStory]:
        stage = Stage(puppet("x.once", failing(Category.PERMISSION)))
        run = await stage.play(plan({"id": "a", "tool": "x.once"}, {"id": "go", "approve": "Go?"}))
        reader = RunReader(stage.store, stage.clock)
        before = await reader.story(run.id)
        await stage.control.act(run.id, Action.RETRY, actor=ADA, reason="the token is new")
        await stage.worker.settled(run.id)
        return before, await reader.story(run.id)

    before, after = in_virtual_time(scene)
    assert before.why[0].text.startswith("“A” failed")
    assert [one.text for one in after.why] == ["Asked for approval: Go?"]


def test_a_step_that_was_tried_often_says_so_and_a_refused_output_names_its_findings() -> None:
    async def scene() -> tuple[RunStory, RunStory]:
        stage = Stage(puppet("x.bad", always(Category.TRANSIENT)))
        run = await stage.play(plan({"id": "a", "tool": "x.bad", "retry": {"attempts": 3, "first": "1s"}}))
        tried = await RunReader(stage.store, stage.clock).story(run.id)
        climb = await led(plan({"id": "w", "prompt": "w", "checks": [{"rule": "equals", "value": "right"}]}))
        await climb.next("bo")
        await climb.submit("w", "wrong", agent="bo")
        return tried, await RunReader(climb.stage.store, climb.stage.clock).story(climb.run)

    tried, refused = in_virtual_time(scene)
    assert tried.why[0].note == "transient, tried 3 times"
    assert refused.why[-1].text == "bo is to submit “W” again. (1 check failed: equals)."
    (line,) = [line for line in refused.lines if line.kind is StoryKind.REFUSED]
    assert (line.facts["checks"], bool(line.words)) == ("equals", True)


@pytest.mark.parametrize("seed", range(20))
def test_every_entry_of_the_journal_is_told_exactly_once(seed: int) -> None:
    async def scene() -> tuple[RunStory, int]:
        stage = stage_of(Random(seed), [])
        await stage.open()
        run = await stage.start(Planner(seed).plan(), {"who": "ann"})
        run = await stage.worker.settled(run.id)
        await stage.control.act(run.id, Action.COMPENSATE, actor=ADA, reason="enough")
        await to_the_end(stage, run)
        story = await RunReader(stage.store, stage.clock).story(run.id)
        return story, len(await stage.store.read(run.id))

    story, entries = in_virtual_time(scene)
    numbers = [n for line in story.lines for n in range(line.first, line.last + 1)]
    assert numbers == list(range(1, entries + 1))
    assert len(story.lines) < entries
    assert {one.n for one in story.why} <= set(numbers)


def test_a_story_that_is_read_again_goes_on_where_it_was() -> None:
    async def scene() -> tuple[RunStory, RunStory, RunStory]:
        stage = Stage(puppet("x.once", failing(Category.TRANSIENT, Category.TRANSIENT)))
        gated = {"id": "go", "approve": "Go?"}
        first = {"id": "a", "tool": "x.once", "retry": {"attempts": 3, "first": "1s"}}
        run = await stage.play(plan(first, gated, {"id": "b", "tool": "x.do"}))
        reader = RunReader(stage.store, stage.clock)
        before = await reader.story(run.id)
        await stage.control.act(run.id, Action.SKIP, actor=ADA, reason="agreed by phone", step="go")
        await stage.worker.settled(run.id)
        return before, await reader.story(run.id), await RunReader(stage.store, stage.clock).story(run.id)

    before, after, fresh = in_virtual_time(scene)
    assert after == fresh
    assert before.lines == after.lines[: len(before.lines)]
    assert after.lines[1].notes == ("“A” failed twice: it is transient (transient). Then it worked.",)
    (skip,) = [line for line in after.lines if line.kind is StoryKind.DECISION]
    assert (skip.text, skip.last - skip.first, skip.words) == ("ada skipped “Go”", 1, "agreed by phone")
    assert [(one.kind.value, one.n) for one in after.why] == [("skipped", skip.last)]
