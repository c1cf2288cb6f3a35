"""Archived runs in the API: read like others, marked, and offered nothing that would be refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

from handrail.domain.journal.archived import Tombstone
from handrail.domain.run.status import RunStatus
from handrail.engine.reading.run_lines import RunLine
from handrail.interfaces.http.api.run_listing import DELETED, archived_line
from interfaces.http.in_process import as_actor
from interfaces.shell import Shell

CANCELLED = {
    "id": "half",
    "steps": [
        {"id": "a", "tool": "file.write", "args": {"path": "a.md", "text": "a"}},
        {"id": "b", "approve": "Go on?"},
    ],
}


def test_a_list_says_that_the_events_of_a_run_were_deleted() -> None:
    line, stone = (
        RunLine(run="run_a", workflow="half", status=RunStatus.COMPLETED, done=1),
        Tombstone("run_a", 4, b"", ""),
    )
    assert (archived_line(line, stone).why, archived_line(line, stone).archived) == (DELETED, "")


async def test_an_archived_run_is_marked_and_only_forked(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    async with as_actor(tmp_path, "person:ada") as (api, parts):
        run = (await api.post("/api/v1/runs", json={"definition": CANCELLED})).json()["run"]
        await parts.worker.settled(run)
        assert (await api.post(f"/api/v1/runs/{run}/cancel", json={"reason": "no"})).status_code == 200
        before = (await api.get(f"/api/v1/runs/{run}")).json()
        assert {one["action"] for one in before["actions"]} == {"compensate", "fork"}
        assert "archived" not in before
        done = await asyncio.to_thread(shell.json, "db", "archive", run)
        view = (await api.get(f"/api/v1/runs/{run}")).json()
        assert view["archived"] == done["archives"][0]["archive"]
        assert ([one["action"] for one in view["actions"]], view["options"]) == (["fork"], [])
        (line,) = (await api.get("/api/v1/runs")).json()["runs"]
        assert line["archived"] == view["archived"]
        step = (await api.get(f"/api/v1/runs/{run}/steps/a")).json()
        assert {one["action"] for one in step.get("actions", [])} <= {"fork"}
        looked, asked = (
            await api.get(f"/api/v1/runs/{run}/do/compensate"),
            await api.post(f"/api/v1/runs/{run}/compensate", json={"reason": "undo it"}),
        )
        for answer in (looked, asked):
            assert (answer.status_code, answer.json()["detail"]) == (409, f"{run} is archived")
            assert f"handrail db unarchive {run}" in answer.json()["hint"]
        assert (await api.get(f"/api/v1/runs/{run}/do/fork?step=b")).status_code == 200
