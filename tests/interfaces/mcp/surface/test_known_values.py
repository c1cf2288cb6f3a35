"""Answers to agents: none has a stored secret, not even one that was journaled before it was stored."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from handrail.assembly.secrets import secrets_of
from interfaces.mcp.surface.agent import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.workflow({"id": "w", "steps": [{"id": "a", "prompt": "A."}]})
    return place


async def test_a_secret_that_is_stored_later_is_no_longer_shown(place: Place) -> None:
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w", goal="use hunter22"))["run"]
        assert "hunter22" in str(await agent.call("query_ledger", run=run))
        secrets_of(place.settings(secrets_in="file")).keep("KEY", "hunter22", None)
        await agent.call("status")
    async with place.agent() as agent:
        assert "hunter22" not in str(await agent.call("query_ledger", run=run))
        assert "hunter22" not in await agent.said("query_ledger", run=run)


async def test_a_definition_with_a_secret_is_refused_before_anything_quotes_it(place: Place) -> None:
    secrets_of(place.settings(secrets_in="file")).keep("KEY", "hunter22", None)
    async with place.agent() as agent:
        for tool, key in (("save_plan", "plan"), ("execute_plan", "definition"), ("workflow_validate", "definition")):
            refused = await agent.refused(tool, "invalid", **{key: {"id": "hunter22", "steps": "aHVudGVyMjI="}})
            assert "${secret:KEY}" in refused["message"]
            assert "hunter22" not in str(refused)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are those of POSIX")
async def test_secrets_that_can_not_be_read_stop_every_call_with_what_to_do(place: Place) -> None:
    secrets_of(place.settings(secrets_in="file")).keep("KEY", "hunter22", None)
    (place.home / "keys" / "secrets.json").chmod(0o644)
    async with place.agent() as agent:
        refused = await agent.refused("workflow_next", "forbidden", workflow="w")
        assert "chmod 600" in refused["hint"]
