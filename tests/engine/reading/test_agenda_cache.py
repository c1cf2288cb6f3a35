"""The horizon: an prospect that is kept up event by event is the one that a fresh look would give."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.stage import ADA, Stage, always, failing, plan, puppet, taking
from handrail.domain.definition.model import Category, Definition
from handrail.domain.errors import Unavailable
from handrail.domain.journal.event import Mode, Outcome
from handrail.domain.run.command import (
    Command,
    CompleteStep,
    GiveApproval,
    HandOutStep,
    OpenStep,
    RecordAction,
    SetVars,
    SkipStep,
)
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.engine.reading.agenda_cache import RUNS_KEPT, AgendaCache
from handrail.engine.reading.prospect import Prospect, prospect_of
from virtual_time import in_virtual_time

CLEAN = {"id": "clean", "version": "1.0.0", "steps": [{"id": "wipe", "prompt": "wipe"}, {"id": "do", "tool": "x.do"}]}
SURE = {"id": "sure", "version": "1.0.0", "steps": [{"id": "go", "approve": "Sure?"}]}
UNDO = {"undo": {"tool": "x.undo"}}
PLANS: dict[str, tuple[Any, ...]] = {
    "chain": ({"id": "a", "tool": "x.do"}, {"id": "b", "prompt": "b"}, {"id": "c", "tool": "x.slow"}),
    "each": (
        {
            "id": "e",
            "each": "[1, 2, 3]",
            "parallel": 2,
            "steps": [{"id": "p", "prompt": "p"}, {"id": "t", "tool": "x.do"}],
        },
        {"id": "z", "prompt": "z"},
    ),
    "repeat": (
        {"id": "r", "repeat": {"times": 3, "every": "30s"}, "steps": [{"id": "t", "tool": "x.slow"}]},
        {"id": "z", "prompt": "z"},
    ),
    "approve": ({"id": "go", "approve": "?", "expires": "1m"}, {"id": "b", "prompt": "b"}),
    "retry": ({"id": "a", "tool": "x.flaky", "retry": {"first": "20s"}}, {"id": "b", "prompt": "b"}),
    "asks": ({"id": "a", "tool": "x.bad"}, {"id": "b", "prompt": "b", "after": []}, {"id": "c", "prompt": "c"}),
    "undo": (
        {"id": "a", "tool": "x.do", "undo": {"workflow": "clean@1.0.0"}},
        {"id": "w", "prompt": "w", "effect": "compensatable", "undo": {"prompt": "undo w"}},
        {"id": "b", "tool": "x.do", **UNDO},
        {"id": "c", "tool": "x.bad", "on_failure": "compensate"},
    ),
    "waits": (
        {"id": "w", "tool": "wait.for"},
        {"id": "when", "prompt": "x", "when": "1 == 2"},
        {"id": "b", "prompt": "b"},
    ),
    "withdrawn": (
        {"id": "go", "approve": "Go {{ vars.n }}?", "expires": "1m"},
        {"id": "a", "tool": "x.slow", "args": {"n": "{{ vars.n }}"}},
        {"id": "e", "each": "[1, 2]", "parallel": 2, "steps": [{"id": "t", "tool": "x.slow"}]},
        {"id": "z", "tool": "x.do", "args": {"n": "{{ vars.n }}"}},
    ),
    "withdrawn beside": (
        {"id": "go", "approve": "Go {{ vars.n }}?"},
        {
            "id": "s",
            "repeat": {"times": 3, "every": "30s"},
            "steps": [{"id": "t", "tool": "x.slow"}],
            "after": [],
        },
        {"id": "z", "prompt": "z", "after": ["go", "s"]},
    ),
    "withdrawn inside": (
        {"id": "k", "workflow": "sure@1.0.0"},
        {"id": "e", "each": "[1, 2]", "steps": [{"id": "t", "tool": "x.slow", "args": {"n": "{{ vars.n }}"}}]},
        {"id": "z", "tool": "x.slow", "args": {"n": "{{ vars.n }}"}},
    ),
    "called": ({"id": "k", "workflow": "clean@1.0.0"}, {"id": "z", "tool": "x.slow"}),
}


def seen(prospect: Prospect) -> tuple[Any, ...]:
    return prospect.can_move, prospect.for_agent, prospect.asked, prospect.undecided


class Watch:
    """Compares what is kept with what a fresh look tells, at every event and between them."""

    def __init__(self, stage: Stage, definition: Definition) -> None:
        self.stage, self.definition = stage, definition
        self.agenda_cache = AgendaCache(stage.worker.dispatch)
        self.looks = 0
        self.flaws: list[str] = []  # told at the end: a conductor would swallow what a watcher raises
        stage.worker.dispatch.watchers.append(self.notice)

    def notice(self, run: Run, *_: object) -> None:
        self.look(run)

    def look(self, run: Run) -> None:
        now = self.stage.clock()
        kept = self.agenda_cache.prospect(run, self.definition, now=now)
        fresh = prospect_of(run, self.definition, now=now)
        if seen(kept) != seen(fresh):
            self.flaws.append(f"event {run.n}: {seen(kept)} is not {seen(fresh)}")
        self.looks += 1


def next_move(prospect: Prospect, run: Run, number: int) -> list[Command]:
    """What an agent does with the first step that waits for it."""
    if not prospect.for_agent or run.step(prospect.for_agent[0]).status.value == "compensating":
        return []
    step = prospect.for_agent[0]
    return [HandOutStep(step=step)] if number % 2 == 0 else [CompleteStep(step=step, output=number)]


def answered(run: Run, number: int) -> list[Command]:
    """A person says yes to what waits; sometimes a value changes, and the approval no longer counts."""
    waiting = [path for path in run.approvals if run.step(path).status.value == "waiting"]
    yes = [GiveApproval(step=path, digest=run.step(path).digest, reason="yes") for path in waiting]
    return [*yes, *([SetVars(vars={"n": number})] if number in (1, 3, 4) else [])]


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("lazy", [False, True])
def test_what_is_kept_up_is_what_a_fresh_look_tells_at_every_event_and_at_every_time(name: str, lazy: bool) -> None:
    definition = plan(*PLANS[name], pinned={"clean@1.0.0": CLEAN, "sure@1.0.0": SURE})
    flaky = failing(Category.TRANSIENT, Category.TRANSIENT)
    puppets = [puppet("x.slow", taking(7)), puppet("x.bad", always(Category.PERMISSION)), puppet("x.flaky", flaky)]

    async def scene() -> int:
        stage = Stage(*puppets)
        await stage.open()
        watch = Watch(stage, definition)
        if lazy:  # look only now and then: several events are caught up at once
            stage.worker.dispatch.watchers.remove(watch.notice)
        run = await stage.start(definition, vars={"n": 0})
        for number in range(60):
            await asyncio.sleep(5)
            run = await stage.worker.dispatch.current(run.id)
            watch.look(run)
            if name.startswith("withdrawn") and run.status.value == "running":
                await stage.worker.dispatch.grant(run.id, *answered(run, number), actor=ADA)
            commands = next_move(prospect_of(run, definition, now=stage.clock()), run, number)
            if commands:
                await stage.worker.dispatch.grant(run.id, *commands, actor=ADA)
            if number == 20 and run.status.value == "running":
                await stage.control.act(run.id, Action.PAUSE, actor=ADA, reason="x")
            if number == 25 and run.status.value == "paused":
                await stage.control.act(run.id, Action.RESUME, actor=ADA, reason="x")
            if number == 40 and run.status.value == "running":
                await stage.control.act(run.id, Action.COMPENSATE, actor=ADA, reason="x")
        assert watch.flaws == []
        withdrawn = (await stage.kinds(run.id)).count("approval_withdrawn go")
        assert withdrawn >= 2 or name != "withdrawn"
        return watch.looks

    assert in_virtual_time(scene) >= 60


def test_a_recorded_run_is_kept_up_too() -> None:
    definition = plan({"id": "a", "tool": "x.do", **UNDO}, {"id": "b", "prompt": "b"}, {"id": "c", "prompt": "c"})

    async def scene() -> int:
        stage = Stage()
        await stage.open()
        watch = Watch(stage, definition)
        run = await stage.start(definition, mode=Mode.RECORD)
        for step, outcome in (("a", Outcome.STARTED), ("a", Outcome.DONE), ("b", Outcome.FAILED)):
            command = RecordAction(description="x", step=step, outcome=outcome)
            await stage.worker.dispatch.grant(run.id, command, actor=ADA)
        await stage.control.act(run.id, Action.COMPENSATE, actor=ADA, reason="x")
        assert watch.flaws == []
        return watch.looks

    assert in_virtual_time(scene) >= 5


def test_a_look_at_an_earlier_state_does_not_spoil_a_later_one() -> None:
    definition = plan({"id": "a", "prompt": "a"}, {"id": "b", "prompt": "b", "after": []}, {"id": "c", "prompt": "c"})

    async def scene() -> None:
        stage = Stage()
        await stage.open(picks_up=False)
        dispatch = stage.worker.dispatch
        agenda_cache = AgendaCache(dispatch)
        run = await dispatch.start(definition, {}, actor=ADA)
        now = stage.clock()
        agenda_cache.prospect(run, definition, now=now)
        one = await dispatch.grant(run.id, SkipStep(step="a", reason="x"), actor=ADA)
        two = await dispatch.grant(run.id, SkipStep(step="b", reason="x"), actor=ADA)
        for state in (one, two, one, run, two):
            assert seen(agenda_cache.prospect(state, definition, now=now)) == seen(
                prospect_of(state, definition, now=now)
            )

    in_virtual_time(scene)


def test_a_first_look_that_is_behind_what_was_reported_does_not_spoil_a_later_one() -> None:
    definition = plan({"id": "a", "prompt": "a"}, {"id": "b", "prompt": "b"})

    async def scene() -> tuple[tuple[str, ...], tuple[str, ...]]:
        stage = Stage()
        await stage.open(picks_up=False)
        dispatch = stage.worker.dispatch
        agenda_cache = AgendaCache(dispatch)
        earlier = await dispatch.start(definition, {}, actor=ADA)
        later = await dispatch.grant(earlier.id, HandOutStep(step="a"), CompleteStep(step="a"), actor=ADA)
        behind = agenda_cache.prospect(earlier, definition, now=stage.clock()).for_agent
        return behind, agenda_cache.prospect(later, definition, now=stage.clock()).for_agent

    assert in_virtual_time(scene) == (("a",), ("b",))


def test_only_the_runs_that_were_looked_at_last_are_kept() -> None:
    definition = plan({"id": "a", "prompt": "a"})

    async def scene() -> tuple[int, bool]:
        stage = Stage()
        await stage.open(picks_up=False)
        agenda_cache = AgendaCache(stage.worker.dispatch)
        runs = [await stage.worker.dispatch.start(definition, {}, actor=ADA) for _ in range(RUNS_KEPT + 3)]
        for run in runs:
            await agenda_cache.look(run.id, now=stage.clock())
        return len(agenda_cache._agendas), runs[0].id in agenda_cache._agendas

    assert in_virtual_time(scene) == (RUNS_KEPT, False)


def test_a_run_that_another_process_has_moved_is_read_again() -> None:
    definition = plan({"id": "a", "prompt": "a"}, {"id": "b", "prompt": "b"})

    async def scene() -> tuple[tuple[str, ...], tuple[str, ...]]:
        stage = Stage()
        await stage.open(picks_up=False)
        agenda_cache = AgendaCache(stage.worker.dispatch)
        run = await stage.worker.dispatch.start(definition, {}, actor=ADA)
        _, _, before = await agenda_cache.look(run.id, now=stage.clock())
        other = Stage(store=stage.store)
        await other.open("w-two", picks_up=False)
        await other.worker.dispatch.grant(run.id, SkipStep(step="a", reason="x"), actor=ADA)
        _, _, after = await agenda_cache.look(run.id, now=stage.clock())
        return before.for_agent, after.for_agent

    assert in_virtual_time(scene) == (("a",), ("b",))


def test_what_only_the_conductor_says_is_seen_at_every_look_until_it_is_said() -> None:
    definition = plan({"id": "e", "each": "[]", "steps": [{"id": "p", "prompt": "p"}]}, {"id": "z", "prompt": "z"})

    async def scene() -> list[bool]:
        stage = Stage()
        await stage.open(picks_up=False)
        dispatch = stage.worker.dispatch
        agenda_cache = AgendaCache(dispatch)
        run = await dispatch.start(definition, {}, actor=ADA)
        looks = [agenda_cache.prospect(run, definition, now=stage.clock())]
        await stage.worker.close()
        run = await dispatch.grant(run.id, OpenStep(step="e", rounds=0, values=[]), actor="handrail")
        looks += [agenda_cache.prospect(run, definition, now=stage.clock()) for _ in range(3)]
        return [one.can_move for one in looks]

    assert in_virtual_time(scene) == [True] * 4


def test_a_run_that_had_to_be_read_again_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    definition = plan({"id": "a", "prompt": "a"}, {"id": "b", "prompt": "b"})

    async def refuse(*_: Any, **__: Any) -> None:
        raise Unavailable("the disk is full")

    async def scene() -> tuple[str, ...]:
        stage = Stage()
        await stage.open(picks_up=False)
        agenda_cache = AgendaCache(stage.worker.dispatch)
        run = await stage.worker.dispatch.start(definition, {}, actor=ADA)
        await agenda_cache.look(run.id, now=stage.clock())
        with monkeypatch.context() as full:
            full.setattr(stage.store, "append", refuse)
            with pytest.raises(Unavailable):
                await stage.worker.dispatch.grant(run.id, HandOutStep(step="a"), actor=ADA)
        other = Stage(store=stage.store)
        await other.open("w-two", picks_up=False)
        await other.worker.dispatch.grant(run.id, SkipStep(step="a", reason="x"), actor=ADA)
        _, _, prospect = await agenda_cache.look(run.id, now=stage.clock())
        return prospect.for_agent

    assert in_virtual_time(scene) == ("b",)


def test_a_conductor_and_all_who_look_share_one_agenda() -> None:
    definition = plan({"id": "a", "tool": "x.slow"}, {"id": "b", "prompt": "b"})

    async def scene() -> bool:
        stage = Stage(puppet("x.slow", taking(60)))
        await stage.open()
        run = await stage.start(definition)
        await asyncio.sleep(1)
        _, _, prospect = await stage.worker.agenda_cache.look(run.id, now=stage.clock())
        return prospect.agenda is stage.worker.conductors[run.id].agenda

    assert in_virtual_time(scene)


def test_an_agenda_that_missed_a_report_is_made_again_for_readers_and_for_the_conductor() -> None:
    definition = plan(
        {"id": "z", "tool": "x.slow"},
        {"id": "a", "prompt": "a", "after": []},
        {"id": "b", "prompt": "b", "after": []},
        {"id": "c", "tool": "x.do", "after": ["a"]},
        max_parallel=5,
    )

    async def scene() -> tuple[tuple[str, ...], str]:
        stage = Stage(puppet("x.slow", taking(600)))
        await stage.open()
        run = await stage.start(definition)
        await asyncio.sleep(1)
        dispatch = stage.worker.dispatch
        watchers = list(dispatch.watchers)
        dispatch.watchers.clear()  # a report is lost
        await dispatch.grant(run.id, SkipStep(step="a", reason="x"), actor=ADA)
        dispatch.watchers.extend(watchers)
        await dispatch.grant(run.id, SkipStep(step="b", reason="x"), actor=ADA)
        await asyncio.sleep(1)
        run, _, prospect = await stage.worker.agenda_cache.look(run.id, now=stage.clock())
        return prospect.for_agent, run.step("c").status.value

    assert in_virtual_time(scene) == ((), "completed")


def test_what_comes_due_at_a_readers_look_while_tools_are_asked_is_done_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    definition = plan(
        {"id": "r", "repeat": {"times": 2, "every": "25s"}, "steps": [{"id": "in", "tool": "value.set"}]},
        {"id": "b", "tool": "x.far", "after": []},
    )

    async def scene() -> str:
        stage = Stage(puppet("x.far", reach="far"))
        await stage.open()

        async def held(server: str, *, now: int) -> int:
            (conductor,) = stage.worker.conductors.values()
            if conductor.run.step("r").round == 1:
                await asyncio.sleep(20)  # no alarm is set for the second round yet
            return now + 10_000_000

        monkeypatch.setattr(stage.worker._parts.breakers, "open_until", held)
        run = await stage.start(definition)
        await asyncio.sleep(30)  # the round has come due, and the conductor still asks for `b`
        await stage.worker.agenda_cache.look(run.id, now=stage.clock())
        await asyncio.sleep(60)
        return (await stage.worker.dispatch.current(run.id)).step("r").status.value

    assert in_virtual_time(scene) == "completed"


def test_a_run_is_not_settled_while_something_that_came_due_at_a_look_is_still_to_be_done() -> None:
    definition = plan({"id": "a", "tool": "x.flaky", "retry": {"first": "4s"}})

    async def scene() -> bool:
        stage = Stage(puppet("x.flaky", failing(Category.TRANSIENT)))
        await stage.open()
        run = await stage.start(definition)
        await asyncio.sleep(1)
        conductor = stage.worker.conductors[run.id]
        await stage.worker.agenda_cache.look(run.id, now=stage.clock() + 60_000)  # before the alarm rings
        return conductor.is_settled

    assert in_virtual_time(scene) is False
