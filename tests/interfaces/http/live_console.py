"""A real `handrail serve` process for tests, and the browser and the script that talk to it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from interfaces.shell import Process, Shell, until

PATIENCE_S = 60.0
PLAN: dict[str, Any] = {
    "id": "ship-it",
    "name": "Ship it",
    "version": "1.0.0",
    "inputs": {"name": {"type": "string", "default": "x"}},
    "steps": [
        {"id": "note", "tool": "file.write", "args": {"path": "{{ inputs.name }}.txt", "text": "hi"}},
        {"id": "ask", "approve": "Ship {{ inputs.name }}?"},
        {"id": "ship", "tool": "file.write", "args": {"path": "shipped.txt", "text": "done"}},
    ],
}
PROMPTED: dict[str, Any] = {
    "id": "write-it",
    "name": "Write it",
    "version": "1.0.0",
    "steps": [
        {
            "id": "write",
            "prompt": "Write a word.",
            "output": {"type": "object", "required": ["word"], "properties": {"word": {"type": "string"}}},
            "checks": [{"rule": "length", "of": "word", "min": 3}],
        }
    ],
}


@dataclass
class LiveConsole:
    """A running server: its address, its home, and the ways in."""

    shell: Shell
    process: Process
    url: str

    @property
    def port(self) -> int:
        return httpx.URL(self.url).port or 0

    @property
    def key(self) -> str:
        return (self.shell.home / "console-key").read_text(encoding="utf-8").strip()

    def nobody(self, **headers: str) -> httpx.Client:
        """A client without any credentials."""
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE_S, trust_env=False)

    def script(self, **headers: str) -> httpx.Client:
        """A script with the key."""
        return self.nobody(authorization=f"Bearer {self.key}", **headers)

    def ticket(self) -> str:
        """The link that `handrail open` prints."""
        with self.script() as script:
            link: str = script.post("/api/v1/ticket", json={}).json()["url"]
        return link

    @contextmanager
    def browser(self) -> Iterator[httpx.Client]:
        """A browser that came in by a link: it has the cookie and the page key, and says where its page is from."""
        with entered(self, self.ticket()) as browser:
            yield browser

    def started(self, plan: dict[str, Any] = PLAN, **more: Any) -> str:
        """A run that was started by a script, and waits."""
        with self.script() as script:
            answer = script.post("/api/v1/runs", json={"definition": plan, **more})
            assert answer.status_code == 201, answer.text
            run: str = answer.json()["run"]
            until(lambda: script.get(f"/api/v1/runs/{run}").json()["status"] != "running")
        return run


@contextmanager
def entered(console: LiveConsole, link: str) -> Iterator[httpx.Client]:
    """A browser that came in by a link: it has the cookie and the page key, and says where its page is from."""
    with console.nobody(origin=console.url, **{"sec-fetch-site": "same-origin"}) as browser:
        answer = browser.get(link)
        assert answer.status_code == 303, answer.text
        found = re.fullmatch(r"/(?:\?project=prj_\w+)?#key=([\w-]{40,})", answer.headers["location"])
        assert found, answer.headers["location"]
        browser.headers["x-handrail-key"] = found[1]
        yield browser


@contextmanager
def serving(folder: Path, *words: str, config: str = "") -> Iterator[LiveConsole]:
    """A server of its own home and project, on a free port."""
    folder.mkdir(parents=True, exist_ok=True)
    shell = Shell(folder)
    if config:
        shell.configure(config)
    with shell.process("serve", "--port", "0", "--json", *words) as process:
        line = process.line()
        assert line, process.end()
        yield LiveConsole(shell, process, json.loads(line)["console"].rstrip("/"))
