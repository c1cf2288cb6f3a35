"""Agents in two projects on one home: an agent reads another project's runs, and every tool refuses more than that.

The calls are made from the tools' own schemas, so that a new tool or action is covered without anybody remembering."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.errors import OtherProject
from handrail.interfaces.mcp.surface.caller import Response, UserAnswer
from handrail.interfaces.mcp.surface.handlers.catalog import TOOLS
from handrail.interfaces.mcp.surface.lazy_program import LazyProgram
from handrail.interfaces.mcp.surface.runs.run_tasks import RunTasks
from interfaces.mcp.surface.agent import Agent, Place, write

READING = {"status", "query_ledger"}
ASKED = {
    "name": "Asked",
    "steps": [
        {"id": "say", "prompt": "Say it.", "after": [], "checks": [{"rule": "file_exists", "path": "said.txt"}]},
        {"id": "go", "approve": "Go on?", "after": []},
        write("w", after=["go"]),
    ],
}


class TwoPlaces:
    """A shop and a site on one home."""

    def __init__(self, folder: Path) -> None:
        self.shop, self.site = Place(folder), Place(folder)
        self.shop.project, self.site.project = folder / "shop", folder / "site"
        for place in (self.shop, self.site):
            place.project.mkdir()

    @asynccontextmanager
    async def agents(self, **options: Any) -> AsyncIterator[tuple[Agent, Agent, str]]:
        """An agent of each, and a run of the shop that waits for an agent and for a person."""
        async with self.shop.agent() as shop, self.site.agent(**options) as site:
            run = str((await shop.call("execute_plan", definition=ASKED, wait="10s"))["run"])
            await shop.until(run, "waiting")
            yield shop, site, run


@pytest.fixture
def two(tmp_path: Path) -> TwoPlaces:
    return TwoPlaces(tmp_path)


def calls_on(run: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A call of every tool that takes a run and does more than read: with each action, with a step and without."""
    for tool in TOOLS:
        properties: Mapping[str, Any] = tool.input["properties"]
        if "run" not in properties or tool.name in READING:
            continue
        needed = dict.fromkeys(tool.input.get("required", ()), "x")
        step = {"step": "say"} if "step" in properties else {}
        output = {"output": {"said": 1}} if "output" in properties else {}
        for actions in [{"action": one} for one in properties.get("action", {}).get("enum", ())] or [{}]:
            yield tool.name, {**needed, **step, **output, **actions, "run": run}
            if "step" not in needed and tool.name != "workflow_validate":
                yield tool.name, {**needed, **actions, "run": run}


def test_the_calls_cover_the_tools_that_change_runs() -> None:
    named = {name for name, _ in calls_on("run_x")}
    assert named >= {"workflow_next", "workflow_validate", "control", "record_compensation", "record_action"}
    actions = {arguments.get("action") for name, arguments in calls_on("run_x") if name == "control"}
    assert actions >= {"approve", "reject", "cancel", "compensate", "fork", "retry", "skip", "accept"}


async def test_every_tool_refuses_another_projects_run_with_its_folder_and_changes_nothing(two: TwoPlaces) -> None:
    async def never(*_: Any) -> Any:
        raise AssertionError("the user was asked about another project's run")

    async with two.agents(elicitation_callback=never) as (shop, site, run):
        folder = os.path.realpath(two.shop.project)
        before = two.shop.events()
        for name, arguments in calls_on(run):
            error = await site.refused(name, "conflict", **arguments)
            assert error["message"] == f"{run} belongs to another project: shop, in {folder}", (name, arguments)
            assert f"--project {folder}" in error["hint"]
            assert run not in str(error["next"])  # the same run again would be refused again
        assert two.shop.events() == before
        assert list(two.site.project.iterdir()) == []
        assert list(two.shop.project.iterdir()) == []
        assert (await shop.call("status", run=run))["status"] == "waiting"


RECORDS: dict[str, dict[str, Any]] = {
    "record_decision": {"decision": "wait", "reason": "it rains"},
    "record_action": {"description": "looked"},
    "record_compensation": {"step": "w", "description": "gone", "outcome": "failed"},
}


@pytest.mark.parametrize("tool", RECORDS)
async def test_what_one_project_recorded_is_no_repetition_in_another(two: TwoPlaces, tool: str) -> None:
    async with two.agents() as (shop, site, run):
        await shop.call(tool, run=run, **RECORDS[tool])
        assert (await shop.call(tool, run=run, **RECORDS[tool]))["repeated"]
        await site.refused(tool, "conflict", run=run, **RECORDS[tool])


async def test_another_projects_run_can_be_read_and_the_answer_names_its_project(two: TwoPlaces) -> None:
    async with two.agents() as (shop, site, run):
        named = {"name": "shop", "folder": os.path.realpath(two.shop.project)}
        seen = await site.call("status", run=run, detail="full")
        assert {key: seen["project"][key] for key in named} == named
        assert "project shop" in await site.said("status", run=run)
        asked = [one["command"] for one in seen["waiting_for"] if one["kind"] == "approval"]
        assert asked == [f"handrail --project {named['folder']} approve {run} go"]
        found = await site.call("query_ledger", run=run)
        assert (found["project"]["name"], found["events"][0]["kind"]) == ("shop", "run_started")
        assert "project shop" in await site.said("query_ledger", run=run)
        for tool in READING:
            assert "project" not in await shop.call(tool, run=run)
        for uri in (f"handrail://runs/{run}", f"handrail://runs/{run}/journal"):
            assert '"name":"shop"' in (await site.client.read_resource(uri)).contents[0].text  # type: ignore[union-attr]
            assert '"name":"shop"' not in (await shop.client.read_resource(uri)).contents[0].text  # type: ignore[union-attr]


async def test_what_would_be_refused_is_no_option(two: TwoPlaces) -> None:
    failing = {"name": "Fails", "steps": [{"id": "read", "tool": "file.read", "args": {"path": "missing.txt"}}]}
    async with two.agents() as (shop, site, _):
        run = str((await shop.call("execute_plan", definition=failing, wait="10s"))["run"])
        assert (await shop.call("status", run=run))["failure"]["options"]
        seen = await site.call("status", run=run)
        assert (seen["failure"]["step"], "options" in seen["failure"]) == ("read", False)


async def test_lists_show_the_agents_own_project(two: TwoPlaces) -> None:
    async with two.agents() as (shop, site, run):
        for tool in ("status", "workflow_next"):
            assert [one["run"] for one in (await shop.call(tool))["runs"]] == [run]
            assert (await site.call(tool))["runs"] == []
        assert run not in (await site.client.read_resource("handrail://runs")).contents[0].text  # type: ignore[union-attr]
        ledger = await site.call("query_ledger")
        assert {event["run"] for event in ledger["events"]} == {"store"}
        assert run in {event["run"] for event in (await shop.call("query_ledger"))["events"]}
        nearest = await site.refused("status", "not_found", run=run[:-1] + "!")
        assert run not in nearest["hint"]


async def test_plans_and_keys_are_of_a_project(two: TwoPlaces) -> None:
    plan = {"id": "deploy", "steps": [write(path="deployed.txt")]}
    async with two.shop.agent() as shop, two.site.agent() as site:
        await shop.call("save_plan", plan=plan)
        await site.refused("execute_plan", "not_found", plan="deploy")
        await site.refused("record_execution_start", "not_found", plan="deploy")
        assert (await site.call("save_plan", plan={**plan, "name": "Another"}))["version"] == 1
        ask = {"plan": "deploy", "idempotency_key": "monday", "wait": "10s"}
        first, other = await shop.call("execute_plan", **ask), await site.call("execute_plan", **ask)
        assert first["run"] != other["run"]
        assert "repeated" not in other
        assert (await shop.call("execute_plan", **ask))["run"] == first["run"]
        assert [(place.project / "deployed.txt").exists() for place in (two.shop, two.site)] == [True, True]


async def test_a_task_of_another_project_asks_and_takes_nothing(two: TwoPlaces) -> None:
    async with two.agents() as (shop, _, run):
        lazy = LazyProgram(two.site.settings())
        tasks = RunTasks(lazy)
        caller: Any = None
        answer = {"go": UserAnswer(response=Response.ACCEPT, content={"decision": "approve"})}
        try:
            with pytest.raises(OtherProject, match="shop"):
                await tasks.get(run, caller)
            with pytest.raises(OtherProject, match="shop"):
                await tasks.answer(run, answer, caller)
            with pytest.raises(OtherProject, match="shop"):
                await tasks.cancel(run, caller)
        finally:
            await lazy.close()
        assert (await shop.call("status", run=run))["status"] == "waiting"
