"""A store that can't be opened: the tools are listed anyway, and every call says what is wrong and how to fix it."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from interfaces.mcp.surface.agent import ERAS, KNOWN, Agent, Place, data_of, until
from interfaces.mcp.surface.test_hostile_arguments import VALID


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.workflow({"id": "w", "steps": [{"id": "a", "prompt": "A."}]})
    return place


async def works_again(agent: Agent) -> dict[str, Any]:
    """The answer of status, once there is one."""

    async def answered() -> dict[str, Any] | None:
        result = await agent.answer("status", {})
        return None if result.is_error else data_of(result)

    return await until(answered)


@pytest.mark.parametrize("mode", ERAS)
async def test_a_home_that_is_a_file_is_reported_by_every_call_until_it_is_fixed(place: Place, mode: str) -> None:
    place.home.write_text("not a folder")
    async with place.agent(mode=mode) as agent:
        assert agent.offered == KNOWN.keys()
        for tool in sorted(agent.offered):
            refused = await agent.refused(tool, "unavailable", **VALID[tool])
            assert "HANDRAIL_HOME" in refused["hint"] or str(place.home) in refused["message"]
        place.home.unlink()
        await works_again(agent)
        assert (await agent.call("workflow_next", workflow="w"))["step"]["id"] == "a"


async def test_invalid_arguments_are_reported_first(place: Place) -> None:
    place.home.write_text("not a folder")
    async with place.agent() as agent:
        await agent.refused("control", "invalid", run="run_x")


async def test_an_unavailable_answer_contains_the_call_to_repeat(place: Place) -> None:
    place.home.write_text("not a folder")
    async with place.agent() as agent:
        refused = await agent.refused("status", "unavailable", run="run_x", detail="full")
        assert refused["next"] == {"tool": "status", "arguments": {"run": "run_x", "detail": "full"}}


async def test_resources_prompts_and_completions_work_without_a_store(place: Place) -> None:
    place.home.write_text("not a folder")
    async with place.agent() as agent:
        assert (await agent.client.list_resources()).resources
        assert "review_run" in [one.name for one in (await agent.client.list_prompts()).prompts]
        assert (await agent.client.read_resource("handrail://guide")).contents
        text = str((await agent.client.read_resource("handrail://runs")).contents)
        assert "unavailable" in text


async def test_a_journal_that_was_tampered_with_is_not_opened_and_the_hint_says_what_to_do(place: Place) -> None:
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        await agent.call("workflow_next", run=run, step="a", output="honest")
    intact = place.folder / "intact.db"
    shutil.copy(place.home / "journal.db", intact)
    with closing(sqlite3.connect(place.home / "journal.db")) as database, database:
        for (name,) in database.execute("select name from sqlite_schema where type = 'trigger'").fetchall():
            database.execute(f"drop trigger {name}")
        database.execute("delete from event where stream = ?", (run,))
    async with place.agent() as agent:
        for tool in sorted(agent.offered):
            refused = await agent.refused(tool, "unavailable", **VALID[tool])
            assert "handrail journal verify" in refused["hint"]
        shutil.copy(intact, place.home / "journal.db")
        await works_again(agent)
        assert (await agent.call("status", run=run))["status"] == "completed"


@pytest.mark.skipif(sys.platform == "win32", reason="an open file can't be replaced there")
async def test_a_journal_that_is_no_database_is_reported(place: Place) -> None:
    place.home.mkdir()
    (place.home / "journal.db").write_bytes(b"this is no database at all" * 100)
    async with place.agent() as agent:
        await agent.refused("status", "unavailable")
        (place.home / "journal.db").unlink()
        await works_again(agent)


async def test_an_invalid_config_is_reported(place: Place) -> None:
    place.home_config('[groups]\nmanagers = "not a list"\n')
    async with place.agent() as agent:
        result = await agent.answer("status", {})
        assert result.is_error
        assert "[groups]" in data_of(result)["message"]
