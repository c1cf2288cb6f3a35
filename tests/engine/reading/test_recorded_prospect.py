"""Recorded runs as readers see them: always waiting for the agent who performs them, never running by themselves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.stage import ADA, Stage, plan
from handrail.domain.definition.model import Definition
from handrail.domain.errors import Conflict
from handrail.domain.journal.event import How, Mode, Outcome
from handrail.domain.run.command import CancelRun, FinishRun, PauseRun, RecordAction, ResumeRun
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.engine.guiding.recorder import Recorder
from handrail.engine.reading.prospect import prospect_of
from handrail.engine.reading.run_view import Detail, Status, status_of
from virtual_time import in_virtual_time

CLAUDE = "agent:claude"
UNDO = {"effect": "compensatable", "undo": {"tool": "x.undo"}}
DEFINITION = plan(
    {"id": "tag", "tool": "nobody.knows", **UNDO},
    {"id": "build", "tool": "x.do", "priority": -1},
    {"id": "publish", "tool": "x.do", "after": ["tag"], **UNDO},
    {"id": "tell", "prompt": "tell", "after": ["build", "publish"]},
)


class Play:
    """A recorded run, and what is reported of it."""

    def __init__(self, stage: Stage, run: Run, definition: Definition) -> None:
        self.stage, self.run, self.definition = stage, run, definition

    async def grant(self, *commands: Any) -> Status:
        self.run = await self.stage.worker.dispatch.grant(self.run.id, *commands, actor=CLAUDE)
        return self.status()

    async def say(self, step: str, outcome: Outcome = Outcome.DONE) -> Status:
        return await self.grant(RecordAction(description="so it was", step=step, outcome=outcome))

    async def undone(self, step: str, how: How = How.RECORDED) -> Run:
        self.run = await self.stage.control.record_compensation(
            self.run.id, step, how=how, description="by hand", actor=CLAUDE, details={}
        )
        return self.run

    async def act(self, action: Action) -> Run:
        self.run = await self.stage.control.act(self.run.id, action, actor=ADA, reason="so be it")
        return self.run

    def status(self) -> Status:
        return status_of(self.run, self.definition, now=self.stage.clock(), detail=Detail.FULL)

    def left(self) -> tuple[str, ...]:
        return prospect_of(self.run, self.definition, now=self.stage.clock()).for_agent


async def played(definition: Definition = DEFINITION) -> Play:
    stage = Stage()
    await stage.open()
    run = await stage.start(definition, mode=Mode.RECORD)
    return Play(stage, run, definition)


async def all_done() -> Play:
    play = await played()
    for step in ("tag", "publish", "build"):
        await play.say(step)
    return play


def test_an_approval_that_expires_in_a_recorded_run_is_asked_again() -> None:
    async def scene() -> tuple[str, str, StepStatus]:
        play = await played(plan({"id": "go", "approve": "Go?", "expires": "10s"}))
        recorder = Recorder(play.stage.worker.dispatch, play.stage.clock, lambda _, given: (given, ()))
        first = await recorder.settle(play.run)
        await asyncio.sleep(11)
        again = await recorder.settle(first)
        return first.step("go").digest, again.step("go").digest, again.step("go").status

    first, again, status = in_virtual_time(scene)
    assert status is StepStatus.WAITING
    assert "" != first != again != ""


def test_a_recorded_run_is_waiting_from_its_first_moment_and_no_worker_touches_it() -> None:
    async def scene() -> tuple[Status, int, int, int]:
        play = await played()
        before = play.status()
        await asyncio.sleep(100)
        run = await play.stage.worker.dispatch.current(play.run.id)
        calls = sum(len(tool.calls) for tool in play.stage.box.tools.values())
        return before, run.n, calls, len(await play.stage.store.lease_holders())

    status, n, calls, lease_holders = in_virtual_time(scene)
    assert status.status is RunStatus.WAITING
    assert [(one.kind.value, one.step) for one in status.waiting_for] == [("agent", "tag")]
    assert (n, calls, lease_holders) == (1, 0, 0)


def test_what_was_started_or_failed_comes_before_what_is_ready_in_its_order() -> None:
    async def scene() -> list[tuple[str, ...]]:
        play = await played()
        left = [play.left()]
        await play.say("tag")
        left.append(play.left())
        await play.say("build", Outcome.STARTED)
        left.append(play.left())
        await play.say("build", Outcome.FAILED)
        left.append(play.left())
        await play.say("publish")
        await play.say("build", Outcome.SKIPPED)
        return [*left, play.left()]

    assert in_virtual_time(scene) == [
        ("tag",),
        ("publish", "build"),
        ("build", "publish"),
        ("build", "publish"),
        ("tell",),
    ]


def test_a_recorded_run_never_says_that_it_is_running() -> None:
    async def scene() -> list[str]:
        play = await played()
        seen = [play.status()]
        seen += [await play.say("tag", outcome) for outcome in (Outcome.STARTED, Outcome.FAILED, Outcome.DONE)]
        seen += [await play.grant(PauseRun(reason="lunch"))]
        assert play.left() == ()
        seen += [await play.grant(ResumeRun(reason="back"))]
        seen += [await play.say(step) for step in ("build", "publish", "tell")]
        return [status.status.value for status in (*seen, await play.grant(FinishRun()))]

    waits = ["waiting"] * 4
    assert in_virtual_time(scene) == [*waits, "paused", "waiting", "waiting", "waiting", "waiting", "completed"]


def test_an_ended_run_waits_for_nothing() -> None:
    async def scene() -> tuple[tuple[str, ...], Status]:
        play = await played()
        status = await play.grant(CancelRun(reason="enough"))
        return play.left(), status

    left, status = in_virtual_time(scene)
    assert left == ()
    assert (status.status, status.waiting_for) == (RunStatus.CANCELLED, ())


def test_what_is_to_be_undone_is_the_agents_work_newest_first_and_its_word_ends_it() -> None:
    async def scene() -> tuple[list[tuple[str, ...]], list[RunStatus], Run]:
        play = await all_done()
        statuses = [(await play.act(Action.COMPENSATE)).status]
        left = [play.left()]
        await asyncio.sleep(100)  # a worker has no part in it
        statuses.append((await play.undone("publish")).status)
        left.append(play.left())
        statuses.append((await play.undone("tag", How.NOT_NEEDED)).status)
        return [*left, play.left()], statuses, play.run

    left, statuses, run = in_virtual_time(scene)
    assert left == [("publish", "tag"), ("tag",), ()]
    assert statuses == [RunStatus.COMPENSATING, RunStatus.COMPENSATING, RunStatus.COMPENSATED]
    assert [run.step(name).compensation for name in ("publish", "tag")] == ["recorded", "not_needed"]
    assert run.step("build").status is StepStatus.COMPLETED


def test_while_it_is_undone_the_agent_is_waited_for() -> None:
    async def scene() -> Status:
        play = await all_done()
        await play.act(Action.COMPENSATE)
        return play.status()

    status = in_virtual_time(scene)
    assert [(one.kind.value, one.step) for one in status.waiting_for] == [("agent", "publish"), ("agent", "tag")]


def test_where_nothing_is_to_be_undone_the_compensation_is_over_at_once() -> None:
    async def scene() -> Run:
        play = await played()
        return await play.act(Action.COMPENSATE)

    assert in_virtual_time(scene).status is RunStatus.COMPENSATED


def test_in_a_run_that_handrail_executes_a_word_alone_does_not_end_the_compensation() -> None:
    definition = plan({"id": "tag", "tool": "x.do", "undo": {"prompt": "undo it"}}, {"id": "wait", "prompt": "w"})

    async def scene() -> tuple[RunStatus, Run]:
        stage = Stage()
        run = await stage.play(definition)
        during = await stage.control.act(run.id, Action.COMPENSATE, actor=ADA, reason="so be it")
        await stage.worker.settled(run.id)
        control = stage.control
        after = await control.record_compensation(
            run.id, "tag", how=How.RECORDED, description="by hand", actor=CLAUDE, details={}
        )
        assert after.status is RunStatus.COMPENSATING
        return during.status, await stage.worker.settled(run.id)

    during, run = in_virtual_time(scene)
    assert during is RunStatus.COMPENSATING
    assert run.status is RunStatus.COMPENSATED


def test_what_was_undone_once_is_not_undone_again() -> None:
    async def scene() -> None:
        play = await all_done()
        await play.act(Action.COMPENSATE)
        await play.undone("publish")
        with pytest.raises(Conflict, match="'publish' is compensated"):
            await play.undone("publish")

    in_virtual_time(scene)
