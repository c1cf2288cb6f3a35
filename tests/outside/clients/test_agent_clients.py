"""The agents' own programs, as people have them: each lists handrail as connected, once `handrail init` has put it in.

No model is needed for that. Each has a home folder of its own, and little of this process's environment."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from outside.nodejs import Node, installed
from outside.processes import PATIENCE_S, Place
from outside.story import TOOLS, stage

PASSED_ON = ("PATH", "LANG", "TEMP", "SYSTEMROOT", "COMSPEC", "PATHEXT")
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "NO_COLOR": "1",
}
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Person:
    """A user with a home folder, in a project."""

    home: Path
    place: Place

    @property
    def environment(self) -> dict[str, str]:
        known = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        return {**known, **QUIET, "HOME": str(self.home), "USERPROFILE": str(self.home)}

    async def runs(self, *command: str, more: Mapping[str, str] | None = None) -> str:
        """What a command says, on both its outputs; it must end well."""
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**self.environment, **(more or {})},
            cwd=self.place.project,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            said, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        text = COLOURS.sub("", said.decode())
        assert process.returncode == 0, text
        return text

    async def enrols(self, client: str) -> None:
        """Let handrail write itself into a client's settings."""
        words = ("-m", "handrail", "init", "--client", client, "--scope", "user", "--yes")
        own = {"HANDRAIL_HOME": str(self.place.home)}
        await self.runs(sys.executable, *words, more=own)


@pytest.fixture
def person(tmp_path: Path) -> Person:
    home = tmp_path / "person"
    home.mkdir()
    return Person(home, stage(tmp_path))


def program(node: Node, client: str, pattern: str) -> str:
    """A client's program; the test is left out where its makers have none for this platform in the lock."""
    found = node.found(pattern)
    if found is None:
        pytest.skip(f"not judged by {client}: package-lock.json has no program of it for this platform")
    return str(found)


async def test_claude_code_lists_handrail_as_connected(person: Person) -> None:
    claude = program(installed("Claude Code"), "Claude Code", "@anthropic-ai/claude-code-*/claude*")
    await person.enrols("claude")
    said = await person.runs(claude, "mcp", "list")
    assert re.search(r"^handrail: .* Connected$", said, re.MULTILINE), said


async def test_gemini_lists_handrail_as_connected(person: Person) -> None:
    node = installed("Gemini CLI")
    await person.enrols("gemini")
    trusted = person.home / ".gemini" / "trustedFolders.json"
    trusted.write_text(json.dumps({str(person.place.project): "TRUST_FOLDER"}), encoding="utf-8")
    said = await person.runs(*node.script("@google/gemini-cli/bundle/gemini.js"), "mcp", "list")
    assert re.search(r"handrail: .* - Connected", said), said


async def test_opencode_lists_handrail_as_connected(person: Person) -> None:
    opencode = program(installed("opencode"), "opencode", "opencode-*/bin/opencode*")
    await person.enrols("opencode")
    said = await person.runs(opencode, "mcp", "list")
    assert re.search(r"✓ handrail\s+connected", said), said


async def test_codex_sees_every_tool_of_handrail(person: Person) -> None:
    codex = program(installed("Codex"), "Codex", "@openai/codex-*/vendor/*/bin/codex*")
    await person.enrols("codex")
    listed = await person.runs(codex, "mcp", "list")
    assert re.search(r"^handrail .* enabled", listed, re.MULTILINE), listed
    (server,) = await _codex_status(codex, person)
    assert (server["name"], server["serverInfo"]["name"]) == ("handrail", "handrail")
    assert server["tools"].keys() == TOOLS


async def _codex_status(codex: str, person: Person) -> Sequence[Mapping[str, Any]]:
    """What Codex, asked over its own protocol, says of its tool servers: `mcp list` does not start them."""
    process = await asyncio.create_subprocess_exec(
        *(codex, "app-server"),
        env=person.environment,
        cwd=person.place.project,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=4_000_000,
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            about = {"name": "test", "title": "test", "version": "1"}
            await _codex_asked(process, 1, "initialize", clientInfo=about)
            status = await _codex_asked(process, 2, "mcpServerStatus/list")
    finally:
        process.kill()
        await process.wait()
    servers: Sequence[Mapping[str, Any]] = status["data"]
    return servers


async def _codex_asked(process: asyncio.subprocess.Process, number: int, method: str, **params: Any) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"id": number, "method": method, "params": params}).encode() + b"\n")
    async for line in process.stdout:
        message = json.loads(line)
        if message.get("id") == number:
            return message["result"]
    raise AssertionError("Codex has ended")
