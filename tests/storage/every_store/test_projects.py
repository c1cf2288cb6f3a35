"""What every store promises about projects: lists and pick-up see the runs of one, and plans are by project."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from msgspec.structs import replace

from handrail.domain.journal.chain import Head
from handrail.domain.journal.projection import Change, RunCount
from handrail.domain.project import plan_stream, scoped
from handrail.engine.running.lease import LeaseHolder
from handrail.storage.sqlite import queries
from handrail.storage.sqlite.store import SqliteStore
from storage.conformance import Store
from storage.stories import Append, Story, plan_append

ONE, OTHER = "prj_22222222", "prj_33333333"


def owned(told: Append, project: str) -> Append:
    """What was told, as of a run of a project."""
    records, change = told
    assert change.run is not None
    return records, Change(run=replace(change.run, project=project), steps=change.steps)


def plan_of(project: str, plan: str) -> Append:
    records, change = plan_append(plan, Head(plan_stream(project, plan)))
    assert change.plan is not None
    return records, Change(plan=replace(change.plan, project=project))


@pytest.fixture
async def filled(store: Store) -> Store:
    for run, project, status in (
        ("run_a", ONE, "running"),
        ("run_b", OTHER, "running"),
        ("run_c", ONE, "completed"),
        ("run_d", "", "running"),
        ("run_e", ONE, "compensating"),
    ):
        await store.append(*owned(Story(run, status=status).tell(), project))
    return store


async def test_a_list_shows_the_runs_of_one_project_or_of_all(filled: Store) -> None:
    async def ids(**asked: object) -> list[str]:
        return [row.id for row in await filled.runs(**asked)]  # type: ignore[arg-type]

    assert await ids() == ["run_a", "run_b", "run_c", "run_d", "run_e"]
    assert await ids(project=ONE) == ["run_a", "run_c", "run_e"]
    assert await ids(project=ONE, status=("running", "compensating")) == ["run_a", "run_e"]
    assert await ids(project=ONE, after="run_a", limit=1) == ["run_c"]
    assert await ids(project="") == ["run_d"]
    assert await ids(project="prj_44444444") == []


async def test_the_project_of_a_run_is_in_its_row_and_changes_with_it(store: Store) -> None:
    story = Story("run_a")
    await store.append(*story.tell())
    await store.append(*owned(story.tell(), ONE))
    row = await store.run("run_a")
    assert row is not None
    assert row.project == ONE
    await store.append(*owned(story.tell(), OTHER))
    assert [one.id for one in await store.runs(project=OTHER)] == ["run_a"]
    assert await store.runs(project=ONE) == []


async def test_runs_are_counted_by_project_and_status(filled: Store) -> None:
    assert await filled.run_counts() == [
        RunCount("", "running", 1),
        RunCount(ONE, "compensating", 1),
        RunCount(ONE, "completed", 1),
        RunCount(ONE, "running", 1),
        RunCount(OTHER, "running", 1),
    ]


async def test_a_worker_finds_the_runs_of_its_project_only(filled: Store) -> None:
    assert [one.run for one in await filled.lease_holders()] == ["run_a", "run_b", "run_d", "run_e"]
    assert [one.run for one in await filled.lease_holders(project=ONE)] == ["run_a", "run_e"]
    assert [one.run for one in await filled.lease_holders(project=ONE, after="run_a")] == ["run_e"]
    assert [one.run for one in await filled.lease_holders(project="")] == ["run_d"]
    assert await filled.lease_holder("run_a", project=ONE) == LeaseHolder("run_a", 1)
    assert await filled.lease_holder("run_a", project=OTHER) is None
    assert await filled.lease_holder("run_d", project=ONE) is None
    assert await filled.lease_holder("run_b") == LeaseHolder("run_b", 1)


async def test_plans_with_one_id_in_two_projects_are_two_plans(store: Store) -> None:
    for project, plan in ((ONE, "ship"), (OTHER, "ship"), (OTHER, "acme/ship"), ("", "ship"), ("", "old")):
        await store.append(*plan_of(project, plan))
    for project in (ONE, OTHER, ""):
        row = await store.plan("ship", project=project)
        assert row is not None
        assert (row.project, row.version) == (project, 1)
    seen = [(row.project, row.id) for row in await store.plans(project=ONE)]
    assert seen == [("", "old"), (ONE, "ship")]  # its own, and what is from before and not its own
    assert [row.id for row in await store.plans(project=OTHER)] == ["acme/ship", "old", "ship"]
    assert [(row.project, row.id) for row in await store.plans(project="prj_44444444")] == [("", "old"), ("", "ship")]
    assert [row.id for row in await store.plans(project=OTHER, after="acme/ship", limit=1)] == ["old"]
    assert [(row.project, row.id) for row in await store.plans(project="")] == [("", "old"), ("", "ship")]


async def test_the_plans_of_all_projects_can_be_read_page_by_page(store: Store) -> None:
    saved = [("", "old"), ("", "ship"), (ONE, "ship"), (OTHER, "acme/ship"), (OTHER, "ship")]
    for project, plan in reversed(saved):
        await store.append(*plan_of(project, plan))
    after, found = "", []
    while page := await store.plans(after=after, limit=2):
        found += [(row.project, row.id) for row in page]
        after = scoped(page[-1].project, page[-1].id)
    assert found == saved


async def test_the_row_of_a_plan_is_rebuilt_and_forgotten_by_project(store: Store) -> None:
    for project in (ONE, OTHER):
        await store.append(*plan_of(project, "ship"))
    _, change = plan_of(ONE, "ship")
    assert change.plan is not None
    await store.rebuild(plan_stream(ONE, "ship"), Change(plan=replace(change.plan, name="Rebuilt")))
    names = [row.name for row in await store.plans()]
    assert names == ["Rebuilt", "Ship"]
    await store.rebuild(plan_stream(ONE, "ship"), Change())
    assert [row.project for row in await store.plans()] == [OTHER]


async def test_lists_and_pick_up_of_a_project_read_an_index(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "journal.db")
    by_key = "USING INDEX run_by_project (project=? AND status=? AND id>?)"
    explained: list[tuple[str, tuple[object, ...] | dict[str, object], str]] = [
        (queries.runs_of(1, in_project=True), (ONE, "running", "", 1, 1), by_key),
        (queries.HOLDINGS_OF_PROJECT, {"after": "", "limit": 1, "project": ONE}, by_key),
        (queries.RUN_COUNTS, (), "USING COVERING INDEX run_by_project"),
    ]
    with contextlib.closing(sqlite3.connect(tmp_path / "journal.db")) as connection:
        for query, parameters, used in explained:
            plan = connection.execute(f"EXPLAIN QUERY PLAN {query}", parameters).fetchall()
            assert any(used in detail for *_, detail in plan), (query, plan)
    await store.close()
