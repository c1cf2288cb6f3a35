"""A project with a run in every state, made in the ways that people, scripts and agents have."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from handrail.domain.scheduling.breaker import TRIPS_AFTER
from interfaces.http.live_console import LiveConsole, serving
from interfaces.shell import Process, Shell, until

LONG_S = 120.0
"""A run of thousands of steps may take longer than others, where many tests share a core."""
WORD = {"type": "object", "required": ["word"], "properties": {"word": {"type": "string"}}}


def step(name: str, tool: str, **args: Any) -> dict[str, Any]:
    """A step that calls a tool; its title is its name in words."""
    return {"id": name, "title": name.replace("_", " ").capitalize(), "tool": tool, "args": args}


RELEASE: dict[str, Any] = {
    "id": "release",
    "name": "Ship a release",
    "version": "1.0.0",
    "description": "Write the notes, ask somebody, then publish.",
    "category": "delivery",
    "inputs": {"version": {"type": "string", "description": "what is released"}},
    "steps": [
        step("write_notes", "file.write", path="notes-{{ inputs.version }}.md", text="all of it"),
        {"id": "ask", "title": "Ask", "approve": "Publish {{ inputs.version }}?"},
        step("publish", "file.write", path="published-{{ inputs.version }}.md", text="done"),
    ],
}
TIDY: dict[str, Any] = {
    "id": "tidy-up",
    "name": "Tidy up",
    "version": "1.0.0",
    "steps": [
        step("make_folder", "file.mkdir", path="archive-{{ run.id }}"),
        step("keep_copy", "file.write", path="archive-{{ run.id }}/copy.md", text="a copy"),
        step("write_index", "file.append", path="archive-{{ run.id }}", text="x"),
        step("report", "file.write", path="report.md", text="done"),
    ],
}
"""Fails: the index is a folder."""
GUIDED: dict[str, Any] = {
    "id": "write-it",
    "name": "Write it",
    "version": "1.0.0",
    "steps": [
        {
            "id": "write",
            "title": "Write a word",
            "prompt": "Write one word.",
            "output": WORD,
            "checks": [{"rule": "length", "of": "word", "min": 3, "severity": "major"}],
        },
        {"id": "again", "title": "Write another", "prompt": "Write one more word.", "output": WORD},
    ],
}
LOOP: dict[str, Any] = {
    "id": "upload",
    "name": "Upload all",
    "inputs": {"files": {"type": "array"}},
    "steps": [
        {
            "id": "all",
            "title": "Upload all",
            "each": "inputs.files",
            "as": "file",
            "parallel": 20,
            "max": 10_000,
            "steps": [
                step("one", "file.read", path="{{ file }}") | {"title": "Upload {{ file }}", "retry": {"attempts": 1}}
            ],
        }
    ],
}
SOON: dict[str, Any] = {
    "id": "soon",
    "name": "Answer soon",
    "steps": [{"id": "ask", "approve": "Publish soon?\nIt is announced at noon.", "expires": "30d"}],
}
STUCK: dict[str, Any] = {
    "id": "stuck",
    "name": "Undo that fails",
    "steps": [
        step("send", "value.set", value="sent")
        | {"effect": "compensatable", "undo": {"tool": "file.read", "args": {"path": "gone.md"}}},
        step("fail", "file.read", path="gone.md"),
    ],
}
CALLS: dict[str, Any] = {"id": "calls", "name": "Call a server", "steps": [step("look", "good.look", number=1)]}
CALLS_ILL: dict[str, Any] = {
    "id": "calls-ill",
    "name": "Call a server that is ill",
    "on_failure": "stop",
    "steps": [step("look", "ill.look", number=1) | {"retry": {"attempts": 1}}],
}
TOOL_SERVER = Path(__file__).parents[3] / "bench" / "peers" / "tool_server.py"
SERVERS: dict[str, dict[str, Any]] = {
    "good": {"command": sys.executable, "args": [str(TOOL_SERVER)]},
    "broken": {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"], "start_timeout": "5s"},
}


@dataclass
class World:
    """A server whose project has something on every page, and the ids of its runs."""

    console: LiveConsole
    runs: dict[str, str]

    def __getitem__(self, name: str) -> str:
        return self.runs[name]


def started(script: httpx.Client, plan: dict[str, Any] | str, **inputs: Any) -> str:
    """A run that was started, and works or waits."""
    named = {"workflow": plan} if isinstance(plan, str) else {"definition": plan}
    answer = script.post("/api/v1/runs", json={**named, "inputs": inputs})
    assert answer.status_code == 201, answer.text
    run: str = answer.json()["run"]
    until(lambda: script.get(f"/api/v1/runs/{run}").json()["status"] != "running", within_s=LONG_S)
    return run


def act(script: httpx.Client, run: str, action: str, **more: Any) -> None:
    """Do to a run what a person would, from a script."""
    answer = script.post(f"/api/v1/runs/{run}/{action}", json={"reason": f"a script says {action}", **more})
    assert answer.status_code == 200, answer.text


def answered(script: httpx.Client, run: str, answer: str, step: str = "ask") -> None:
    """Answer a question from a script, having looked at it."""
    path = f"/api/v1/approvals/{run}/{step}"
    body = {"answer": answer, "reason": f"a script says {answer}", "digest": script.get(path).json()["digest"]}
    assert script.post(path, json=body).status_code == 200


def is_over(script: httpx.Client, run: str) -> str:
    """Wait until handrail itself has nothing to do for a run: its status then."""

    def resting() -> str | None:
        status: str = script.get(f"/api/v1/runs/{run}").json()["status"]
        return None if status in {"running", "compensating"} else status

    status: str = until(resting)
    return status


@contextmanager
def project(folder: Path, *, config: str = "", **servers: dict[str, Any]) -> Iterator[LiveConsole]:
    """A server of a project with three workflows of its own and two tool servers, one of which does not start."""
    shell = Shell(folder)
    shell.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    (shell.home / "tools.json").write_text(json.dumps({"mcpServers": {**SERVERS, **servers}}), encoding="utf-8")
    for workflow in (RELEASE, TIDY, GUIDED):
        shell.write(json.dumps(workflow), f".handrail/workflows/{workflow['id']}.yaml")
    shell.write("x", "there.md")
    shell.trust()
    with serving(folder, config=config) as console:
        yield console


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """Everything at once: a run in every state, plans, tool servers that work and that don't."""
    with ill_server() as url, project(folder, ill={"url": f"{url}/mcp"}) as console, console.script() as script:
        runs = _runs(script)
        started(script, CALLS_ILL)
        httpx.post(f"{url}/mood", content="ill", trust_env=False)
        for _ in range(TRIPS_AFTER):
            runs["broke"] = started(script, CALLS_ILL)
        with console.shell.process("db", "archive", runs["archived"]) as archiving:
            assert archiving.end()[0] == 0
        yield World(console, runs)


@contextmanager
def ill_server() -> Iterator[str]:
    """A tool server over HTTP that can be made ill: its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with Process([sys.executable, str(TOOL_SERVER), "http", str(port)], Path.cwd()):

        def answers() -> bool:
            try:
                return httpx.get(f"{url}/mood", trust_env=False).is_success
            except httpx.ConnectError:
                return False

        until(answers)
        yield url


def _runs(script: httpx.Client) -> dict[str, str]:
    runs = {
        name: started(script, "release", version=name) for name in ("asks", "1.0.0", "2.0.0", "paused", "cancelled")
    }
    answered(script, runs["1.0.0"], "approve")
    answered(script, runs["2.0.0"], "reject")
    for name, action in (("paused", "pause"), ("cancelled", "cancel")):
        act(script, runs[name], action)
    runs["completed"] = runs.pop("1.0.0")
    runs["failed"], runs["undone"] = started(script, "tidy-up"), started(script, "tidy-up")
    act(script, runs["undone"], "compensate")
    runs["guided"], runs["written"] = started(script, "write-it"), started(script, "write-it")
    submit(script, runs["guided"], "write", word="x")
    chosen = {"decision": "One syllable", "reason": "It is enough.", "alternatives": ["a sentence"]}
    assert script.post(f"/api/v1/runs/{runs['guided']}/decision", json=chosen).status_code == 200
    submit(script, runs["written"], "write", word="x")
    submit(script, runs["written"], "write", word="handrail")
    submit(script, runs["written"], "again", word="rail")
    files = ["there.md"] * 36 + [f"gone-{number}.md" for number in range(4)]
    runs["loop"] = started(script, LOOP, files=files)
    runs["archived"] = started(script, LOOP, files=["there.md"])
    runs["stuck"] = started(script, STUCK)
    act(script, runs["stuck"], "compensate")
    runs["calls"] = started(script, CALLS)
    runs["soon"] = started(script, SOON)
    plan = script.post("/api/v1/plans", json={"plan": {**TIDY, "id": "a-plan", "name": "A plan"}})
    assert plan.status_code == 201, plan.text
    for name in ("completed", "undone", "written", "stuck"):
        is_over(script, runs[name])
    return runs


def submit(script: httpx.Client, run: str, step: str, **output: Any) -> None:
    """Hand in what a step asked for."""
    answer = script.post(f"/api/v1/runs/{run}/submit", json={"step": step, "output": output})
    assert answer.status_code == 200, answer.text
