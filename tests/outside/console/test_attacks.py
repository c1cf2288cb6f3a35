"""Attacks on the console in a real browser: markup in every text, pages of other origins that use a person's session.

What needs no browser is in tests/interfaces/http/test_getting_in.py."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from interfaces.http.live_console import LiveConsole
from outside.console.person import Person, person
from outside.console.world import RELEASE, WORD, act, project, started, step

MARKUP = (
    '"><img src=x onerror=pwned()><svg onload=pwned()></svg><script>pwned()</script><a href="javascript:pwned()">x</a>'
)
HOSTILE: dict[str, Any] = {
    "id": "hostile",
    "name": f"Name {MARKUP}",
    "description": f"Description {MARKUP}",
    "category": "<img src=x onerror=pwned()>",
    "tags": ["<img src=x onerror=pwned()>"],
    "guidance": [f"Guidance {MARKUP}"],
    "preconditions": [f"Precondition {MARKUP}"],
    "inputs": {"text": {"type": "string", "description": f"Input {MARKUP}", "default": MARKUP}},
    "steps": [
        step("say", "value.set", value={f"key {MARKUP}": "{{ inputs.text }}"}) | {"title": f"Say {MARKUP}"},
        {
            "id": "write",
            "title": f"Write {MARKUP}",
            "prompt": f"Prompt {MARKUP}",
            "role": f"Role {MARKUP}",
            "output": WORD,
            "checks": [{"rule": "length", "of": "word", "min": 400, "severity": "major", "message": f"Check {MARKUP}"}],
        },
        {"id": "ask", "title": f"Ask {MARKUP}", "approve": "Question {{ inputs.text }}"},
        step("read", "file.read", path="no/{{ inputs.text }}") | {"title": f"Read {MARKUP}"},
    ],
}
PAGES = (
    "/",
    "/runs",
    "/runs?view=grid&workflow=hostile",
    "/runs?q=%3Cimg%20src%3Dx%20onerror%3Dpwned()%3E",
    "/runs/{run}",
    "/runs/{run}/steps/say",
    "/runs/{run}/steps/write",
    "/runs/{run}/steps/read",
    "/runs/{run}/graph",
    "/runs/{run}/timeline",
    "/runs/{run}/journal?show=all",
    "/runs/{run}/values?a=say&b=write",
    "/runs/{run}/definition",
    "/runs/{run}/do/retry?step=read",
    "/approvals",
    "/approvals/{other}/ask",
    "/library/hostile/start",
    "/plans/hostile-plan",
    "/proof",
    "/insight?workflow=hostile",
    "/settings/clients",
    "/settings/projects",
    "/settings/about",
    "/no/%3Cimg%20src=x%20onerror=pwned()%3E",
)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory, unmeasured_servers: None) -> Iterator[LiveConsole]:
    # The name of a folder is the name of its project.
    with project(tmp_path_factory.mktemp("attacks") / "shop<img src=x onerror=pwned()>") as live:
        yield live


@pytest.fixture(scope="module")
def script(console: LiveConsole) -> Iterator[httpx.Client]:
    with console.script() as client:
        yield client


def hostile(console: LiveConsole, script: httpx.Client) -> dict[str, str]:
    """Two runs whose every text is an attack: one that waits for an answer, one that failed."""
    console.shell.write(json.dumps(HOSTILE), ".handrail/workflows/hostile.yaml")
    console.shell.trust()
    goal = {"definition": HOSTILE, "goal": f"Goal {MARKUP}"}
    runs = {"run": started(script, HOSTILE), "other": script.post("/api/v1/runs", json=goal).json()["run"]}
    for run in runs.values():
        for word in ("short", MARKUP * 4):
            called(console, "workflow_next", run=run, step="write", output={"word": word}, note=MARKUP, agent="<b>eve")
        called(console, "record_decision", run=run, decision=MARKUP, reason=MARKUP, alternatives=[MARKUP])
    path = f"/api/v1/approvals/{runs['run']}/ask"
    body = {"answer": "approve", "reason": MARKUP, "digest": script.get(path).json()["digest"]}
    assert script.post(path, json=body).status_code == 200
    plan = {**HOSTILE, "id": "hostile-plan"}
    assert script.post("/api/v1/plans", json={"plan": plan, "note": MARKUP}).status_code == 201
    return runs


def called(console: LiveConsole, name: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers to an agent whose name is an attack, too."""
    token = (console.shell.home / "http-token").read_text(encoding="utf-8").strip()
    accept = "application/json, text/event-stream"
    with console.nobody(authorization=f"Bearer {token}", accept=accept) as agent:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": MARKUP, "version": "1"}}
        hello = agent.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
        agent.headers["mcp-session-id"] = hello.headers["mcp-session-id"]
        agent.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        said = agent.post("/mcp", json=call).text
    lines = [line.removeprefix("data:") for line in said.splitlines() if line.startswith(("data:", "{"))]
    answer: dict[str, Any] = json.loads(lines[-1])["result"]["structuredContent"]
    assert "code" not in answer, answer
    return answer


def test_no_text_of_anybody_becomes_markup(browser: Browser, console: LiveConsole, script: httpx.Client) -> None:
    runs = hostile(console, script)
    with person(browser, console) as ada:
        ada.page.add_init_script("window.pwned = () => { window.isPwned = true; }")
        for path in PAGES:
            ada.go(path.format(**runs))
            if "{" in path or "hostile" in path or "settings" in path:
                ada.sees("onerror=pwned()")  # the text itself is there, as text
            require_text_only(ada)
        act(script, runs["run"], "skip", step="read", reason=MARKUP)
        ada.go("/")
        ada.press("Control+k")
        ada.page.keyboard.type("onerror")
        expect(ada.page.get_by_role("option").first).to_contain_text("onerror")
        require_text_only(ada)
        for path in (
            f"/runs/{runs['run']}.json",
            "/index.json",
            "/library/hostile.json",
            f"/api/v1/runs/{runs['run']}/story",
        ):
            ada.page.goto(console.url + path)
            require_text_only(ada)
        not_found = "Failed to load resource: the server responded with a status of 404"
        assert [one for one in ada.complaints if not one.startswith(not_found)] == []
        assert ada.foreign == []


def require_text_only(ada: Person) -> None:
    found = (
        "() => [window.isPwned, document.querySelectorAll('img, [onerror], [onload], [href^=\"javascript:\"]').length]"
    )
    assert ada.page.evaluate(found) == [None, 0], ada.path


# --- pages of other origins ---------------------------------------------------------------------------------


FORGERY = Path(__file__).with_name("forgery.html")


@contextmanager
def kittens(console: LiveConsole, run: str) -> Iterator[int]:
    """Somebody else's server on this machine."""
    page = FORGERY.read_text(encoding="utf-8").replace("CONSOLE", console.url).replace("RUN", run).encode()

    class Kittens(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Kittens) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_of_another_origin_neither_reads_nor_writes_nor_frames(
    browser: Browser, console: LiveConsole, script: httpx.Client, host: str
) -> None:
    run = started(script, RELEASE, version="1.0.0")
    before = script.get(f"/api/v1/runs/{run}").json()["n"]
    with kittens(console, run) as port, person(browser, console) as ada:
        ada.page.goto(f"http://{host}:{port}/")
        outcome = ada.page.evaluate("() => window.result")
        # Sent, perhaps: but refused, and its answer can't be read.
        assert outcome.pop("simple") in ("opaque", "blocked")
        assert set(outcome.values()) == {"blocked"}, outcome
        framed = [frame.url for frame in ada.page.frames if frame != ada.page.main_frame and frame.name != "frame"]
        assert framed == ["chrome-error://chromewebdata/"]
        assert script.get(f"/api/v1/runs/{run}").json()["n"] == before
        ada.go(f"/runs/{run}")  # the person themselves is still in
        expect(ada.page.locator(".run-head .pill")).to_have_text("Waiting for approval")
