"""The life of real tool servers: they end with handrail, however it ends; they come back; a dead one hurts no other.

From outside: real servers of npm's and Python's, found among the machine's processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.scheduling.breaker import TRIPS_AFTER
from outside.mcp_client import McpClient, mcp_server
from outside.processes import handrail
from outside.real_servers import PATIENCE_S, World, command, declared, kill, processes_with, world_in
from outside.tool_servers import ToolServers, tool_servers

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the machine's processes are looked up in /proc")

GONE_WITHIN_S = 10.0
KINDS = ("mcp_server_git", "mcp_server_sqlite", "server-memory", "server-filesystem", "server-everything")
LONG = "everything.trigger-long-running-operation"
DOOMED = """
import os, sys
if os.path.exists(sys.argv[1]):
    sys.exit("the machine is on fire")
os.execv(sys.argv[2], sys.argv[2:])
"""
"""A server that starts as long as a file is not there."""


@pytest.fixture(scope="module")
def servers() -> ToolServers:
    return tool_servers()


@pytest.fixture
def world(tmp_path: Path, servers: ToolServers) -> World:
    world = world_in(tmp_path)
    world.declare(declared(world, servers))
    return world


def all_kinds(world: World, *, long_s: int = 120) -> dict[str, Any]:
    """Calls of five servers, the last of which may take long."""
    repository = str(world.repository)
    return {
        "id": "all-kinds",
        "steps": [
            {"id": "git", "tool": "git.git_status", "args": {"repo_path": repository}, "after": []},
            {"id": "sqlite", "tool": "sqlite.read_query", "args": {"query": "select 1"}, "after": []},
            {"id": "memory", "tool": "memory.read_graph", "after": []},
            {"id": "files", "tool": "files.list_allowed_directories", "after": []},
            {"id": "long", "tool": LONG, "args": {"duration": long_s, "steps": 60}},
        ],
    }


def servers_of(world: World) -> list[int]:
    """The processes of this world's servers, with their supervisors, and none of handrail's own."""
    return [one for one in processes_with(str(world.project)) if one not in processes_with("-m\0handrail")]


def servers_alone(world: World, words: str) -> list[int]:
    """Of those, the servers of one kind, without who watches over them."""
    watchers = processes_with("leash")
    return [one for one in processes_with(words) if one in servers_of(world) and one not in watchers]


async def until(holds: Callable[[], bool], *, within_s: float = PATIENCE_S) -> None:
    async with asyncio.timeout(within_s):
        while not holds():
            await asyncio.sleep(0.02)


def engine(world: World) -> Callable[[], bool]:
    return lambda: all(servers_alone(world, kind) for kind in KINDS)


def servers_of_all_kinds(world: World) -> list[int]:
    return [one for kind in KINDS for one in servers_alone(world, kind)]


@contextmanager
def frozen(processes: Sequence[int]) -> Iterator[None]:
    """Let processes do nothing for a while: a server that goes of itself when its input ends proves nothing."""
    for one in processes:
        os.kill(one, signal.SIGSTOP)
    try:
        yield
    finally:
        for one in processes:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGCONT)


async def test_killing_the_command_line_leaves_no_server_behind(world: World) -> None:
    async with handrail(world.place, "run", "start", world.write("plan.json", all_kinds(world))) as process:
        await until(engine(world))
        with frozen(servers_of_all_kinds(world)):
            await process.kill()
            await until(lambda: not servers_of(world), within_s=GONE_WITHIN_S)


async def test_killing_an_agents_server_leaves_no_tool_server_behind(world: World) -> None:
    async with mcp_server(world.place.home, world.project) as client:
        await client.call("execute_plan", definition=all_kinds(world))
        await until(engine(world))
        with frozen(servers_of_all_kinds(world)):
            await client.kill()
            await until(lambda: not servers_of(world), within_s=GONE_WITHIN_S)


async def test_a_client_that_goes_away_takes_all_servers_with_it(world: World) -> None:
    async with mcp_server(world.place.home, world.project) as client:
        ended = await client.call("execute_plan", definition=all_kinds(world, long_s=0), wait="25s")
        assert ended["status"] == "completed", ended
        assert engine(world)()
        await client.close()
        assert not servers_of(world)


async def test_a_run_goes_on_after_its_server_was_killed_in_the_middle_of_a_call(world: World) -> None:
    call = {"id": "long", "tool": LONG, "args": {"duration": 2, "steps": 4}, "retry": {"first": "100ms"}}
    async with mcp_server(world.place.home, world.project) as client, asyncio.timeout(PATIENCE_S):
        run = (await client.call("execute_plan", definition={"id": "long", "steps": [call]}))["run"]
        while not (await seen(client, run, "long")).get("says"):  # it has made progress: it is in the middle
            await asyncio.sleep(0.02)
        (server,) = servers_alone(world, "server-everything")
        kill(server)
        while (now := await client.call("status", run=run, detail="full"))["status"] not in {"completed", "failed"}:
            await asyncio.sleep(0.05)
        assert now["status"] == "completed", now
        assert now["steps"][0]["attempts"] > 1
        assert servers_alone(world, "server-everything") not in ([], [server])


async def test_a_dead_server_opens_its_breaker_and_the_steps_of_others_go_on(
    world: World, servers: ToolServers
) -> None:
    fire = world.project / "fire"
    doomed = command([sys.executable, "-c", DOOMED, str(fire), *servers.everything(), str(world.project)])
    world.declare({**declared(world, servers), "doomed": doomed})
    echo = {"tool": "doomed.echo", "args": {"message": "hello"}}
    lost = {**echo, "after": ["pause"], "retry": {"attempts": 50, "first": "50ms", "max": "200ms"}}
    plan = {
        "id": "doomed",
        "steps": [
            {"id": "well", **echo},
            {"id": "pause", "tool": "wait.for", "args": {"duration": "1s"}, "after": ["well"]},
            *({"id": f"lost-{number}", **lost} for number in range(TRIPS_AFTER)),
            {"id": "git", "tool": "git.git_status", "args": {"repo_path": str(world.repository)}, "after": ["pause"]},
            {"id": "memory", "tool": "memory.read_graph", "after": ["git"]},
        ],
    }
    async with mcp_server(world.place.home, world.project) as client, asyncio.timeout(PATIENCE_S):
        run = (await client.call("execute_plan", definition=plan))["run"]
        while (await seen(client, run, "well"))["status"] != "completed":
            await asyncio.sleep(0.02)
        fire.touch()
        (server,) = servers_alone(world, "server-everything")
        kill(server)
        while not is_held_by_breaker(await seen(client, run, "lost-0"), "doomed"):
            await asyncio.sleep(0.05)
        for other in ("git", "memory"):
            assert (await seen(client, run, other))["status"] == "completed"
        kinds = [event["kind"] for event in world.json_of("journal", "show", "server/doomed")["events"]]
        assert kinds[0] == "breaker_opened"
        await client.call("control", run=run, action="cancel", reason="seen enough")


def is_held_by_breaker(step: dict[str, Any], server: str) -> bool:
    """Whether a step waits for the circuit breaker of this server, which is open."""
    return any(why["kind"] == "breaker" and server in why["reason"] for why in step.get("waits_for", ()))


async def seen(client: McpClient, run: str, step: str) -> dict[str, Any]:
    """One step, as its run's status shows it."""
    status = await client.call("status", run=run, detail="full")
    return next((one for one in status["steps"] if one["id"] == step), {})
