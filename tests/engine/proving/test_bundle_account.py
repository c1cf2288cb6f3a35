"""The account of a proof bundle: what its run came to, and how each step is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from engine.bundling import (
    EVENTS,
    RUN,
    account,
    bundle_in,
    bundle_of,
    made_up,
    store_with,
    why,
)
from engine.history import KEY, RUN_A
from handrail.domain.definition.model import Category
from handrail.domain.journal.event import (
    Event,
    Fork,
    Proof,
    RunCancelled,
    RunCompleted,
    RunStarted,
    StepCarried,
    StepCompleted,
    StepFailed,
)
from handrail.domain.json import JsonObject, digest
from handrail.domain.run.status import RunStatus
from handrail.engine.proving.bundle_account import ProofKind
from handrail.engine.proving.signature import fingerprint


async def test_a_bundle_tells_of_each_step_how_it_is_known(tmp_path: Path) -> None:
    told = account(await bundle_of(tmp_path))
    assert (told.run, told.workflow, told.goal, told.events) == (RUN, "ship@1", "ship", 9)
    assert [(step.id, step.how, step.by) for step in told.steps] == [
        ("tag", ProofKind.EXECUTED, "handrail"),
        ("code", ProofKind.VERIFIED, "agent:claude"),
        ("notes", ProofKind.CLAIMED, "agent:claude"),
        ("ask", ProofKind.APPROVED, "person:ada"),
        ("later", None, ""),
    ]
    code = told.steps[1]
    assert (code.checks, code.refused, code.evidence[0]["digest"]) == (("tests_pass",), 1, "sha256:02")
    assert [(one.what, one.by, one.words) for one in told.approvals] == [
        ("requested", "handrail", "Ship it?"),
        ("given", "person:ada", "looks right"),
    ]
    assert (told.tools, told.erased, told.sealed) == (("git.tag",), (), 9)


async def test_a_bundle_of_a_run_that_goes_on_says_so(tmp_path: Path) -> None:
    told = account(await bundle_of(tmp_path))
    assert (told.status, told.has_ended, told.ended, told.not_undone) == (RunStatus.RUNNING, False, "", ())
    ended = account(await bundle_of(tmp_path / "two", *EVENTS, ("handrail", RunCompleted())))
    assert (ended.status, ended.has_ended, ended.not_undone) == (RunStatus.COMPLETED, True, ())
    assert ended.ended


async def test_effects_that_stay_are_named_when_a_run_was_broken_off(tmp_path: Path) -> None:
    told = account(await bundle_of(tmp_path, *EVENTS, ("person:ada", RunCancelled(reason="no"))))
    assert (told.status, told.not_undone) == (RunStatus.CANCELLED, ("tag",))


async def test_steps_that_were_carried_over_failed_or_hold_others_are_reported(tmp_path: Path) -> None:
    loop: JsonObject = {"id": "all", "each": "[1]", "steps": [{"id": "one", "prompt": "Do it."}]}
    plan: JsonObject = {
        "id": "ship",
        "steps": [{"id": "first", "prompt": "Begin."}, loop, {"id": "bad", "prompt": "Fail."}],
    }
    fork = Fork(run=RUN_A, n=3, step="all")
    failed = StepFailed(step="bad", category=Category.TOOL_ERROR, message="it broke")
    events: Sequence[Event] = [
        RunStarted(definition=digest(plan), workflow="ship@1", fork=fork),
        StepCarried(step="first", output=1),
        StepCompleted(step="all[0].one", proof=Proof.CLAIMED),
        StepCompleted(step="all", output=[]),
        failed,
    ]
    store = await store_with(*(("handrail", event) for event in events), texts=(plan,))
    told = account((await bundle_in(store, tmp_path))[0])
    assert told.forked_from == RUN_A
    assert [(step.id, step.how) for step in told.steps] == [
        ("first", ProofKind.CARRIED),
        ("all[0].one", ProofKind.CLAIMED),
        ("all", None),
        ("bad", None),
    ]
    assert told.steps[-1].message == "it broke"


async def test_made_up_events_that_do_not_add_up_are_shown_as_broken() -> None:
    empty: Any = {"id": "x", "steps": []}
    started = RunStarted(definition=digest(empty), workflow="x")
    nowhere = StepCompleted(step="nowhere")
    cases: Sequence[tuple[Any, Sequence[Event], str]] = (
        (empty, [started, nowhere], "inconsistent"),
        ([], [replace(started, definition=digest([]))], "inconsistent"),
        (empty, [nowhere], "does not start a run"),
    )
    for text, events, reason in cases:
        assert reason in why(made_up(text, events))
    assert "inconsistent" in why(made_up(empty, [started], made=2**70))
    assert "event 1: event kind 'nonsense'" in why(made_up(empty, [started], kind="nonsense"))
    deep = b'{"step":"x","more":%b%b}' % (b"[" * 100_000, b"]" * 100_000)
    for body in (deep, b'{"step":"x","more":1e99999}'):
        assert "can't be read" in why(made_up(empty, [started, nowhere], body=body))


async def test_a_definition_that_goes_in_circles_holds_nobody_up() -> None:
    steps = [{"id": "a", "prompt": "A", "after": ["b"]}, {"id": "b", "prompt": "B", "after": ["a"]}]
    circle: Any = {"id": "x", "steps": steps}
    told = account(made_up(circle, [RunStarted(definition=digest(circle), workflow="x"), StepCompleted(step="a")]))
    assert [step.id for step in told.steps] == ["a", "b"]


async def test_a_bundle_of_the_first_format_is_read_for_ever() -> None:
    told = account((Path(__file__).parents[1] / "bundle-format-1.proof").read_bytes())
    assert (told.run, told.status, told.key) == (RUN, RunStatus.COMPLETED, fingerprint(KEY.public))
    assert [step.how for step in told.steps] == [
        ProofKind.EXECUTED,
        ProofKind.VERIFIED,
        ProofKind.CLAIMED,
        ProofKind.APPROVED,
        None,
    ]
