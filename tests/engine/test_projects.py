"""A run belongs to its project: others may read it, and are refused everything else, with words that help."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from domain.facts import CHAIN
from engine.stage import ADA
from handrail.domain.errors import Conflict, Invalid, OtherProject
from handrail.domain.journal.event import Mode, RunAdopted, RunStarted
from handrail.domain.policy.answering import AnswerRules
from handrail.domain.project import Project, plan_stream
from handrail.domain.run.command import CancelRun, RecordDecision, StartRun
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus
from handrail.engine.dispatch import Dispatch
from handrail.engine.plans import Plans
from handrail.engine.proving.projection_repair import difference, rebuild, streams_with_rows
from handrail.engine.reading.ledger import Ledger, Query
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.running.answers import ApprovalAnswers
from handrail.engine.running.control import Control
from handrail.engine.stream_pages import entries_of
from handrail.storage.memory import MemoryStore
from support import record_writer, ticking_clock

SHOP = Project(id="prj_22222222", folder="/home/ann/shop", name="shop")
SITE = Project(id="prj_33333333", folder="/home/ann/site", name="site")
KNOWN = {one.id: one for one in (SHOP, SITE)}


def dispatch_of(store: MemoryStore, project: str, seed: int = 1) -> Dispatch:
    return Dispatch(store, record_writer(seed), project=project, find_project=KNOWN.get)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def shop(store: MemoryStore) -> Dispatch:
    return dispatch_of(store, SHOP.id)


@pytest.fixture
def site(store: MemoryStore) -> Dispatch:
    return dispatch_of(store, SITE.id, 2)


async def test_a_run_carries_the_project_it_was_started_in(store: MemoryStore, shop: Dispatch) -> None:
    run = await shop.start(CHAIN, {}, actor=ADA)
    (entry,) = await entries_of(store, run.id)
    assert isinstance(entry.event, RunStarted)
    assert (entry.event.project, run.project) == (SHOP.id, SHOP.id)
    row = await store.run(run.id)
    assert row is not None
    assert row.project == SHOP.id
    assert await difference(store, run.id) is None


async def test_a_caller_cant_choose_the_project_of_a_run(shop: Dispatch) -> None:
    run = await shop.start(CHAIN, {}, actor=ADA, ask=StartRun(project=SITE.id))
    assert run.project == SHOP.id


async def test_a_command_on_another_projects_run_is_refused_and_writes_nothing(
    store: MemoryStore, shop: Dispatch, site: Dispatch
) -> None:
    run = await shop.start(CHAIN, {}, actor=ADA)
    for command in (CancelRun(reason="x"), RecordDecision(decision="x", reason="y")):
        with pytest.raises(OtherProject, match="belongs to another project: shop, in /home/ann/shop") as refused:
            await site.grant(run.id, command, actor=ADA)
        assert "handrail --project /home/ann/shop" in refused.value.hint
    assert len(await store.read(run.id)) == 1
    assert (await site.current(run.id)).status is RunStatus.RUNNING


def control_of(dispatch: Dispatch) -> Control:
    return Control(dispatch, ticking_clock(), ApprovalAnswers(AnswerRules(), ticking_clock()))


@pytest.mark.parametrize("action", Action)
async def test_every_control_of_another_projects_run_is_refused(
    store: MemoryStore, shop: Dispatch, site: Dispatch, action: Action
) -> None:
    run = await shop.start(CHAIN, {}, actor=ADA)
    control = control_of(site)
    with pytest.raises(OtherProject, match="in /home/ann/shop") as refused:
        await control.act(run.id, action, actor=ADA, reason="x", step="a")
    assert "--project /home/ann/shop" in refused.value.hint  # and not what is legal in the run's own project
    assert len(await store.read(run.id)) == 1
    assert len(await store.runs()) == 1


async def test_a_fork_of_another_projects_run_is_refused(shop: Dispatch, site: Dispatch) -> None:
    run = await shop.start(CHAIN, {}, actor=ADA)
    with pytest.raises(OtherProject):
        await control_of(site).fork(run, "b", actor=ADA, reason="x")


async def test_a_fork_belongs_to_the_project_it_was_forked_in(shop: Dispatch) -> None:
    run = await shop.start(CHAIN, {}, actor=ADA)
    fork = await control_of(shop).fork(run, "build", actor=ADA, reason="x")
    assert (fork.project, fork.id != run.id) == (SHOP.id, True)


# --- keys -------------------------------------------------------------------------------------------


async def test_a_key_of_one_project_starts_a_run_of_its_own_in_another(shop: Dispatch, site: Dispatch) -> None:
    ask = StartRun(key="deploy-1", asked="sha256:1")
    first = await shop.start(CHAIN, {}, actor=ADA, ask=ask)
    assert await site.started_under_key(ask) is None
    other = await site.start(CHAIN, {}, actor=ADA, ask=replace(ask, asked="sha256:2"))
    assert other.id != first.id
    assert (await shop.started_under_key(ask) or other).id == first.id
    with pytest.raises(Conflict, match="different request"):
        await site.started_under_key(ask)


async def test_the_key_of_a_run_from_before_counts_once_it_is_adopted(store: MemoryStore, shop: Dispatch) -> None:
    ask = StartRun(key="deploy-1", asked="sha256:1")
    before = await dispatch_of(store, "", 3).start(CHAIN, {}, actor=ADA, ask=ask)
    assert await shop.started_under_key(ask) is None
    await shop.adopt(before.id, reason="mine", actor=ADA)
    assert (await shop.started_under_key(ask) or Run(id="none")).id == before.id
    with pytest.raises(Conflict, match="has started"):
        await shop.start(CHAIN, {}, actor=ADA, ask=ask)


# --- adopting ---------------------------------------------------------------------------------------


async def test_a_run_without_a_project_waits_until_it_is_adopted(
    store: MemoryStore, shop: Dispatch, site: Dispatch
) -> None:
    run = await dispatch_of(store, "", 3).start(CHAIN, {}, actor=ADA)
    with pytest.raises(OtherProject, match="belongs to no project") as refused:
        await shop.grant(run.id, CancelRun(reason="x"), actor=ADA)
    assert f"handrail project adopt {run.id}" in refused.value.hint
    adopted = await shop.adopt(run.id, reason="it was mine", actor=ADA)
    assert adopted.project == SHOP.id
    last = (await entries_of(store, run.id))[-1]
    assert (last.event, last.actor) == (RunAdopted(project=SHOP.id, reason="it was mine"), ADA)
    assert [row.id for row in await store.runs(project=SHOP.id)] == [run.id]
    assert await rebuild(store) == 0  # the row equals the replay
    assert (await shop.grant(run.id, CancelRun(reason="x"), actor=ADA)).status is RunStatus.CANCELLED
    with pytest.raises(OtherProject):
        await site.adopt(run.id, reason="mine, too", actor=ADA)


async def test_adopting_what_is_ones_own_changes_nothing(store: MemoryStore, shop: Dispatch) -> None:
    run = await shop.start(CHAIN, {}, actor=ADA)
    assert (await shop.adopt(run.id, reason="again", actor=ADA)).n == run.n
    assert len(await store.read(run.id)) == 1


async def test_the_run_of_a_forgotten_project_can_be_adopted_and_no_other(store: MemoryStore, shop: Dispatch) -> None:
    lost = await dispatch_of(store, "prj_44444444", 3).start(CHAIN, {}, actor=ADA)
    with pytest.raises(OtherProject, match=r"was forgotten \(prj_44444444\)"):
        await shop.grant(lost.id, CancelRun(reason="x"), actor=ADA)
    assert (await shop.adopt(lost.id, reason="found", actor=ADA)).project == SHOP.id


async def test_who_has_read_a_run_before_it_was_adopted_sees_the_adoption(
    store: MemoryStore, shop: Dispatch, site: Dispatch
) -> None:
    run = await dispatch_of(store, "", 3).start(CHAIN, {}, actor=ADA)
    await shop.current(run.id)  # cached without a project
    await site.adopt(run.id, reason="mine", actor=ADA)
    with pytest.raises(OtherProject, match="site"):
        await shop.adopt(run.id, reason="mine", actor=ADA)
    again = dispatch_of(store, SITE.id, 4)
    assert (await again.grant(run.id, CancelRun(reason="x"), actor=ADA)).status is RunStatus.CANCELLED


# --- plans ------------------------------------------------------------------------------------------


async def test_plans_of_two_projects_with_one_id_are_two_plans(store: MemoryStore) -> None:
    shop, site = Plans(store, record_writer(1), SHOP.id), Plans(store, record_writer(2), SITE.id)
    await shop.save(CHAIN, actor=ADA)
    other = await site.save(replace(CHAIN, name="Of the site"), actor=ADA)
    assert [version.number for version in other.versions] == [1]
    assert [(await plans.get("a-plan")).newest.name for plans in (shop, site)] == ["a-plan", "Of the site"]
    await site.retire("a-plan", reason="x", actor=ADA)
    assert (await shop.get("a-plan")).retired is None
    assert await difference(store, f"plan/{SITE.id}/a-plan") is None


async def test_a_plan_from_before_is_everyones_until_a_project_saves_its_own(store: MemoryStore) -> None:
    before = Plans(store, record_writer(1))
    shop, site = Plans(store, record_writer(2), SHOP.id), Plans(store, record_writer(3), SITE.id)
    await before.save(CHAIN, actor=ADA)
    assert [(await plans.newest("a-plan"))[0] for plans in (shop, site)] == [CHAIN, CHAIN]
    own = await shop.save(replace(CHAIN, name="Own"), actor=ADA)
    assert (own.newest.number, own.project) == (1, SHOP.id)
    assert (await site.get("a-plan")).newest.name == "a-plan"
    retired = await site.retire("a-plan", reason="old", actor=ADA)
    assert retired.project == ""
    assert (await shop.get("a-plan")).retired is None


# --- reading ----------------------------------------------------------------------------------------


async def test_a_reader_sees_another_projects_run_with_its_name_and_folder(
    store: MemoryStore, shop: Dispatch, site: Dispatch
) -> None:
    own, other = await shop.start(CHAIN, {}, actor=ADA), await site.start(CHAIN, {}, actor=ADA)
    none = await dispatch_of(store, "", 3).start(CHAIN, {}, actor=ADA)
    reader = RunReader(store, ticking_clock(), project=SHOP.id, find_project=KNOWN.get)
    assert (await reader.status(own.id)).project is None
    seen = (await reader.status(other.id)).project
    assert seen is not None
    assert (seen.name, seen.folder, seen.id) == ("site", "/home/ann/site", SITE.id)
    unowned = (await reader.status(none.id)).project
    assert unowned is not None
    assert (unowned.name, f"adopt {none.id}" in unowned.hint) == ("none", True)
    assert [row.run for row in await reader.runs()] == [own.id]
    everything = {row.run: row.project and row.project.name for row in await reader.runs(all_projects=True)}
    assert everything == {own.id: "shop", other.id: "site", none.id: "none"}


async def test_the_ledger_of_a_project_leaves_out_what_others_did(
    store: MemoryStore, shop: Dispatch, site: Dispatch
) -> None:
    own, other = await shop.start(CHAIN, {}, actor=ADA), await site.start(CHAIN, {}, actor=ADA)
    await Plans(store, record_writer(4), SITE.id).save(CHAIN, actor=ADA)
    await Plans(store, record_writer(5)).save(CHAIN, actor=ADA)
    ledger = Ledger(store, store)
    assert [record.stream for record in await ledger.latest(project=SHOP.id)] == [own.id, "plan/a-plan"]
    found = await ledger.query(Query(project=SITE.id))
    assert [hit.record.stream for hit in found.hits] == ["plan/a-plan", f"plan/{SITE.id}/a-plan", other.id]
    assert len(await ledger.latest()) == 4
    assert len((await ledger.query(Query(stream=other.id, project=SHOP.id))).hits) == 1  # asked for by its name


async def test_a_recorded_run_is_refused_to_other_projects_too(shop: Dispatch, site: Dispatch) -> None:
    run = await shop.start(CHAIN, {}, actor=ADA, ask=StartRun(mode=Mode.RECORD))
    reads: list[Callable[[str], Awaitable[Any]]] = [shop.own, site.current]
    for read in reads:
        assert (await read(run.id)).n == 1
    with pytest.raises(OtherProject):
        await site.own(run.id)


async def test_a_plans_id_cant_name_another_project(store: MemoryStore) -> None:
    shop, site = Plans(store, record_writer(1), SHOP.id), Plans(store, record_writer(2), SITE.id)
    saved = await shop.save(CHAIN, actor=ADA)
    scoped_id = f"{SHOP.id}/{CHAIN.id}"
    for plans in (site, shop, Plans(store, record_writer(3))):
        with pytest.raises(Invalid, match="names a project"):
            await plans.retire(scoped_id, reason="theirs", actor=ADA)
        with pytest.raises(Invalid, match="names a project"):
            await plans.newest(scoped_id)
        with pytest.raises(Invalid, match="names a project"):
            await plans.save(replace(CHAIN, id=scoped_id), actor=ADA)
    assert await shop.get(CHAIN.id) == saved
    assert await difference(store, f"plan/{scoped_id}") is None


async def test_a_stored_row_that_names_another_project_is_still_read_so_that_it_can_be_reported(
    store: MemoryStore,
) -> None:
    await Plans(store, record_writer(1), SHOP.id).save(CHAIN, actor=ADA)
    row = await store.plan(CHAIN.id, project=SHOP.id)
    assert row is not None
    wrong = replace(row, id=f"{SHOP.id}/{row.id}", project="")
    store._plans = {("", wrong.id): wrong}
    assert [stream async for stream in streams_with_rows(store)] == [plan_stream(SHOP.id, row.id)]
