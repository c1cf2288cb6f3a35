"""Agents who behave badly complete every built-in workflow: nothing is done twice, and nothing is left out.

The real product over real files, by the official client; a few over `handrail mcp` in processes of their own. What
counts is the journal afterwards, compared with the result that the pure walker expects."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from handrail.domain.run.step_path import UNDO
from interfaces.mcp.surface.agent import Place
from outside.mcp_client import mcp_server
from outside.parts import COMPENSATED, COMPLETED, Part, built_in_names, part_of
from outside.scripted_agent import Mood, ScriptedAgent
from outside.worlds import ByPipe, InMemory, hold

NAMES = built_in_names()
UNDOING = [name for name in NAMES if part_of(name, COMPENSATED) is not None]
BY_AGENT = "release-and-deploy"
"""A workflow whose undos are the agent's."""
BY_PIPE = ["code-review", "multi-service-booking", "routine-approval-request"]
"""Loops and an inlined workflow; handrail's own steps; an approval."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def played(name: str, end: str = COMPLETED) -> Part:
    part = part_of(name, end)
    assert part is not None, f"{name} has no test that ends {end}"
    return part


def misbehaved(agents: list[ScriptedAgent]) -> int:
    return sum(count for agent in agents for mood, count in agent.whims.had.items() if mood is not Mood.PLAIN)


@pytest.mark.parametrize("name", NAMES)
async def test_an_agent_that_behaves_badly_completes_a_built_in_workflow(place: Place, name: str) -> None:
    part = played(name)
    async with place.serving(built_in="true") as server:
        world = InMemory(server, place.home, place.project)
        agent = world.agent(part, name)
        run = await agent.start()
        await agent.work(run)
        async with world.connect() as line:
            await hold(line, run, part)


@pytest.mark.parametrize("name", NAMES)
async def test_two_agents_at_once_complete_a_built_in_workflow(place: Place, name: str) -> None:
    part = played(name)
    is_named = NAMES.index(name) % 2 == 0
    async with place.serving(built_in="true") as server:
        world = InMemory(server, place.home, place.project)
        twins = [
            world.agent(part, f"{name} {number}", name=f"twin-{number}" if is_named else "", is_alone=False)
            for number in range(2)
        ]
        run = await twins[0].start()
        await asyncio.gather(*(twin.work(run) for twin in twins))
        async with world.connect() as line:
            await hold(line, run, part)
    both = twins[0].worked.keys() & twins[1].worked.keys()
    assert not both or not is_named  # who names itself has its step for itself


@pytest.mark.parametrize("name", UNDOING)
async def test_an_agent_that_behaves_badly_undoes_what_a_failure_leaves_behind(place: Place, name: str) -> None:
    part = played(name, COMPENSATED)
    async with place.serving(built_in="true") as server:
        world = InMemory(server, place.home, place.project)
        agent = world.agent(part, f"{name} undone")
        run = await agent.start()
        await agent.work(run)
        async with world.connect() as line:
            await hold(line, run, part)
    undone = {step.removesuffix(UNDO) for step in agent.worked if step.endswith(UNDO)}
    assert undone <= set(part.walked.undone)
    assert undone or name != BY_AGENT


@pytest.mark.parametrize("name", BY_PIPE)
async def test_two_agents_at_two_server_processes_complete_a_run_on_one_home(place: Place, name: str) -> None:
    part = played(name)
    homes = (place.home, place.project)
    async with mcp_server(*homes) as one, mcp_server(*homes) as other:
        worlds = [ByPipe(client, *homes) for client in (one, other)]
        twins = [world.agent(part, f"{name} {n} piped", is_alone=False) for n, world in enumerate(worlds)]
        run = await twins[0].start()
        await asyncio.gather(*(twin.work(run) for twin in twins))
        async with worlds[0].connect() as line:
            await hold(line, run, part)


async def test_the_agents_really_behave_badly_and_are_refused(place: Place) -> None:
    part = played("feature-implementation")
    async with place.serving(built_in="true") as server:
        agent = InMemory(server, place.home, place.project).agent(part, "badly")
        await agent.work(await agent.start())
    assert set(agent.whims.had) == set(Mood)
    assert agent.refused >= misbehaved([agent]) / 3


async def test_a_step_of_a_later_round_is_not_taken_before_its_round_has_come(place: Place) -> None:
    loop = {"id": "each", "each": [1, 2, 3], "as": "one", "max": 3, "steps": [{"id": "do", "prompt": "Do {{ one }}."}]}
    place.workflow({"id": "rounds", "steps": [loop]})
    async with place.agent() as agent:
        answer = await agent.call("workflow_next", workflow="rounds")
        assert answer["ready"] == ["each[0].do"]
        await agent.refused("workflow_next", "conflict", run=answer["run"], step="each[1].do", output=2)
        for number in range(3):
            answer = await agent.call("workflow_next", run=answer["run"], step=f"each[{number}].do", output=number)
        assert answer["status"] == "completed"


async def test_something_else_for_a_step_that_is_being_undone_is_not_taken_for_its_undo(place: Place) -> None:
    steps = [
        {"id": "buy", "prompt": "Buy it.", "undo": {"prompt": "Give it back."}},
        {"id": "use", "prompt": "Use it."},
    ]
    place.workflow({"id": "shop", "on_failure": "compensate", "steps": steps})
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="shop"))["run"]
        await agent.call("workflow_next", run=run, step="buy", output="bought")
        answer = await agent.call("workflow_next", run=run, step="use", outcome="failed")
        assert answer["step"]["id"] == "buy!undo"
        await agent.refused("workflow_next", "conflict", run=run, step="buy", output="I bought it, in other words")
        answer = await agent.call("workflow_next", run=run, step="buy!undo")
        assert answer["status"] == "compensated"
