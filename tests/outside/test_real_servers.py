"""Plans over real tool servers from the registries: what they do is there, and when a plan fails it is all gone.

From outside: real processes of handrail's, and a world that is looked at with git, SQLite and the disk."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from outside.mcp_client import mcp_server
from outside.real_servers import EXAMPLES, PATIENCE_S, Looks, World, declared, served_over_http, world_in
from outside.tool_servers import ToolServers, tool_servers

FOUR_AT_ONCE = {"branch", "row", "node", "notes"}


@pytest.fixture(scope="module")
def servers() -> ToolServers:
    return tool_servers()


@pytest.fixture
def world(tmp_path: Path, servers: ToolServers) -> World:
    world = world_in(tmp_path)
    world.declare(declared(world, servers))
    return world


def test_a_plan_across_four_servers_is_done_in_parallel_and_fully_undone_in_the_world(world: World) -> None:
    before = world.looks()
    waiting = world.json_of("run", "start", str(EXAMPLES / "prepare-release.yaml"), code=4)
    run = waiting["run"]
    assert [one["step"] for one in waiting["waiting_for"]] == ["go"], waiting
    assert world.looks() == Looks(
        branches=("main", "release-1.2.0"),
        head="release-1.2.0",
        staged=("NOTES.md",),
        rows=(("1.2.0",),),
        graph=frozenset({"shop", "release-1.2.0", "release-1.2.0 belongs to shop"}),
        files=("memory.jsonl", "shop.db", "shop/NOTES.md", "shop/README.md"),
    )
    ended = world.json_of("approve", run, "go", "--reason", "it looks good", *world.seen(run, "go"), code=9)
    assert ended["status"] == "compensated", ended
    assert world.looks() == before
    assert _began_at_once(world, run) == FOUR_AT_ONCE
    assert world.handrail("journal", "verify").returncode == 0


def _began_at_once(world: World, run: str) -> set[str]:
    """The steps that had started before any was done."""
    events = world.json_of("journal", "show", run)["events"]
    kinds = [event["kind"] for event in events]
    return {event["step"] for event in events[: kinds.index("step_completed")] if event["kind"] == "attempt_started"}


def test_what_a_server_wants_to_know_is_asked_of_a_person_and_the_server_gets_their_answer(world: World) -> None:
    asks = {"tool": "everything.trigger-elicitation-request"}
    plan = {"id": "ask", "steps": [{"id": "open", **asks}, {"id": "shy", **asks}]}
    waiting = world.json_of("run", "start", world.write("ask.json", plan), code=4)
    run, (asked,) = waiting["run"], waiting["waiting_for"]
    assert (asked["kind"], asked["step"]) == ("approval", "open")
    assert "Please provide inputs" in asked["text"]
    without = world.handrail("approve", run, "open", "--reason", "fine", *world.seen(run, "open"))
    assert without.returncode == 5, without
    assert "the answer is missing" in without.stderr
    answer = ("--answer", json.dumps({"name": "Ada", "integer": 7}))
    waiting = world.json_of("approve", run, "open", "--reason", "fine", *answer, *world.seen(run, "open"), code=4)
    assert [one["step"] for one in waiting["waiting_for"]] == ["shy"]
    ended = world.json_of("reject", run, "shy", "--reason", "too curious")
    assert ended["status"] == "completed", ended
    text = _output(world, run, "open")
    assert "Name: Ada" in text
    assert "Favorite Integer: 7" in text
    assert "declined" in _output(world, run, "shy")


def test_a_server_is_offered_no_model_so_its_tool_that_needs_one_is_not_there(world: World) -> None:
    plan = {
        "id": "sample",
        "steps": [{"id": "a", "tool": "everything.trigger-sampling-request", "args": {"prompt": "x"}}],
    }
    refused = world.handrail("run", "start", world.write("sample.json", plan))
    assert refused.returncode == 5, refused
    assert "there is no tool `everything.trigger-sampling-request`" in refused.stderr


async def test_how_far_a_tool_is_can_be_seen_while_it_works(world: World) -> None:
    call = {"id": "long", "tool": "everything.trigger-long-running-operation", "args": {"duration": 2, "steps": 10}}
    async with mcp_server(world.place.home, world.project) as client, asyncio.timeout(PATIENCE_S):
        run = (await client.call("execute_plan", definition={"id": "long", "steps": [call]}))["run"]
        seen: set[str] = set()
        while (now := await client.call("status", run=run, detail="full"))["status"] not in {"completed", "failed"}:
            seen |= {step["says"] for step in now["steps"] if "says" in step}
            await asyncio.sleep(0.05)
    assert now["status"] == "completed", now
    assert len(seen) > 1, seen
    assert all("/10" in words for words in seen), seen


def test_results_keep_their_kind_and_big_ones_travel_by_reference(world: World) -> None:
    big = "select printf('%.*c', 300000, 'x') as line"
    plan = {
        "id": "kinds",
        "steps": [
            {"id": "typed", "tool": "everything.get-structured-content", "args": {"location": "Chicago"}, "after": []},
            {"id": "hour", "tool": "time.get_current_time", "args": {"timezone": "UTC"}, "after": []},
            {
                "id": "text",
                "tool": "everything.echo",
                "args": {"message": "{% raw %}{{ run.id }}{% endraw %}"},
                "after": [],
            },
            {"id": "again", "tool": "everything.echo", "args": {"message": "{{ steps.text.output }}"}},
            {"id": "image", "tool": "everything.get-tiny-image", "after": []},
            {"id": "links", "tool": "everything.get-resource-links", "after": []},
            {"id": "big", "tool": "sqlite.read_query", "args": {"query": big}, "after": []},
            {
                "id": "copy",
                "tool": "files.write_file",
                "args": {"path": str(world.project / "big.txt"), "content": "{{ steps.big.output }}"},
                "after": ["big"],
            },
        ],
    }
    run = world.json_of("run", "start", world.write("kinds.json", plan))["run"]
    outputs = {step: _output(world, run, step) for step in ("typed", "hour", "again", "image", "links", "big")}
    assert isinstance(outputs["typed"]["temperature"], int)
    assert outputs["hour"]["timezone"] == "UTC"
    assert outputs["again"] == "Echo: Echo: {{ run.id }}"  # what a tool says is never rendered
    assert [one["media_type"] for one in outputs["image"] if isinstance(one, dict)] == ["image/png"]
    assert next(one["uri"] for one in outputs["links"] if isinstance(one, dict)).startswith("demo://resource/")
    assert outputs["big"]["bytes"] > 300_000
    assert len(json.dumps(outputs["big"])) < 2_000
    assert "x" * 300_000 in (world.project / "big.txt").read_text(encoding="utf-8")


def test_a_server_that_is_reached_over_http_is_used_like_one_that_is_started(
    world: World, servers: ToolServers
) -> None:
    plan = {
        "id": "far",
        "steps": [
            {"id": "typed", "tool": "far.get-structured-content", "args": {"location": "Chicago"}},
            {"id": "long", "tool": "far.trigger-long-running-operation", "args": {"duration": 0.2, "steps": 2}},
            {"id": "ask", "tool": "far.trigger-elicitation-request"},
        ],
    }
    with served_over_http(servers) as address:
        world.declare({"far": {"url": address}})
        run = world.json_of("run", "start", world.write("far.json", plan), code=4)["run"]
        answer = ("--answer", '{"name": "Ada"}')
        world.json_of("approve", run, "ask", "--reason", "fine", *answer, *world.seen(run, "ask"))
    assert isinstance(_output(world, run, "typed")["temperature"], int)
    assert "Name: Ada" in _output(world, run, "ask")
    gone = world.handrail("run", "start", world.write("far.json", plan))
    assert gone.returncode == 8, gone
    assert "the tool server `far` can't be reached" in gone.stderr


def _output(world: World, run: str, step: str) -> Any:
    """The output of a step, according to the journal."""
    events = world.json_of("journal", "show", run)["events"]
    return next(e["data"]["output"] for e in events if e["kind"] == "step_completed" and e["step"] == step)
