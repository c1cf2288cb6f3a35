"""Walks on which steps are left out: by the agent where the policy lets it, else by a person with a command."""

from __future__ import annotations

import anyio.to_thread
from msgspec.structs import replace

from handrail.domain.rehearsal.script import plain
from interfaces.mcp.surface.agent import joined
from outside.walks.walk import Data, Skipped, Walk, Walked, Worker
from outside.walks.workplace import Workplace

REASON = "somebody else has done it"


async def walked_leaving_out(walk: Walk, work: Workplace, *, by_agent: str = "", by_person: str = "") -> Walked:
    """One step is skipped by the agent and one by a person: the run is completed, and says what was left out.

    The agent tries both; the policy must refuse it where a person is needed."""
    walk.prepared(work)
    skipping = {by_agent: lambda _: Skipped(REASON)} if by_agent else {}
    async with work.serving() as server, joined(server, name="worker") as agent:
        worker = _WithAPerson(replace(walk, steps={**walk.steps, **skipping}), work, agent, server)
        worker.for_a_person = by_person
        end = await worker.follow()
        assert end["status"] == "completed", end
        assert {plain(one["step"]) for one in end["exceptions"]} == {by_agent, by_person} - {""}, end
        return Walked(end, worker.path, worker.cost, worker.answers)


class _WithAPerson(Worker):
    """A worker that asks a person to leave a step out that it may not leave out itself."""

    for_a_person = ""

    async def do(self, step: Data, *, lying: bool, to_the_end: bool = True) -> Data:
        if plain(step["id"]) != self.for_a_person:
            return await super().do(step, lying=lying)
        mine = await self.ask("workflow_next", run=self.run, step=step["id"], outcome="skipped", note=REASON)
        assert mine.get("name") == "forbidden", mine
        person = self.work.beside("run", "skip", self.run, step["id"], "--reason", REASON, "--detach")
        code, _, said = await anyio.to_thread.run_sync(person.end)
        assert code == 0, said
        return await self.ask("workflow_next", run=self.run)
