"""What readers are told of a run: its status, whom it waits for, its failures with the ways out, and its steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from domain import facts
from domain.facts import CHAIN, RUN, entries, fresh, given, plan
from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Category, Definition, Effect, OnFailure
from handrail.domain.errors import IntegrityBroken, NotFound
from handrail.domain.journal.chain import Head
from handrail.domain.journal.event import SERVER_PREFIX, Fork, How, RunStarted
from handrail.domain.journal.projection import NO_CHANGE
from handrail.domain.journal.store_event import BreakerOpened
from handrail.domain.run.command import (
    CancelRun,
    CompensateStep,
    CompleteStep,
    DeferStep,
    FailAttempt,
    FailUndo,
    FinishCompensation,
    FinishRun,
    HandOutStep,
    LoseAttempt,
    OpenStep,
    PauseRun,
    RequestApproval,
    SkipStep,
    StartAttempt,
    StartCompensation,
    StartRound,
    StartUndo,
)
from handrail.domain.run.state import Run, replay
from handrail.domain.scheduling.breaker import TRIPS_AFTER
from handrail.engine.dispatch import Dispatch
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.reading.run_view import Detail, Status, status_of
from handrail.engine.reading.step_view import LiveState, PostponedView, StepView, Why
from handrail.engine.running.calls.postponed_steps import limit_of
from handrail.engine.running.calls.throttle import Postponed
from handrail.engine.tool import ToolSpec
from handrail.storage.memory import MemoryStore
from support import record_writer

NOW = 100_000
MIXED = plan(
    {"id": "notes", "prompt": "Write the notes."},
    {"id": "tag", "tool": "git.tag", "effect": "compensatable", "undo": {"tool": "git.untag"}, "after": []},
    {"id": "go", "approve": "Publish?", "by": ["ann"], "expires": "1h", "after": ["notes", "tag"]},
)
FAILED = FailAttempt(step="publish", category=Category.PERMISSION, message="403 from registry")


def after(run: Run, commands: Sequence[Any], definition: Definition = CHAIN) -> Run:
    return facts.after(run, commands, definition)


def done(step: str, effect: Effect = Effect.COMPENSATABLE) -> list[Any]:
    return [StartAttempt(step=step, effect=effect), CompleteStep(step=step)]


def seen(run: Run, definition: Definition = CHAIN, *, now: int = NOW, **more: Any) -> Status:
    return status_of(run, definition, now=now, detail=Detail.FULL, **more)


def step(status: Status, path: str) -> StepView:
    return next(one for one in status.steps if one.id == path)


def data(status: Status) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(status))
    return told


def failed_at_publish() -> Run:
    commands = [*done("tag"), *done("build", Effect.NONE), StartAttempt(step="publish", effect=Effect.COMPENSATABLE)]
    return after(fresh(), [*commands, FAILED])


def test_a_fresh_run_has_work_and_its_first_step_is_ready() -> None:
    status = seen(fresh())
    assert (status.status, status.progress.done, status.progress.total) == ("running", 0, 4)
    assert [one.status for one in status.steps] == ["ready", "pending", "pending", "pending"]
    assert step(status, "build").waits_for == (PostponedView(kind=Why.STEP, step="tag"),)
    assert status.waiting_for == ()


def test_what_is_empty_is_left_out_and_times_are_rfc_3339() -> None:
    told = data(status_of(fresh(), CHAIN, now=NOW))
    assert set(told) == {"run", "workflow", "status", "progress", "started", "receipt"}
    assert told["started"] == "1970-01-01T00:00:01Z"
    assert told["receipt"].startswith("1:")


def test_a_run_whose_next_step_is_the_agents_waits_for_it() -> None:
    run = after(fresh(MIXED), done("tag"), MIXED)
    status = seen(run, MIXED)
    assert status.status == "waiting"
    assert data(status)["waiting_for"] == [{"kind": "agent", "step": "notes"}]
    assert (step(status, "notes").status, step(status, "notes").waits_for) == (
        "ready",
        (PostponedView(kind=Why.AGENT),),
    )
    handed = after(run, [HandOutStep(step="notes", agent="agent:claude", until=None)], MIXED)
    assert seen(handed, MIXED).waiting_for[0].by == ("agent:claude",)


def test_an_agents_step_whose_condition_does_not_hold_is_handrails_work() -> None:
    definition = plan({"id": "notes", "prompt": "Write.", "when": "1 == 2"})
    assert seen(fresh(definition), definition).status == "running", "handrail will skip it"


def test_a_run_that_asks_a_person_shows_what_is_asked_by_whom_and_until_when() -> None:
    ask = RequestApproval(step="go", expires=3_600_000)
    given_notes = [HandOutStep(step="notes"), CompleteStep(step="notes")]
    run = after(fresh(MIXED), [*given_notes, *done("tag"), ask], MIXED)
    status = seen(run, MIXED)
    assert status.status == "waiting"
    (one,) = data(status)["waiting_for"]
    assert one == {
        "kind": "approval",
        "step": "go",
        "since": one["since"],
        "text": "Publish?",
        "by": ["ann"],
        "expires": "1970-01-01T01:00:00Z",
        "digest": run.step("go").digest,
    }
    assert step(status, "go").waits_for == (PostponedView(kind=Why.APPROVAL, until="1970-01-01T01:00:00Z"),)


def test_a_failure_that_asks_comes_with_every_way_out() -> None:
    status = seen(failed_at_publish())
    assert status.status == "waiting"
    assert [(one.kind, one.step) for one in status.waiting_for] == [("decision", "publish")]
    failure = data(status)["failure"]
    assert (failure["step"], failure["category"], failure["attempts"]) == ("publish", "permission", 1)
    assert {one["action"]: one["means"] for one in failure["options"]} == {
        "retry": "call it again under the same key; the tool does not promise that its effect happens only once",
        "skip": "continue without it",
        "compensate": "undo tag",
        "cancel": "end the run; what was done stays: tag",
    }
    retry, _, compensate, _ = failure["options"]
    assert retry["step"] == "publish"
    assert "step" not in compensate


def test_the_options_name_what_is_undone_what_stays_and_what_nobody_knows() -> None:
    told = plan(
        {"id": "tag", "tool": "git.tag", "effect": "compensatable", "undo": {"tool": "git.untag"}},
        {"id": "count", "tool": "shell.run", "effect": "irreversible"},
        {"id": "announce", "tool": "shell.run", "effect": "irreversible", "on_failure": "ask"},
    )
    exit_3 = FailAttempt(step="announce", category=Category.TOOL_ERROR, message="exit 3")
    begun = [*done("tag"), *done("count", Effect.IRREVERSIBLE)]
    run = after(
        fresh(told), [*begun, StartAttempt(step="announce", effect=Effect.IRREVERSIBLE, idempotent=True), exit_3], told
    )
    failure = seen(run, told).failure
    assert failure is not None
    means = {one.action: one.means for one in failure.options}
    unknown = "unknown whether it had an effect: announce"
    assert means["compensate"] == f"undo tag; can't be undone, stays: count; {unknown}"
    assert means["cancel"] == f"end the run; what was done stays: tag, count; {unknown}"
    assert means["retry"] == "call it again under the same key"


def test_with_nothing_to_undo_compensation_is_not_offered() -> None:
    failed = FailAttempt(step="tag", category=Category.PERMISSION, message="no")
    failing = [StartAttempt(step="tag", effect=Effect.COMPENSATABLE), failed]
    failure = seen(after(fresh(), failing)).failure
    assert failure is not None
    assert [one.action for one in failure.options] == ["retry", "skip", "cancel"]


def test_an_uncertain_step_may_be_accepted_and_has_no_category() -> None:
    lost = [StartAttempt(step="tag", effect=Effect.COMPENSATABLE), LoseAttempt(step="tag")]
    status = seen(after(fresh(), lost))
    assert (status.status, step(status, "tag").status) == ("waiting", "uncertain")
    assert status.failure is not None
    assert "category" not in data(status)["failure"]
    assert [one.action for one in status.failure.options] == ["retry", "accept", "skip", "compensate", "cancel"]


def test_a_retry_that_waits_for_its_time_is_handrails_work_and_shows_when() -> None:
    failed = FailAttempt(step="tag", category=Category.TRANSIENT, message="503", due=160_000)
    status = seen(after(fresh(), [StartAttempt(step="tag", effect=Effect.NONE), failed]))
    assert status.status == "running"
    tag = step(status, "tag")
    assert (tag.status, tag.due, tag.message) == ("waiting", "1970-01-01T00:02:40Z", "503")
    assert tag.waits_for == (PostponedView(kind=Why.RETRY, until="1970-01-01T00:02:40Z"),)


def test_a_tool_that_asked_to_be_called_later_has_not_used_up_a_try() -> None:
    commands = [StartAttempt(step="tag", effect=Effect.NONE), DeferStep(step="tag", due=NOW)]
    run = after(fresh(), [*commands, StartAttempt(step="tag", effect=Effect.NONE)])
    assert step(seen(run), "tag").attempts == 1
    waiting = seen(after(fresh(), commands))
    assert step(waiting, "tag").waits_for[0].kind is Why.TIME


def test_a_paused_run_says_why_and_a_cancelled_one_what_it_left_behind() -> None:
    paused = seen(after(fresh(), [*done("tag"), PauseRun(reason="lunch")]))
    assert (paused.status, paused.reason, paused.waiting_for) == ("paused", "lunch", ())
    assert step(paused, "build").status == "pending", "nothing begins while it is paused"
    cancelled = seen(after(fresh(), [*done("tag"), CancelRun(reason="wrong branch")]))
    assert (cancelled.status, cancelled.reason) == ("cancelled", "wrong branch")
    assert cancelled.ended
    assert [(one.action, one.means) for one in cancelled.options] == [("compensate", "undo tag")]
    assert "options" not in data(seen(after(fresh(), [CancelRun(reason="nothing was done")])))


def test_a_run_that_failed_for_good_may_be_undone_or_forked() -> None:
    stopping = msgspec.structs.replace(CHAIN, on_failure=OnFailure.STOP)
    status = seen(after(failed_at_publish(), [FinishRun()], stopping), stopping)
    assert status.status == "failed"
    assert status.failure is not None
    assert [one.action for one in status.failure.options] == ["compensate", "fork"]
    assert status.failure.options[1].step == "publish"


def test_a_compensated_run_says_how_each_step_was_undone_and_names_what_was_not() -> None:
    everything = [*done("tag"), *done("build", Effect.NONE), *done("publish")]
    everything.append(StartAttempt(step="tell", effect=Effect.IRREVERSIBLE))
    failed = FailAttempt(step="tell", category=Category.PERMISSION, message="no")
    run = after(fresh(), [*everything, failed, StartCompensation(reason="no good")])
    assert seen(run).status == "compensating"
    undone: list[Any] = [StartUndo(step="publish"), CompensateStep(step="publish", how=How.EXECUTED)]
    undone += [StartUndo(step="tag"), CompensateStep(step="tag", how=How.RECORDED)]
    status = seen(after(run, [*undone, FinishCompensation()]))
    assert (status.status, status.reason) == ("compensated", "no good")
    assert [step(status, one).compensation for one in ("tag", "publish")] == ["recorded", "executed"]


def test_an_effect_that_nothing_undoes_is_shown_loudly() -> None:
    definition = plan({"id": "tell", "tool": "mail.send", "effect": "irreversible"}, {"id": "next", "tool": "x.y"})
    run = after(fresh(definition), [*done("tell", Effect.IRREVERSIBLE), StartCompensation(reason="x")], definition)
    status = seen(run, definition)
    assert status.not_compensated == ("tell",)
    assert step(status, "tell").compensation == "none"


def test_an_undo_that_failed_waits_for_a_decision() -> None:
    run = after(failed_at_publish(), [StartCompensation(reason="x"), StartUndo(step="tag")])
    failed = FailUndo(step="tag", category=Category.PERMISSION, message="locked")
    status = seen(after(run, [failed, FinishCompensation()]))
    assert status.status == "compensation_failed"
    assert [(one.kind, one.step) for one in status.waiting_for] == [("decision", "tag")]
    assert status.failure is not None
    assert {one.action: one.means for one in status.failure.options} == {
        "retry": "try its undo again",
        "skip": "give up on undoing it: its effect stays",
        "record": "it is undone, by hand or otherwise, or needs no undo: record that",
    }


def test_a_compensation_that_failed_names_all_that_is_not_undone_also_what_was_not_tried() -> None:
    done_all = [*done("tag"), *done("build", Effect.NONE), *done("publish"), *done("tell", Effect.IRREVERSIBLE)]
    run = after(fresh(), [*done_all, StartCompensation(reason="x"), StartUndo(step="publish")])
    assert seen(run).not_compensated == ("tell",), "the others are being undone"
    failed = FailUndo(step="publish", category=Category.PERMISSION, message="locked")
    run = after(run, [failed, FinishCompensation()])
    status = seen(run)
    assert set(status.not_compensated) == {"publish", "tag", "tell"}
    assert status.failure is not None
    assert status.failure.message == "locked; not undone because of that: tag"
    assert {one.id for one in status.steps if one.compensation == "none"} == {"publish", "tag", "tell"}
    again = [StartCompensation(reason="again"), StartUndo(step="publish")]
    undone = [CompensateStep(step=one, how=How.EXECUTED) for one in ("publish", "tag")]
    assert seen(after(run, [*again, *undone, FinishCompensation()])).not_compensated == ("tell",)


def test_an_undo_by_the_agent_is_waited_for() -> None:
    definition = plan(
        {"id": "post", "tool": "x.y", "effect": "compensatable", "undo": {"prompt": "Take it back."}},
        {"id": "next", "tool": "x.y"},
    )
    begun = [StartCompensation(reason="x"), StartUndo(step="post")]
    run = after(fresh(definition), [*done("post"), *begun], definition)
    assert [(one.kind, one.step) for one in seen(run, definition).waiting_for] == [("agent", "post!undo")]
    at_once = replace(definition, on_failure=OnFailure.COMPENSATE)
    failed = FailAttempt(step="next", category=Category.PERMISSION, message="403")
    run = after(fresh(at_once), [*done("post"), StartAttempt(step="next"), failed, *begun], at_once)
    assert [(one.kind, one.step) for one in seen(run, at_once).waiting_for] == [("agent", "post!undo")]


def test_rounds_stand_below_their_loop() -> None:
    definition = plan(
        {"id": "build", "each": "[1, 2]", "parallel": 2, "steps": [{"id": "make", "tool": "ci.make"}]},
        {"id": "poll", "repeat": {"until": "1 == 2", "max": 5}, "steps": [{"id": "ask", "tool": "ci.ask"}]},
    )
    opened = after(fresh(definition), [OpenStep(step="build", rounds=2, values=[1, 2])], definition)
    status = seen(opened, definition)
    assert [one.id for one in status.steps] == ["build", "build[0].make", "build[1].make", "poll"]
    assert (step(status, "build").rounds, step(status, "build").round) == (2, 2)
    rounds = [*done("build[0].make"), *done("build[1].make"), CompleteStep(step="build")]
    polling = [OpenStep(step="poll"), StartRound(step="poll", due=None)]
    status = seen(after(opened, [*rounds, *polling], definition), definition)
    assert [one.id for one in status.steps][-2:] == ["poll", "poll[0].ask"]
    assert (step(status, "poll").round, step(status, "poll").rounds) == (1, 5)
    assert (status.status, step(status, "poll[0].ask").status) == ("running", "ready")


def test_the_steps_of_an_inlined_workflow_stand_below_its_call() -> None:
    inner = plan({"id": "post", "prompt": "Tell them."})
    outer = msgspec.structs.replace(
        plan({"id": "tell", "workflow": "a-plan@1"}, {"id": "rest", "tool": "x.y"}), pinned={"a-plan@1": inner}
    )
    run = after(fresh(outer), [OpenStep(step="tell", values={})], outer)
    status = seen(run, outer)
    assert [one.id for one in status.steps] == ["tell", "tell.post", "rest"]
    assert (status.status, status.waiting_for[0].step) == ("waiting", "tell.post")


def test_a_run_past_its_deadline_or_with_nothing_left_has_work_for_handrail() -> None:
    late = replay(
        entries([RunStarted(definition="sha256:0", workflow="a-plan", deadline=50_000)]),
        Run(id=RUN),
    )
    notes = plan({"id": "notes", "prompt": "Write."})
    assert seen(late, notes, now=40_000).status == "waiting"
    assert (seen(late, notes).status, seen(late, notes).deadline) == ("running", "1970-01-01T00:00:50Z")
    all_done = after(fresh(notes), [SkipStep(step="notes", reason="known")], notes)
    assert seen(all_done, notes).status == "running", "it only has to be ended"


def test_a_failed_step_that_stops_everything_is_handrails_work() -> None:
    status = seen(failed_at_publish(), msgspec.structs.replace(CHAIN, on_failure=OnFailure.STOP))
    assert (status.status, status.waiting_for) == ("running", ())


def test_a_fork_names_its_origin_and_what_it_does_not_undo() -> None:
    begun = RunStarted(
        definition="sha256:0", workflow="a-plan", fork=Fork(run="run_old", n=7, step="x", effects=("y",))
    )
    told = data(seen(replay(entries([begun]), Run(id=RUN))))
    assert told["fork"] == {"run": "run_old", "step": "x", "effects": ["y"]}


def test_what_a_worker_holds_back_is_reported() -> None:
    postponed = {"tag": PostponedView(kind=Why.LIMIT, reason="all hands are full")}
    assert step(seen(fresh(), within=LiveState(postponed)), "tag").waits_for == (postponed["tag"],)


def test_a_loop_between_two_rounds_can_be_looked_at_and_goes_on_by_itself() -> None:
    rounds = {"until": "steps.poll.probe.output == 5", "max": 9}
    polling = plan({"id": "poll", "repeat": rounds, "steps": [{"id": "probe", "tool": "x.y"}]})
    run = after(fresh(polling), [OpenStep(step="poll"), StartRound(step="poll")], polling)
    run = after(run, [StartAttempt(step="poll[0].probe"), CompleteStep(step="poll[0].probe", output=1)], polling)
    assert seen(run, polling).status == "running"


def test_an_uncertain_step_of_an_undo_waits_for_a_decision() -> None:
    takes_back = {"id": "take-back", "steps": [{"id": "one", "tool": "x.y", "effect": "irreversible"}]}
    written = {"id": "p", "steps": [{"id": "a", "tool": "x.y", "undo": {"workflow": "take-back@1"}}]}
    undone = definition_from({**written, "pinned": {"take-back@1": takes_back}})
    run = after(fresh(undone), [*done("a"), StartCompensation(reason="bad"), StartUndo(step="a", values={})], undone)
    run = after(run, [StartAttempt(step="a!undo.one"), LoseAttempt(step="a!undo.one")], undone)
    status = seen(run, undone)
    assert [(one.kind, one.step) for one in status.waiting_for] == [("decision", "a!undo.one")]
    assert status.failure is not None
    assert [option.action for option in status.failure.options] == ["retry", "accept", "skip"]


def test_five_thousand_steps_are_all_told() -> None:
    definition = plan(*({"id": f"s{number}", "tool": "x.y", "after": []} for number in range(5_000)))
    commands = [one for number in range(2_500) for one in done(f"s{number}")]
    run = after(fresh(definition), commands[:100], definition)
    status = seen(run, definition)
    assert (len(status.steps), status.progress.total) == (5_000, 5_000)


class OneTool:
    """A toolbox of one tool that reaches a server."""

    spec = ToolSpec(name="git.tag", description="", effect=Effect.NONE)

    def find(self, name: str) -> Any:
        if name != "git.tag":
            raise NotFound(name)
        return self

    def server(self, _args: Any) -> str:
        return "git:1"

    def specs(self) -> list[ToolSpec]:
        return [self.spec]

    async def connect(self, names: Any) -> dict[str, Any]:
        return {}

    async def forget(self, run: str) -> None: ...


async def test_the_lookout_shows_open_breakers_and_marks_who_waits_in_lists() -> None:
    async with MemoryStore() as store:
        writing = record_writer()
        dispatch = Dispatch(store, writing)
        working = await dispatch.start(CHAIN, {}, actor="person:ada")
        waiting = await dispatch.start(plan({"id": "notes", "prompt": "Write."}), {}, actor="person:ada")
        opened = BreakerOpened(server="git:1", failures=TRIPS_AFTER, until=160_000, message="503")
        records, _ = writing.write(Head(f"{SERVER_PREFIX}git:1"), [opened], actor="handrail")
        await store.append(records, NO_CHANGE)
        run_reader = RunReader(store, lambda: NOW, OneTool())
        status = await run_reader.status(
            working.id, detail=Detail.FULL, within=LiveState({"build": limit_of(Postponed("full", 1_000))})
        )
        postponed = PostponedView(kind=Why.BREAKER, until="1970-01-01T00:02:40Z", reason="git:1: 503")
        assert step(status, "tag").waits_for == (postponed,)
        assert step(status, "build").waits_for[0].kind is Why.LIMIT
        assert not await run_reader.is_settled(working.id)
        assert await run_reader.is_settled(waiting.id)
        statuses = {one.run: one.status for one in await run_reader.runs()}
        assert statuses == {working.id: "running", waiting.id: "waiting"}
        assert [one.run for one in await run_reader.runs(status=["waiting"])] == [waiting.id]
        assert [one.run for one in await run_reader.runs(status=["running"], limit=1)] == [working.id]
        with pytest.raises(NotFound) as refused:
            await run_reader.status(working.id[:-1])
        assert working.id in refused.value.hint


async def test_what_can_not_be_read_closely_is_still_listed() -> None:
    async with MemoryStore() as store:
        run = await Dispatch(store, record_writer()).start(CHAIN, {}, actor="person:ada")
        run_reader = RunReader(_WithoutTexts(store), lambda: NOW)
        assert [(one.run, one.status) for one in await run_reader.runs()] == [(run.id, "running")]
        with pytest.raises(IntegrityBroken):
            await run_reader.status(run.id)


class _WithoutTexts:
    """A store that has lost its definitions."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    async def definition(self, content_hash: str) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


async def test_steps_that_reach_no_server_are_held_by_none() -> None:
    definition = plan(
        {"id": "ask", "prompt": "Write.", "after": []},
        {"id": "none", "tool": "no.tool", "after": []},
        {"id": "never", "tool": "git.tag", "when": "1 == 2", "after": []},
        {"id": "tag", "tool": "git.tag", "after": []},
    )
    async with MemoryStore() as store:
        run = await Dispatch(store, record_writer()).start(definition, {}, actor="person:ada")
        status = await RunReader(store, lambda: NOW, OneTool()).status(run.id, detail=Detail.FULL)
        assert [one.waits_for for one in status.steps if one.id != "ask"] == [(), (), ()]


def test_given_facts_are_shown_as_they_are() -> None:
    assert seen(given(), CHAIN).workflow == "a-plan"


# --- loops in which only somebody else can go on -----------------------------------------------------------------


def each_of_two(*more: Any, **keys: Any) -> Definition:
    inner = [{"id": "a", "tool": "x.y"}, *more]
    return plan({"id": "all", "each": "[1, 2]", "parallel": 2, "steps": inner}, **keys)


def steps_seen(definition: Definition, *commands: Any) -> dict[str, StepView]:
    run = facts.after(fresh(definition), list(commands), definition)
    return {one.id: one for one in status_of(run, definition, now=NOW, detail=Detail.FULL).steps}


OPENED = OpenStep(step="all", rounds=2, values=[1, 2])
ROUND_FAILED = (
    StartAttempt(step="all[0].a", effect=Effect.NONE),
    FailAttempt(step="all[0].a", category=Category.PERMISSION, message="no"),
)
OTHER_ROUND = (StartAttempt(step="all[1].a", effect=Effect.NONE), CompleteStep(step="all[1].a"))


def test_a_loop_whose_rounds_are_over_but_one_that_failed_waits_for_a_decision() -> None:
    steps = steps_seen(each_of_two(), OPENED, *ROUND_FAILED, *OTHER_ROUND)
    assert steps["all"].status == "waiting"
    assert steps["all"].waits_for == (PostponedView(kind=Why.DECISION, step="all[0].a"),)


def test_a_loop_in_which_another_round_goes_on_is_running() -> None:
    steps = steps_seen(each_of_two(), OPENED, *ROUND_FAILED, OTHER_ROUND[0])
    assert (steps["all"].status, steps["all"].waits_for) == ("running", ())


def test_a_loop_that_waits_for_an_agent_says_so() -> None:
    prompts = plan({"id": "all", "each": "[1]", "steps": [{"id": "say", "prompt": "Say."}]})
    steps = steps_seen(prompts, OpenStep(step="all", rounds=1, values=[1]))
    assert steps["all"].status == "waiting"
    assert steps["all"].waits_for[0].kind is Why.AGENT
