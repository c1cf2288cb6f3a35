"""Worlds for scripted agents: a server, the agents who come to it, and the person who decides; and what must be true
of a run afterwards, whatever its agents did. What an agent does is in scripted_agent.py."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import mcp_types as mt
from mcp.client import ClientRequestContext

from interfaces.mcp.surface.agent import Agent, data_of, joined
from outside.mcp_client import McpClient
from outside.parts import Part
from outside.scripted_agent import Data, Line, ScriptedAgent, Whims

DONE = ("step_completed", "approval_given")
SKIPPED, COMPENSATED = "step_skipped", "step_compensated"
EVENTS_MAX = 100
MAY_HAPPEN = (0, 4, 6)
"""How a person's command may end: done, the run waits, or it came too late because the other's was quicker."""


class _InMemory:
    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    async def ask(self, tool: str, arguments: Mapping[str, Any]) -> Data:
        return data_of(await self.agent.answer(tool, arguments))


class _ByPipe:
    def __init__(self, client: McpClient) -> None:
        self.client = client

    async def ask(self, tool: str, arguments: Mapping[str, Any]) -> Data:
        return await self.client.call(tool, **arguments)


class InMemory:
    """A server in this process: agents come by the official client, and a person answers what theirs asks."""

    def __init__(self, server: Any, home: Path, project: Path) -> None:
        self.server, self.home, self.project = server, home, project

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Line]:
        async with joined(self.server, name="badly") as agent:
            yield _InMemory(agent)

    async def decide(self, run: str, step: str, is_yes: bool) -> None:
        """A person answers the question that their client shows."""

        async def answer(_: ClientRequestContext, params: mt.ElicitRequestParams) -> mt.ElicitResult:
            assert run in params.message
            return mt.ElicitResult(action="accept", content={"answer": "approve" if is_yes else "reject"})

        async with joined(self.server, name="person", elicitation_callback=answer) as agent:
            # The other agent may have asked, too: then there is nothing left to be decided.
            await agent.answer("control", {"run": run, "action": "approve", "step": step, "reason": "asked"})

    def agent(self, part: Part, seed: str, *, name: str = "", is_alone: bool = True) -> ScriptedAgent:
        person = partial(in_a_shell, self.home, self.project)
        return ScriptedAgent(part, Whims(seed), self.connect, self.decide, person, name=name, is_alone=is_alone)


class ByPipe:
    """A server process on a home: agents come by its pipes, and a person uses the command line."""

    def __init__(self, client: McpClient, home: Path, project: Path) -> None:
        self.client, self.home, self.project = client, home, project

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Line]:
        yield _ByPipe(self.client)

    async def decide(self, run: str, step: str, is_yes: bool) -> None:
        """A person says so in a shell."""
        asked = json.loads(await self._handrail("approvals", "--json"))["approvals"]
        digest = next((one["digest"] for one in asked if (one["run"], one["step"]) == (run, step)), "sha256:none")
        words = ["approve", run, step, "--digest", digest] if is_yes else ["reject", run, step]
        await self._handrail(*words, "--reason", "I looked at it")

    async def _handrail(self, *words: str) -> bytes:
        return await in_a_shell(self.home, self.project, *words)

    def agent(self, part: Part, seed: str, *, name: str = "", is_alone: bool = True) -> ScriptedAgent:
        return ScriptedAgent(part, Whims(seed), self.connect, self.decide, self._handrail, name=name, is_alone=is_alone)


async def in_a_shell(home: Path, project: Path, *words: str) -> bytes:
    """What a person's command prints."""
    command = [sys.executable, "-m", "handrail", "--home", str(home), "--project", str(project), *words]
    pipe, quiet = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdin=quiet, stdout=pipe, stderr=pipe)
    said, why = await process.communicate()
    assert process.returncode in MAY_HAPPEN, (words, process.returncode, why)
    return said


async def events_of(line: Line, run: str, kinds: Iterable[str]) -> list[Data]:
    """The events of these kinds, in order; of a large event the first part."""
    events: list[Data] = []
    more: dict[str, Any] = {}
    while True:
        page = await line.ask("query_ledger", {"run": run, "kinds": [*kinds], "limit": EVENTS_MAX, **more})
        assert "events" in page, page
        events += [one for one in page["events"] if one["data"].get("part", {}).get("from", 0) == 0]
        if "cursor" not in page:
            return events
        more = {"cursor": page["cursor"]}


def is_as_scripted(event: Data, part: Part) -> bool:
    """Whether the output that a completed step has is the good one, if it is the agent's."""
    is_own = event["kind"] == "step_completed" and event["step"] in part.for_agent
    return not is_own or "part" in event["data"] or event["data"].get("output") == part.tries(event["step"])[-1]


async def hold(line: Line, run: str, part: Part) -> None:
    """What must be true of a run that was worked through: all of the path is done, once, and the journal proves it."""
    status = await line.ask("status", {"run": run})
    assert status["status"] == part.walked.end, status
    events = await events_of(line, run, [*DONE, SKIPPED, COMPENSATED])
    steps = {kind: [one["step"] for one in events if one["kind"] == kind] for kind in (*DONE, SKIPPED, COMPENSATED)}
    assert Counter(step for kind in DONE for step in steps[kind]) == Counter(part.walked.path)
    assert Counter(steps[SKIPPED]) == Counter(part.walked.skipped)
    assert Counter(steps[COMPENSATED]) == Counter(part.walked.undone)
    assert [one for one in events if not is_as_scripted(one, part)] == []
    hold_order(part, [one["step"] for one in events if one["kind"] != COMPENSATED])
    verified = (await line.ask("query_ledger", {"run": run, "verify": True, "limit": 1}))["verified"]
    assert verified["ok"], verified


def hold_order(part: Part, ended: list[str]) -> None:
    """No step has ended before those that it waits for."""
    for step in part.definition.steps:
        for before in step.after if step.id in ended else ():
            assert ended.index(before) < ended.index(step.id), (before, step.id)
