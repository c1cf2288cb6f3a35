"""Previews: what a control would do is what it then does; legal and allowed are said as they then are."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import msgspec
import pytest

from engine.stage import ADA, Stage, always, inputs_checked, plan, puppet, taking
from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Category, Definition, Effect
from handrail.domain.errors import Conflict, HandrailError, Invalid, NotFound
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import AttemptStarted, Event, How, RunCompensated, UndoStarted
from handrail.domain.policy.answering import AnswerRules
from handrail.domain.preview.control_preview import ControlAsked
from handrail.domain.preview.values import ControlPreview, Hand, Lasting
from handrail.domain.run.command import CompensateStep
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.domain.run.step_path import is_in_undo
from handrail.engine.reading.control_previews import ControlPreviews
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.tool import ToolCall
from virtual_time import in_virtual_time

SEEDS = 60


def previews_of(stage: Stage) -> ControlPreviews:
    policy = stage.worker.dispatch.policy
    return ControlPreviews(RunReader(stage.store, stage.clock), policy, check=inputs_checked, toolbox=stage.box)


async def previewed(
    stage: Stage, run: Run, action: Action, step: str = "", actor: str = ADA, **more: Any
) -> ControlPreview:
    return await previews_of(stage).of(run.id, ControlAsked(action=action, actor=actor, step=step, **more))


# --- undo, on random runs -------------------------------------------------------------------------------------


class Planner:
    """Random plans of steps that can be undone in every way, in loops and inlined workflows."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.pinned: dict[str, Any] = {}
        self.count = 0

    def plan(self) -> Definition:
        steps = self.steps(self.random.randint(2, 7), depth=0)
        last = {"id": "bad", "tool": "x.bad", "after": [step["id"] for step in steps]}
        parallel = self.random.choice((1, 1, 4))
        shape = {"id": "random", "max_parallel": parallel, "inputs": {"who": {"default": "ann"}}}
        return definition_from({**shape, "steps": [*steps, last], "pinned": self.pinned})

    def steps(self, number: int, *, depth: int) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = []
        for _ in range(number):
            self.count += 1
            before = [step["id"] for step in steps]
            after = sorted(self.random.sample(before, self.random.randint(0, min(2, len(before)))))
            steps.append({"id": f"s{self.count}", "after": after, **self.work(f"s{self.count}", depth)})
        return steps

    def work(self, name: str, depth: int) -> dict[str, Any]:
        kind = self.random.random()
        if kind < 0.12 and depth < 2:
            parallel = self.random.choice((1, 2))
            return {"each": "[1, 2]", "parallel": parallel, "steps": self.steps(2, depth=depth + 1)}
        if kind < 0.2 and depth < 2:
            called = f"w{self.count}@1.0.0"
            self.pinned[called] = {"id": called.partition("@")[0], "version": "1.0.0", "steps": []}
            self.pinned[called]["steps"] = self.steps(2, depth=depth + 1)
            return {"workflow": called, **(self.undo(name) if self.random.random() < 0.3 else {})}
        tool = self.random.choice(("x.do", "x.do", "x.rev", "x.irr", "value.set"))
        args = {"value": 1} if tool == "value.set" else {"name": f"{name}-{{{{ run.id }}}}"}
        return {"tool": tool, "args": args, **(self.undo(name) if tool in {"x.do", "x.irr"} else {})}

    def undo(self, name: str) -> dict[str, Any]:
        kind = self.random.random()
        if kind < 0.15:
            return {}
        if kind < 0.25:
            return {"undo": {"prompt": f"Take {name} back."}}
        if kind < 0.4:
            called = f"u{self.count}@1.0.0"
            inner = [
                {"id": "one", "tool": "x.undo", "args": {"name": "{{ inputs.it }}"}, "after": []},
                {"id": "two", "tool": "x.undo", "args": {"name": name}, "after": ["one"]},
            ]
            shape = {"id": called.partition("@")[0], "version": "1.0.0", "inputs": {"it": {"type": "string"}}}
            self.pinned[called] = {**shape, "steps": inner}
            return {"undo": {"workflow": called, "with": {"it": f"{name} {{{{ run.id }}}}"}}}
        return {"undo": {"tool": "x.undo", "args": {"of": f"{name} of {{{{ run.id }}}}"}}}


def sluggish(random: Random, log: list[tuple[str, Any]], name: str) -> Any:
    async def deed(call: ToolCall) -> Any:
        log.append((name, dict(call.args)))
        await asyncio.sleep(random.choice((0.0, 0.1, 0.7)))
        return {"did": call.step}

    return deed


def stage_of(random: Random, log: list[tuple[str, Any]]) -> Stage:
    return Stage(
        puppet("x.do", sluggish(random, [], "x.do")),
        puppet("x.undo", sluggish(random, log, "x.undo")),
        puppet("x.irr", sluggish(random, [], "x.irr"), Effect.IRREVERSIBLE),
        puppet("x.rev", sluggish(random, log, "x.rev"), Effect.REVERSIBLE, kept={"was": 1}, undo="own"),
        puppet("x.bad", always(Category.PERMISSION)),
    )


def undone_in(events: list[Event]) -> list[str]:
    """What was started to undo the run, in order."""
    started = (event for event in events if isinstance(event, UndoStarted | AttemptStarted))
    return [event.step for event in started if isinstance(event, UndoStarted) or is_in_undo(event.step)]


async def to_the_end(stage: Stage, run: Run) -> Run:
    """Let the run be undone; agents do their part when nothing else moves."""
    for _ in range(100):
        run = await stage.worker.settled(run.id)
        waiting = sorted(path for path, state in run.steps.items() if state.status is StepStatus.COMPENSATING)
        if run.status is not RunStatus.COMPENSATING or not waiting:
            return run
        await stage.worker.dispatch.grant(run.id, CompensateStep(step=waiting[0], how=How.BY_AGENT), actor="agent:bo")
    raise AssertionError("it is not undone after many turns")


async def undo_scene(seed: int) -> tuple[Definition, ControlPreview, list[Event], list[tuple[str, Any]]]:
    random, log = Random(seed), list[tuple[str, Any]]()
    stage, definition = stage_of(random, log), Planner(seed).plan()
    await stage.open()
    run = await stage.start(definition, {"who": "ann"})
    if seed % 4:
        run = await stage.worker.settled(run.id)
    else:
        await asyncio.sleep(random.choice((0.05, 0.3, 0.8)))  # in the middle of it
    log.clear()
    seen = await previewed(stage, run, Action.COMPENSATE)
    before = (await stage.store.read(run.id))[-1].n
    assert seen.at == before, "asking changes nothing"
    await stage.control.act(run.id, Action.COMPENSATE, actor=ADA, reason="enough")
    await to_the_end(stage, run)
    events = [entry_of(record).event for record in await stage.store.read(run.id)]
    return definition, seen, events, log


@pytest.mark.parametrize("seed", range(SEEDS))
def test_undoing_does_what_its_preview_said_in_that_order(seed: int) -> None:
    definition, seen, events, log = in_virtual_time(lambda: undo_scene(seed))
    happened, said = undone_in(events), [one.step for one in seen.calls]
    (end,) = [event for event in events if isinstance(event, RunCompensated)]
    assert seen.legal
    assert seen.ends is RunStatus.COMPENSATED
    assert [one.step for one in seen.stays] == list(end.not_compensated)
    assert sorted(said) == sorted(happened)
    called = [(one.tool, one.args) for one in seen.calls if one.tool]
    if definition.max_parallel == 1:
        assert said == happened
        assert called == log
    assert sorted(called, key=str) == sorted(log, key=str)
    undos = [path for path in happened if not is_in_undo(path)]
    for one in seen.calls:
        assert not one.after or undos.index(one.after) < undos.index(one.step), one


def test_the_random_runs_are_as_various_as_they_should_be() -> None:
    scenes = [in_virtual_time(lambda seed=seed: undo_scene(seed)) for seed in range(SEEDS)]
    calls = [one for _, seen, _, _ in scenes for one in seen.calls]
    assert {one.by for one in calls} == {Hand.HANDRAIL, Hand.AGENT}
    assert {True} <= {one.own_undo for one in calls}
    assert {True} <= {bool(one.workflow) for one in calls}
    assert {True} <= {bool(one.after) for one in calls}
    assert {Lasting.NO_UNDO} <= {one.why for _, seen, _, _ in scenes for one in seen.stays}
    assert any(change.becomes is StepStatus.UNCERTAIN for _, seen, _, _ in scenes for change in seen.changes)


# --- every control ----------------------------------------------------------------------------------------------


UNDO = {"tool": "x.undo", "args": {"id": "{{ steps.make.output.did }}"}}
SHIP = plan(
    {"id": "make", "tool": "x.do", "args": {"what": "{{ inputs.what }}"}, "undo": UNDO},
    {"id": "send", "tool": "x.irr", "after": ["make"]},
    {"id": "go", "approve": "Ship {{ inputs.what }}?", "by": ["leads"], "after": ["send"]},
    {"id": "ship", "tool": "x.bad", "args": {"of": "{{ steps.make.output.did }}"}, "after": ["go"]},
    {"id": "tell", "prompt": "Tell them about {{ steps.ship.output }}.", "after": ["ship"]},
    inputs={"what": {"type": "string"}},
)


def shipping(**more: Any) -> Stage:
    irr = puppet("x.irr", effect=Effect.IRREVERSIBLE)
    return Stage(irr, puppet("x.bad", always(Category.PERMISSION)), **more)


def scene(
    stage: Stage, *acts: tuple[Action, str], ask: ControlAsked, what: Definition = SHIP
) -> tuple[ControlPreview, Run]:
    """The preview of a control after others were used."""

    async def played() -> tuple[ControlPreview, Run]:
        run = await stage.play(what, {"what": "it"})
        for action, step in acts:
            await stage.control.act(run.id, action, actor=ADA, reason="because", step=step)
            run = await stage.worker.settled(run.id)
        return await previews_of(stage).of(run.id, ask), run

    return in_virtual_time(played)


def by_ada(action: Action, step: str = "", **more: Any) -> ControlAsked:
    return ControlAsked(action=action, actor=ADA, step=step, **more)


def test_an_approval_says_what_it_lets_happen_with_the_calls_rendered_and_what_has_no_way_back() -> None:
    seen, run = scene(shipping(), ask=by_ada(Action.APPROVE))
    assert (seen.legal, seen.allowed, seen.step) == (True, True, "go")
    assert seen.digest == run.step("go").digest
    ship, tell = seen.calls
    assert (ship.tool, ship.args, ship.can_be_undone) == ("x.bad", {"of": "make"}, False)
    assert (tell.by, tell.tool) == (Hand.AGENT, "")


def test_one_of_several_approvals_lets_nothing_start_yet() -> None:
    two = plan({"id": "go", "approve": "Now?", "approvals": 2}, {"id": "do", "tool": "x.do", "after": ["go"]})
    seen, _ = scene(shipping(), ask=by_ada(Action.APPROVE), what=two)
    assert (seen.missing, seen.calls) == (1, ())


@pytest.mark.parametrize("actor", ["agent:bo", "person:eve"])
def test_who_may_not_answer_is_told_why_and_who_may(actor: str) -> None:
    seen, _ = scene(shipping(), ask=ControlAsked(action=Action.APPROVE, actor=actor))
    assert (seen.legal, seen.allowed) == (True, False)
    assert seen.why
    assert seen.who_may


def test_where_a_passphrase_is_required_the_preview_says_so() -> None:
    rules = AnswerRules(groups={"leads": ["ada"]}, passphrase=True)
    seen, _ = scene(shipping(say=rules), ask=by_ada(Action.APPROVE))
    assert (seen.allowed, seen.passphrase) == (True, True)


def test_a_rejection_under_a_policy_to_undo_shows_the_undo() -> None:
    undone = msgspec.structs.replace(SHIP, on_failure="compensate")
    seen, _ = scene(shipping(), ask=by_ada(Action.REJECT), what=undone)
    assert [(one.step, one.tool, one.args) for one in seen.calls] == [("make", "x.undo", {"id": "make"})]
    assert [(one.step, one.why, one.can_be_undone) for one in seen.stays] == [("send", Lasting.NO_UNDO, False)]
    assert seen.ends is RunStatus.COMPENSATED


def test_a_retry_shows_the_same_call_and_that_such_a_failure_is_not_retried_by_itself() -> None:
    seen, _ = scene(shipping(), (Action.APPROVE, "go"), ask=by_ada(Action.RETRY))
    assert [(one.step, one.tool, one.args) for one in seen.calls] == [("ship", "x.bad", {"of": "make"})]
    assert any("permission" in note for note in seen.notes)


def test_a_skip_shows_what_starts_then() -> None:
    seen, _ = scene(shipping(), (Action.APPROVE, "go"), ask=by_ada(Action.SKIP))
    assert [(one.step, one.by) for one in seen.calls] == [("tell", Hand.AGENT)]
    assert [(one.step, one.was, one.becomes) for one in seen.changes] == [
        ("ship", StepStatus.FAILED, StepStatus.SKIPPED)
    ]


def test_an_agent_is_told_that_it_may_not_skip_an_approval() -> None:
    seen, _ = scene(shipping(), ask=ControlAsked(action=Action.SKIP, actor="agent:bo", step="go"))
    assert (seen.allowed, "approval" in seen.why) == (False, True)


def test_a_cancel_says_what_stays_and_what_of_it_could_still_be_undone() -> None:
    seen, _ = scene(shipping(), ask=by_ada(Action.CANCEL))
    assert seen.becomes is RunStatus.CANCELLED
    assert {one.step: (one.why, one.can_be_undone) for one in seen.stays} == {
        "make": (Lasting.NOT_UNDONE, True),
        "send": (Lasting.NO_UNDO, False),
    }


def test_a_fork_shows_what_it_takes_over_what_it_does_again_and_which_effects_it_leaves() -> None:
    seen, _ = scene(shipping(), ask=by_ada(Action.FORK, "send"))
    assert seen.fork is not None
    assert (seen.fork.carried, seen.fork.again) == (("make",), ("send", "go", "ship", "tell"))
    assert [one.step for one in seen.stays] == ["send"]
    assert [one.step for one in seen.calls] == ["send"]


def test_pause_and_resume_say_what_ends_and_what_starts() -> None:
    async def played() -> tuple[ControlPreview, ControlPreview]:
        stage = Stage(puppet("x.slow", taking(1)))
        await stage.open()
        two = plan({"id": "a", "tool": "x.slow", "args": {"n": 1}}, {"id": "b", "tool": "x.do", "after": ["a"]})
        run = await stage.start(two)
        await asyncio.sleep(0.05)
        pause = await previewed(stage, run, Action.PAUSE)
        await stage.control.act(run.id, Action.PAUSE, actor=ADA, reason="wait")
        await asyncio.sleep(5)
        return pause, await previewed(stage, run, Action.RESUME, actor="agent:bo")

    pause, resume = in_virtual_time(played)
    assert pause.in_progress == ("a",)
    assert [one.step for one in resume.calls] == ["b"]
    assert (resume.legal, resume.allowed) == (True, False)  # a person paused it


def test_what_is_not_legal_is_said_with_what_is() -> None:
    seen, _ = scene(shipping(), ask=by_ada(Action.ACCEPT, "make"))
    assert (seen.legal, seen.calls) == (False, ())
    assert "approve go" in seen.hint
    stale, _ = scene(shipping(), ask=by_ada(Action.APPROVE, "go", digest="sha256:other"))
    assert (stale.legal, "changed" in stale.message) == (False, True)


def test_an_unknown_step_is_an_error_and_so_is_an_action_without_its_step() -> None:
    with pytest.raises(NotFound):
        scene(shipping(), ask=by_ada(Action.RETRY, "nothing"))
    both = plan({"id": "a", "approve": "A?", "after": []}, {"id": "b", "approve": "B?", "after": []})
    with pytest.raises(Invalid, match="which step"):
        scene(shipping(), ask=by_ada(Action.APPROVE), what=both)


def test_an_undo_that_needs_a_value_which_is_not_there_says_so_and_what_is_then_left() -> None:
    broken = {"tool": "x.undo", "args": {"id": "{{ steps.make.output.nothing.here }}"}}
    what = plan({"id": "make", "tool": "x.do", "undo": broken}, {"id": "bad", "tool": "x.bad", "after": ["make"]})
    seen, _ = scene(shipping(), ask=by_ada(Action.COMPENSATE), what=what)
    (call,) = seen.calls
    assert call.problem
    assert seen.ends is RunStatus.COMPENSATION_FAILED
    assert [(one.step, one.why) for one in seen.stays] == [("make", Lasting.UNDO_FAILS)]


def test_references_to_secrets_stay_references() -> None:
    what = plan({"id": "a", "tool": "x.do", "args": {"key": "${secret:TOKEN}"}, "undo": {"tool": "x.undo"}})
    seen, _ = scene(shipping(), ask=by_ada(Action.FORK, "a"), what=what)
    assert seen.calls[0].args == {"key": "${secret:TOKEN}"}


ALL_STATES = [(Action.APPROVE, "go"), (Action.SKIP, "ship"), (Action.COMPENSATE, "")]


@pytest.mark.parametrize("count", range(len(ALL_STATES) + 1))
@pytest.mark.parametrize("actor", [ADA, "agent:bo"])
@pytest.mark.parametrize("action", list(Action))
def test_legal_and_allowed_are_what_the_control_itself_then_says(action: Action, actor: str, count: int) -> None:
    async def played() -> tuple[ControlPreview | None, HandrailError | None]:
        stage = shipping()
        run = await stage.play(SHIP, {"what": "it"})
        for done, step in ALL_STATES[:count]:
            await stage.control.act(run.id, done, actor=ADA, reason="because", step=step)
            await stage.worker.settled(run.id)
        step = "make" if action is Action.FORK else ""
        try:
            seen: ControlPreview | None = await previewed(stage, run, action, step, actor)
        except Invalid:
            seen = None
        try:
            await stage.control.act(run.id, action, actor=actor, reason="because", step=step)
        except HandrailError as error:
            return seen, error
        return seen, None

    seen, error = in_virtual_time(played)
    if seen is None:
        assert isinstance(error, Invalid)
    else:
        assert (seen.legal and seen.allowed) is (error is None), (seen, error)
        if error is not None and seen.allowed:
            assert isinstance(error, Conflict)
