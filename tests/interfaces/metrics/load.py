"""A scripted load that makes every kind of figure move: runs that complete, fail, are undone, cancelled, refused."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from handrail.assembly.opening import open_reader
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import STORE_STREAM, Entry
from handrail.domain.journal.store_event import BreakerOpened
from handrail.settings import read_settings
from interfaces.http.live_console import LiveConsole
from interfaces.mcp.http.live_server import ACCEPT, INITIALIZE
from interfaces.shell import until

MORTAL = Path(__file__).parents[1] / "health" / "mortal_server.py"
WRITE = {"tool": "file.write", "args": {"path": "{{ inputs.name }}.txt", "text": "hi"}}
NAMED = {"name": {"type": "string", "default": "x"}}
QUICK = {"attempts": 3, "first": "1ms", "max": "2ms"}
BROKEN = {"id": "read", "tool": "file.read", "args": {"path": "not-there.txt"}}


def plan(name: str, *steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": name, "version": "1.0.0", "inputs": NAMED, "steps": list(steps), **more}


COMPLETES = plan("completes", {"id": "write", **WRITE}, {"id": "set", "tool": "value.set", "args": {"value": 1}})
FAILS = plan("fails", BROKEN, on_failure="stop")
IS_UNDONE = plan("is-undone", {"id": "write", **WRITE}, BROKEN, on_failure="compensate")
RETRIES = plan(
    "retries",
    {"id": "ask", "tool": "http.request", "args": {"url": "http://127.0.0.1:9/"}, "retry": QUICK},
    on_failure="stop",
)
CHECKED = plan(
    "checked",
    {
        "id": "say",
        "prompt": "Say a word.",
        "checks": [{"rule": "length", "of": "word", "min": 3}, {"rule": "file_exists", "path": "plan.txt"}],
    },
)
ASKS = plan("asks", {"id": "go", "approve": "Go?"})
CALLS_SERVER = plan(
    "calls-server",
    {"id": "when", "prompt": "Say when."},
    {
        "id": "make",
        "tool": "git.create_branch",
        "args": {"name": "x"},
        "idempotent": True,
        "retry": {"attempts": 8, "first": "5ms", "max": "10ms"},
    },
    on_failure="stop",
)


def declare_server(folder: Path) -> Path:
    """A tool server of the home; while the file that is returned exists, it ends at once."""
    gone = folder / "gone"
    declared = {"git": {"command": sys.executable, "args": [str(MORTAL), str(folder / "branches"), str(gone)]}}
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    (home / "tools.json").write_text(json.dumps({"mcpServers": declared}), encoding="utf-8")
    (folder / "plan.txt").write_text("here", encoding="utf-8")
    (home / "config.toml").write_text('[http]\nallow = ["127.0.0.1"]\n', encoding="utf-8")
    return gone


def put_load_on(console: LiveConsole, gone: Path, *, rounds: int = 2) -> None:
    """All of it, several times."""
    with console.script() as script:
        for number in range(rounds):
            for one in (COMPLETES, FAILS, IS_UNDONE):
                console.started(one, inputs={"name": f"n{number}"})
            _submit(script, console.started(CHECKED), "say", {"word": "ab"}, {"word": "abc"}, {"word": "abcd"})
            _answer(script, console.started(ASKS), "approve")
            _answer(script, console.started(ASKS), "reject")
            cancelled = console.started(ASKS)
            answer = script.post(f"/api/v1/runs/{cancelled}/cancel", json={"reason": "enough"})
            assert answer.status_code == 200, answer.text
        console.started(RETRIES)  # once: more failures would open the breaker of that address
        console.started(ASKS)  # this one stays open
        run = console.started(CALLS_SERVER)
        gone.touch()
        _submit(script, run, "when", {})
        until(lambda: any(isinstance(one.event, BreakerOpened) for one in journal_of(console)))
        gone.unlink()
        until(lambda: script.get(f"/api/v1/runs/{run}").json()["status"] == "completed", within_s=60)
    _talk_as_agent(console)
    assert console.shell.json("journal", "verify")["ok"]


def journal_of(console: LiveConsole) -> list[Entry]:
    """Every event of the store but its own, as another process reads it."""

    async def read() -> list[Entry]:
        settings = read_settings({"home": str(console.shell.home), "project": str(console.shell.folder)}, {})
        async with open_reader(settings) as look:
            return [entry_of(one.record) async for batch in look.store.scan() for one in batch]

    return [entry for entry in asyncio.run(read()) if entry.stream != STORE_STREAM]


def _submit(script: Any, run: str, step: str, *outputs: dict[str, Any]) -> None:
    for output in outputs:
        answer = script.post(f"/api/v1/runs/{run}/submit", json={"step": step, "output": output})
        assert answer.status_code in {200, 409}, answer.text


def _answer(script: Any, run: str, answer: str) -> None:
    place = f"/api/v1/approvals/{run}/go"
    digest = script.get(place).json()["digest"]
    sent = script.post(place, json={"answer": answer, "reason": "tried", "digest": digest})
    assert sent.status_code == 200, sent.text


def _talk_as_agent(console: LiveConsole) -> None:
    """Three calls over MCP: one that is answered, one that is refused, one of a tool that there is not."""
    token = (console.shell.home / "http-token").read_text(encoding="utf-8").strip()
    with console.nobody(authorization=f"Bearer {token}", **ACCEPT) as agent:
        session = agent.post("/mcp", json=INITIALIZE).headers["mcp-session-id"]
        agent.headers["mcp-session-id"] = session
        agent.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        calls: list[tuple[str, dict[str, str]]] = [("status", {}), ("status", {"run": "run_nothere1"}), ("conjure", {})]
        for number, (name, arguments) in enumerate(calls, start=2):
            asked = {"name": name, "arguments": arguments}
            call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": asked}
            answer = agent.post("/mcp", json=call)
            assert answer.status_code == 200, answer.text
