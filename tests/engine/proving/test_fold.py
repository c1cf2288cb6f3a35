"""Folding the journal equals the stored state, bit for bit, at every event of random runs (invariants 5 and 6)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as with_

from domain.facts import plan
from handrail.domain.definition.model import Category, Effect
from handrail.domain.errors import Conflict, Invalid, NotFound
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import Entry, How, Mode, Outcome, StepEvent
from handrail.domain.policy.act import act_of
from handrail.domain.policy.table import may
from handrail.domain.policy.verdict import Allowed
from handrail.domain.run import command as ask
from handrail.domain.run.state import Run, apply, project, replay
from handrail.domain.run.status import MOVES, RUN_MOVES
from handrail.engine.dispatch import Dispatch
from handrail.engine.proving.stream_fold import change_of
from handrail.storage.memory import MemoryStore
from handrail.storage.sqlite.store import SqliteStore
from support import record_writer

PLAN = plan(
    {"id": "notes", "prompt": "write", "effect": "compensatable", "undo": {"prompt": "throw away"}},
    {"id": "tag", "tool": "git.tag", "effect": "compensatable", "undo": {"tool": "git.untag"}, "after": []},
    {"id": "go", "approve": "ship {{ vars.a }}?", "after": ["notes", "tag"]},
    {"id": "build", "each": "inputs.t", "steps": [{"id": "make", "tool": "ci.make"}], "after": ["tag"]},
    {
        "id": "tell",
        "tool": "mail.send",
        "args": {"to": "{{ vars.b }}"},
        "effect": "irreversible",
        "after": ["go", "build"],
    },
)
PATHS = st.sampled_from(["notes", "tag", "go", "build", "build[0].make", "build[1].make", "tell", "nowhere"])
CATEGORIES = st.sampled_from(Category)
VALUES = st.one_of(st.none(), st.integers(-9, 9), st.text(max_size=5), st.just({"ok": True}))
COMMANDS: st.SearchStrategy[ask.Command] = st.one_of(
    st.builds(ask.StartAttempt, step=PATHS),
    st.builds(ask.StartAttempt, step=PATHS, effect=st.sampled_from(Effect), idempotent=st.booleans()),
    st.builds(ask.CompleteStep, step=PATHS, output=VALUES),
    st.builds(ask.CompleteStep, step=PATHS, output=VALUES),
    st.builds(ask.OpenStep, step=st.just("build"), rounds=st.just(2)),
    st.builds(ask.HandOutStep, step=PATHS, agent=st.sampled_from(["", "claude"])),
    st.builds(ask.RefuseOutput, step=PATHS, findings=st.just(())),
    st.builds(ask.RequestApproval, step=PATHS, expires=st.sampled_from([None, 9])),
    st.builds(ask.GiveApproval, step=PATHS, digest=st.sampled_from(["d", "e"]), reason=st.just("yes")),
    st.builds(ask.RejectApproval, step=PATHS, digest=st.just("d"), reason=st.just("no")),
    st.builds(ask.ExpireApproval, step=PATHS),
    st.builds(ask.FailAttempt, step=PATHS, category=CATEGORIES, message=st.just("503"), due=st.sampled_from([None, 5])),
    st.builds(ask.LoseAttempt, step=PATHS),
    st.builds(ask.DeferStep, step=PATHS, due=st.just(7)),
    st.builds(ask.StartRound, step=PATHS, due=st.sampled_from([None, 5])),
    st.builds(ask.FailStep, step=PATHS, category=CATEGORIES, message=st.just("no")),
    st.builds(ask.NoteLateAnswer, step=PATHS, attempt=st.just(1), output=VALUES),
    st.builds(ask.LoseUndo, step=PATHS),
    st.builds(ask.ExpireRun),
    st.builds(ask.SkipStep, step=PATHS, reason=st.just("not needed")),
    st.builds(ask.RetryStep, step=PATHS, reason=st.just("again")),
    st.builds(ask.AcceptStep, step=PATHS, reason=st.just("seen"), output=VALUES),
    st.builds(ask.StartUndo, step=PATHS),
    st.builds(ask.FailUndo, step=PATHS, category=CATEGORIES, message=st.just("no"), due=st.sampled_from([None, 5])),
    st.builds(ask.CompensateStep, step=PATHS, how=st.sampled_from(How)),
    st.builds(ask.PauseRun, reason=st.just("lunch")),
    st.builds(ask.ResumeRun, reason=st.just("back")),
    st.builds(ask.CancelRun, reason=st.just("enough")),
    st.builds(ask.FinishRun),
    st.builds(ask.StartCompensation, reason=st.just("bad")),
    st.builds(ask.FinishCompensation),
    st.builds(ask.SetVars, vars=st.dictionaries(st.sampled_from("ab"), VALUES, max_size=2)),
    st.builds(ask.RecordDecision, decision=st.just("go"), reason=st.just("tired")),
    st.builds(ask.RecordAction, description=st.just("did"), step=PATHS, outcome=st.sampled_from([None, *Outcome])),
)
ACTORS = ("agent:claude", "person:ada", "handrail")


def actor_for(run: Run, command: ask.Command) -> str:
    """Somebody who may ask for it, an agent if possible."""
    try:
        act = act_of(run, PLAN, command)
    except NotFound:
        return ACTORS[0]
    return next((actor for actor in ACTORS if isinstance(may(actor, act), Allowed)), ACTORS[0])


SCRIPTS = st.lists(COMMANDS, max_size=60)


async def play(store: MemoryStore | SqliteStore, script: list[ask.Command], mode: Mode) -> Run:
    """Ask for everything in the script; after each granted command, compare the store with the fold."""
    dispatch = Dispatch(store, record_writer())
    run = await dispatch.start(PLAN, {"t": [1, 2]}, actor="person:ada", ask=ask.StartRun(mode=mode, vars={"a": 1}))
    for command in script:
        if isinstance(command, ask.GiveApproval | ask.RejectApproval) and command.digest == "d":
            command = with_(command, digest=run.step(command.step).digest)
        try:
            run = await dispatch.grant(run.id, command, actor=actor_for(run, command))
        except (Conflict, Invalid, NotFound):
            continue
        records = await store.read(run.id)
        entries = [entry_of(record) for record in records]
        folded = replay(entries, Run(id=run.id))
        assert folded == run
        rows = change_of(run.id, entries)
        assert await store.run(run.id) == rows.run
        assert await store.steps(run.id) == sorted(rows.steps, key=lambda row: row.path)
    assert_legal([entry_of(record) for record in await store.read(run.id)], run)
    return run


def assert_legal(entries: list[Entry], end: Run) -> None:
    """Every single event is a legal move, and folding one by one ends where folding all at once does."""
    run = Run(id=end.id)
    for entry in entries:
        after = apply(run, entry)
        if after.status is not run.status:
            assert after.status in RUN_MOVES[run.status]
        if isinstance(entry.event, StepEvent):
            before, now = run.step(entry.event.step).status, after.step(entry.event.step).status
            assert now is before or now in MOVES[before]
        run = after
    assert run == end
    assert run.n == len(entries)
    assert project(run, run.steps) == change_of(run.id, entries)


@settings(max_examples=150, deadline=None)
@given(script=SCRIPTS, mode=st.sampled_from(Mode))
def test_the_fold_equals_the_stored_state_at_every_event(script: list[ask.Command], mode: Mode) -> None:
    async def scene() -> None:
        async with MemoryStore() as store:
            await play(store, script, mode)

    asyncio.run(scene())


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=SCRIPTS)
def test_the_fold_equals_what_sqlite_keeps(tmp_path_factory: pytest.TempPathFactory, script: list[ask.Command]) -> None:
    async def scene(folder: Path) -> None:
        async with await SqliteStore.open(folder / "journal.db") as store:
            await play(store, script, Mode.RUN)

    asyncio.run(scene(tmp_path_factory.mktemp("store")))


def test_a_long_chain_of_work_folds_in_one_pass() -> None:
    async def scene() -> None:
        async with MemoryStore() as store:
            run = await play(store, [ask.SetVars(vars={"a": n}) for n in range(50)], Mode.RUN)
            assert run.vars == {"a": 49}

    asyncio.run(scene())
