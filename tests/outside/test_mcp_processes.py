"""Servers as clients start them: killed while they record, several on one home, and clients that go away.

Real processes over real pipes. What counts is the journal afterwards, read by another process."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from handrail.assembly.opening import open_reader
from handrail.engine.reading.ledger import event_view
from handrail.settings import read_settings
from outside.mcp_client import Gone, McpClient, mcp_server

LANES = 6
PATIENCE_S = 60.0

WIDE = """\
id: wide
name: Many hands
steps:
{steps}
  - {{id: last, prompt: Put it together., after: [{names}]}}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".handrail" / "workflows").mkdir(parents=True)
    return folder


async def journal_of(home: Path, project: Path, run: str) -> list[dict[str, Any]]:
    """The events of a run, verified."""
    async with open_reader(read_settings({"home": str(home), "project": str(project)}, {})) as look:
        verdict = await look.verify(replay=True)
        assert verdict.ok, verdict
        return [event_view(record) for record in await look.store.read(run)]


async def record_until_gone(client: McpClient, run: str, lane: int, acknowledged: list[tuple[str, str]]) -> None:
    """Record one decision after the other until the server is gone; note what it acknowledged."""
    for number in range(10_000):
        said = f"lane {lane} number {number}"
        try:
            answer = await client.call("record_decision", run=run, decision=said, reason="because")
        except Gone:
            return
        acknowledged.append((said, answer["receipt"]))


async def test_a_server_that_is_killed_while_several_lanes_record_loses_and_repeats_nothing_it_acknowledged(
    home: Path, project: Path
) -> None:
    acknowledged: list[list[tuple[str, str]]] = [[] for _ in range(LANES)]
    run = ""
    for life in range(3):
        async with mcp_server(home, project) as client:
            if not run:
                await client.call("record_plan", plan={"name": "lanes", "steps": ["go"]})
                run = (await client.call("record_execution_start", plan="lanes"))["run"]
            lanes = [record_until_gone(client, run, 10 * life + lane, acknowledged[lane]) for lane in range(LANES)]
            tasks = [asyncio.create_task(lane) for lane in lanes]
            before = sum(map(len, acknowledged))
            while sum(map(len, acknowledged)) < before + 60:
                await asyncio.sleep(0.005)
            await client.kill()
            await asyncio.gather(*tasks)
            assert not client.stray
    events = await journal_of(home, project, run)
    numbered = {event["data"]["decision"]: event for event in events if event["kind"] == "decision_recorded"}
    said = [event["data"]["decision"] for event in events if event["kind"] == "decision_recorded"]
    assert len(said) == len(set(said)), "nothing is there twice"
    for lane in acknowledged:
        for text, receipt in lane:
            event = numbered[text]
            assert receipt == f"{event['n']}:{event['hash'][:16]}", "the receipt is that of the event"
        places = [numbered[text]["n"] for text, _ in lane]
        assert places == sorted(places), "the order of answers is the order of numbers"
    assert sum(map(len, acknowledged)) >= 180


async def agent_at_work(client: McpClient, run: str, name: str, tally: dict[str, list[str]], chance: int) -> None:
    """Do steps until none is left: read, claim, submit (sometimes twice), record, ask; no legal call is refused."""
    draw = random.Random(chance)
    while True:
        seen = await client.call("workflow_next", run=run, agent=name)
        assert "code" not in seen, seen
        step = seen.get("step")
        if step is None:
            if seen["status"] in {"completed", "failed"}:
                return
            await asyncio.sleep(0.01)
            continue
        note = await client.call("record_decision", run=run, decision=f"{name} takes {step['id']}", reason="mine")
        assert "receipt" in note, note
        output = {"by": name, "step": step["id"]}
        for _ in range(draw.choice((1, 1, 2))):
            handed = await client.call("workflow_next", run=run, step=step["id"], output=output, agent=name)
            assert handed.get("accepted") is True, handed
        tally[name].append(step["id"])
        for tool in draw.sample(("status", "query_ledger"), 1):
            asked = await client.call(tool, run=run)
            assert "code" not in asked, asked


async def test_two_agents_with_two_servers_work_on_one_run_at_the_same_time(home: Path, project: Path) -> None:
    names = [f"s{number}" for number in range(50)]
    steps = "\n".join(f"  - {{id: {name}, prompt: 'Do {name}.', after: []}}" for name in names)
    text = WIDE.format(steps=steps, names=", ".join(names))
    (project / ".handrail" / "workflows" / "wide.yaml").write_text(text)
    tally: dict[str, list[str]] = {"ann": [], "bob": []}
    async with mcp_server(home, project) as first, mcp_server(home, project) as second:
        run = (await first.call("workflow_next", workflow="wide", goal="together"))["run"]
        await asyncio.wait_for(
            asyncio.gather(
                agent_at_work(first, run, "ann", tally, 1),
                agent_at_work(second, run, "bob", tally, 2),
            ),
            PATIENCE_S,
        )
        ends = [await client.call("status", run=run) for client in (first, second)]
        assert [end["status"] for end in ends] == ["completed", "completed"]
        assert ends[0]["receipt"] == ends[1]["receipt"]
    done = [*tally["ann"], *tally["bob"]]
    assert sorted(done) == sorted([*names, "last"]), "every step was done once, by one of them"
    assert tally["ann"]
    assert tally["bob"]
    events = await journal_of(home, project, run)
    completed = [event["step"] for event in events if event["kind"] == "step_completed"]
    assert sorted(completed) == sorted(done)
    calls = sum(event["actor"] in {"agent:ann", "agent:bob"} for event in events)
    assert calls >= 2 * len(done)


SLOW = {
    "name": "slow",
    "steps": [
        {"id": "wait", "tool": "wait.for", "args": {"duration": "1s"}},
        {"id": "mark", "tool": "file.write", "args": {"path": "done.txt", "text": "yes"}},
    ],
}


async def until_there(file: Path) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not file.exists():
            await asyncio.sleep(0.05)


async def test_a_run_goes_on_in_another_server_when_its_client_goes_away(home: Path, project: Path) -> None:
    async with mcp_server(home, project) as other:
        await other.call("status")
        async with mcp_server(home, project) as client:
            run = (await client.call("execute_plan", definition=SLOW))["run"]
            assert await client.close() == 0
        await until_there(project / "done.txt")
        async with asyncio.timeout(PATIENCE_S):
            while (await other.call("status", run=run))["status"] != "completed":
                await asyncio.sleep(0.05)


async def test_a_run_is_picked_up_by_the_next_server_when_its_own_was_killed(home: Path, project: Path) -> None:
    async with mcp_server(home, project) as client:
        run = (await client.call("execute_plan", definition=SLOW))["run"]
        await client.kill()
    assert not (project / "done.txt").exists()
    async with mcp_server(home, project) as following:
        await until_there(project / "done.txt")
        async with asyncio.timeout(PATIENCE_S):
            while (await following.call("status", run=run))["status"] != "completed":
                await asyncio.sleep(0.05)


async def test_a_call_that_its_client_cancels_leaves_the_run_at_work(home: Path, project: Path) -> None:
    async with mcp_server(home, project) as client:
        waiting = asyncio.create_task(client.call("execute_plan", definition=SLOW, wait="20s"))
        async with asyncio.timeout(PATIENCE_S):
            while not (runs := (await client.call("status"))["runs"]):
                await asyncio.sleep(0.02)
        number = next(iter(client.waiting))
        assert client.process.stdin is not None
        client.process.stdin.write(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}\n' % number
        )
        await until_there(project / "done.txt")
        waiting.cancel()
        async with asyncio.timeout(PATIENCE_S):
            while (await client.call("status", run=runs[0]["run"]))["status"] != "completed":
                await asyncio.sleep(0.05)
