"""No route walks an actor past a gate: every write with every choice of its document, on every gate, in every state.

The calls are generated from the document of the API, so a route or a choice that is added later is tried here, too. A
real server only knows the person of its machine; here agents call, and persons who do not know the passphrase."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from handrail.assembly.opening import Assembly
from handrail.assembly.people import passphrase_of
from handrail.domain.definition.authoring import definition_from
from handrail.domain.journal.event import Mode
from handrail.domain.run.command import StartRun
from handrail.interfaces.http.contract.openapi import FILE
from handrail.settings import read_settings
from interfaces.http.in_process import as_actor
from interfaces.mcp.surface.test_policy_matrix import GATES, PASSED, about, choices

DOCUMENT: Mapping[str, Any] = json.loads(FILE.read_bytes())
SCHEMAS = DOCUMENT["components"]["schemas"]


def schema_of(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a write carries; nothing that could be chosen where it is a file."""
    found = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    return {"properties": {}, **(SCHEMAS[found["$ref"].split("/")[-1]] if "$ref" in found else found)}


WRITES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    (method, path): schema_of(operation)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
    if method in {"post", "put", "patch", "delete"}
}
"""Every operation that is not only there to read; also those that name no run: what answers all that is asked needs
none."""
OF_A_RUN = {
    (method, path): schema
    for (method, path), schema in WRITES.items()
    if "{run}" in path or "run" in schema["properties"]
}
STATES = ("as it starts", "paused", "reported as failed", "recorded")
APPROVALS = [name for name in GATES if "approval" in name]


def bodies(schema: Mapping[str, Any], steps: list[str], digest: str) -> Iterator[dict[str, Any]]:
    """What a write can carry: every combination of what its document lets one choose from, with a guess and without."""
    given = {name: choices(one, name, steps) for name, one in schema["properties"].items()}
    given |= {"digest": [digest]} if "digest" in given else {}
    given |= {"passphrase": ["open sesame, perhaps"]} if "passphrase" in given else {}
    chosen = {name: values for name, values in given.items() if values}
    for combination in product(*chosen.values()):
        body = dict(zip(chosen, combination, strict=True))
        yield body
        if body.pop("passphrase", None):
            yield body


class Attacker:
    """Somebody with the API, and the program behind it to see what became of a run."""

    def __init__(self, client: httpx.AsyncClient, parts: Assembly) -> None:
        self.client, self.parts = client, parts
        self.tried = 0

    async def started(self, gate: dict[str, Any], state: str) -> str:
        steps = [{"id": "gate", **gate}, {"id": "after", "prompt": "Behind the gate."}]
        definition = definition_from({"id": "gated", "name": "Gated", "steps": steps})
        mode = Mode.RECORD if state == "recorded" else Mode.RUN
        run = await self.parts.worker.start(definition, {}, actor="agent:claude", ask=StartRun(mode=mode))
        if mode is Mode.RECORD:
            await self.parts.recorder.settle(run)
        else:
            await self.parts.worker.settled(run.id)
        if state == "paused":
            await self.client.post(f"/api/v1/runs/{run.id}/pause", json={"reason": "x"})
        elif state == "reported as failed":
            body = {"step": "gate", "outcome": "failed", "note": "x"}
            await self.client.post(f"/api/v1/runs/{run.id}/submit", json=body)
        return run.id

    async def attack(self, gate: dict[str, Any], state: str, steps: list[str]) -> None:
        run = await self.started(gate, state)
        begun = (await self.current(run)).status
        for (method, path), schema in WRITES.items():
            digest = next((one.digest for one in (await self.current(run)).steps.values() if one.digest), "")
            for given in bodies(schema, steps, digest):
                for step in steps if "{step" in path else ("",):
                    place = path.replace("{run}", run).replace("{step}", step)
                    body = about(given, run)
                    answer = await self.client.request(method, place, json=body)
                    self.tried += 1
                    assert answer.status_code in {200, 201, 400, 403, 404, 409}, (place, body, answer.text)
                    for one in {run, str(answer.json().get("run") or run)}:  # a fork is another run
                        assert await self.passed(one) == [], (state, place, body)
                if (await self.current(run)).status is not begun:
                    # That is not past the gate. But a run that was paused, for example, keeps what comes next out.
                    run = await self.started(gate, state)

    async def current(self, run: str) -> Any:
        return await self.parts.writer.dispatch.current(run)

    async def passed(self, run: str) -> list[str]:
        """What counts as done or left out."""
        state = await self.current(run)
        return [path for path, step in state.steps.items() if step.status.value in PASSED]


def steps_of(gate: str) -> list[str]:
    return ["gate", "gate[0].inner"] if "loop" in gate else ["gate"]


@pytest.mark.parametrize("gate", GATES)
async def test_no_write_of_an_agent_passes_a_gate(tmp_path: Path, gate: str) -> None:
    async with as_actor(tmp_path, "agent:claude") as (client, parts):
        attacker = Attacker(client, parts)
        for state in STATES:
            if state != "recorded" or gate in APPROVALS:  # in a recorded run only an approval is more than a claim
                await attacker.attack(GATES[gate], state, steps_of(gate))
        assert attacker.tried > 100


@pytest.mark.parametrize("gate", APPROVALS)
async def test_no_write_of_a_person_without_the_passphrase_passes_an_approval(tmp_path: Path, gate: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text("[approvals]\npassphrase = true\n")
    settings = read_settings({"home": str(tmp_path / "home"), "project": str(tmp_path)}, {})
    await asyncio.to_thread(passphrase_of(settings).keep, "open sesame, please", old=None)
    async with as_actor(tmp_path, "person:ann") as (client, parts):
        attacker = Attacker(client, parts)
        for state in STATES:
            await attacker.attack(GATES[gate], state, steps_of(gate))
        assert attacker.tried > 100


async def test_no_write_reaches_a_run_of_another_project(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with (
        as_actor(tmp_path, "person:ann") as (_, owner),
        as_actor(tmp_path, "person:ann", project=tmp_path / "other") as (client, parts),
    ):
        waiting = definition_from(
            {"id": "g", "steps": [{"id": "gate", "approve": "Go on?"}, {"id": "p", "prompt": "x"}]}
        )
        run = await owner.worker.start(waiting, {}, actor="person:ann")
        await owner.worker.settled(run.id)
        before = await owner.writer.dispatch.current(run.id)
        assert (await client.get(f"/api/v1/runs/{run.id}")).json()["project"]["folder"] == str(tmp_path), "all may read"
        for (method, path), schema in OF_A_RUN.items():
            for given in bodies(schema, ["gate"], before.step("gate").digest):
                body = about(given, run.id)
                place = path.replace("{run}", run.id).replace("{step}", "gate")
                answer = await client.request(method, place, json=body)
                assert (answer.status_code, names_its_project(answer)) == (409, True), (path, body)
        after = await parts.writer.dispatch.current(run.id)
        assert (after.n, after.head) == (before.n, before.head)
        for path in (f"/api/v1/runs/{run.id}/next", "/api/v1/plans/check"):
            body = {"run": run.id, "step": "p", "output": 1}
            answer = await (client.post(path, json=body) if path.endswith("check") else client.get(path))
            assert (answer.status_code, names_its_project(answer)) == (409, True), path


def names_its_project(answer: httpx.Response) -> bool:
    return "belongs to another project" in answer.text or "is not open in this server" in answer.text
