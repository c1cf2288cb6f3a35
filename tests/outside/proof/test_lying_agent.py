"""An agent that says "the tests pass" is refused with what they really say; one that fixes the code is accepted.

A real project, real tests in the real sandbox, the whole MCP server, and a proof that holds without the store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.foundation.atomic_file import make_private_folder
from interfaces.mcp.surface.agent import Agent, Place, joined
from outside.debian import bubblewrap

BROKEN = "def add(a, b):\n    return a - b\n"
MENDED = "def add(a, b):\n    return a + b\n"
TEST = "from calc import add\n\n\ndef test_adding():\n    assert add(2, 2) == 4\n"
WORKFLOW = {
    "id": "fix-it",
    "version": "1.0.0",
    "steps": [
        {
            "id": "fix",
            "prompt": "Mend add().",
            "checks": [
                {"rule": "tests_pass", "command": [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]},
                {"rule": "file_contains", "path": "calc.py", "text": "def add"},
            ],
        }
    ],
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    (place.project / "calc.py").write_text(BROKEN, encoding="utf-8")
    (place.project / "test_calc.py").write_text(TEST, encoding="utf-8")
    readable = sorted({sys.prefix, sys.base_prefix, str(Path(sys.executable).resolve().parents[1])})
    config = f'[shell]\nbubblewrap = "{bubblewrap()}"\nread = {json.dumps(readable)}\n'
    make_private_folder(place.home)
    (place.home / "config.toml").write_text(config, encoding="utf-8")
    place.workflow(WORKFLOW)
    return place


async def handed_in(agent: Agent, run: str) -> dict[str, Any]:
    return await agent.call("workflow_next", run=run, step="fix", output={"claim": "all tests pass"})


def proof(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command on another machine: no home, no store."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HANDRAIL_")}
    environment["HANDRAIL_HOME"] = str(folder / "nowhere")
    line = [sys.executable, "-m", "handrail", *words]
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False)


async def test_a_lie_is_refused_with_the_real_result_and_fixed_code_is_proven(place: Place, tmp_path: Path) -> None:
    async with place.serving(checks="run") as server, joined(server) as agent:
        started = await agent.call("workflow_next", workflow="fix-it")
        run = started["run"]
        lied = await handed_in(agent, run)
        again = await handed_in(agent, run)
        (place.project / "calc.py").write_text(MENDED, encoding="utf-8")
        true = await handed_in(agent, run)
        seen = await agent.call("status", run=run, detail="full")
        page = await agent.call("query_ledger", run=run, kinds=["output_refused", "step_completed"])

    assert (lied["accepted"], lied["tries"], again["tries"]) == (False, 1, 2)
    [found] = lied["findings"]
    assert found["rule"] == "tests_pass"
    assert found["where"].startswith("test_calc.py:")
    assert "AssertionError" in found["message"]
    assert again["findings"] == lied["findings"]
    assert true["accepted"]
    assert true["status"] == "completed"
    [step] = seen["steps"]
    assert (step["proof"], step["checks"]) == ("verified", ["tests_pass", "file_contains"])

    refused, repeated, done = (event["data"] for event in page["events"])
    assert [one["evidence"][0].get("cached", False) for one in (refused, repeated, done)] == [False, True, False]
    assert [one["evidence"][0]["passed"] for one in (refused, repeated, done)] == [False, False, True]
    assert "add(2, 2)" in refused["evidence"][0]["excerpt"]
    evidence = done["evidence"][0]
    assert (evidence["exit"], evidence["counts"]["passed"]) == (0, 1)
    assert evidence["ran"][1:3] == ["-m", "pytest"]

    bundle = tmp_path / "fix.proof"
    made = proof(tmp_path, "--home", str(place.home), "journal", "export", run, "--bundle", str(bundle))
    assert made.returncode == 0, made.stderr
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(place.project, elsewhere)
    checked = proof(elsewhere, "journal", "verify", str(bundle), "--project", ".", "--json")
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["same_project"] == ["fix: tests_pass", "fix: file_contains"]
    content = bytearray(bundle.read_bytes())
    content[len(content) // 2] ^= 1
    bundle.write_bytes(content)
    assert proof(elsewhere, "journal", "verify", str(bundle)).returncode == 7
    assert not (elsewhere / "nowhere").exists()
