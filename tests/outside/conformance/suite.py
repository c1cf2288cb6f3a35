"""Running the conformance suite against the fixture, and reading what it found."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outside.nodejs import Node

TESTS = Path(__file__).parents[2]
SUITE = "@modelcontextprotocol/conformance/dist/index.js"
RUN_S = 150.0
END_S = 20.0

_folder = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
_unscored = re.compile(r"^  \S (?P<scenario>[\w-]+) \((?P<why>[\w-]+)\)$", re.MULTILINE)


@dataclass(frozen=True)
class Check:
    """One thing that the suite looked at."""

    scenario: str
    id: str
    status: str
    message: str

    def __str__(self) -> str:
        return f"{self.scenario} / {self.id}: {self.status} {self.message}"


@dataclass(frozen=True)
class Judgement:
    """What a run of the suite found."""

    exit: int
    said: str
    checks: Sequence[Check]

    @property
    def unscored(self) -> Mapping[str, str]:
        """Scenarios that were run though the revision does not require them, and why it does not."""
        return {found["scenario"]: found["why"] for found in _unscored.finditer(self.said)}

    @property
    def scored(self) -> set[str]:
        """Scenarios that the revision requires."""
        return {check.scenario for check in self.checks} - self.unscored.keys()

    @property
    def passed(self) -> set[str]:
        """Scenarios in which something was proven, and nothing was missed."""
        proven = {check.scenario for check in self.checks if check.status == "SUCCESS"}
        return proven - {check.scenario for check in self.checks if check.status == "FAILURE"}

    @property
    def flaws(self) -> str:
        """What failed, line by line; the end of what the suite said if no check did."""
        return "\n".join(map(str, self.having("FAILURE"))) or self.said[-2000:]

    def having(self, status: str) -> list[Check]:
        """All checks that ended so."""
        return [check for check in self.checks if check.status == status]


def judge(node: Node, revision: str, folder: Path) -> Judgement:
    """Run all scenarios of a revision against the fixture."""
    with fixture_server() as port:
        address = f"http://localhost:{port}/mcp"
        command = [*node.script(SUITE), "server", "--url", address, "--requirements", revision, "-o", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=RUN_S, check=False)
    checks = [check for one in sorted(folder.glob("server-*")) for check in _checks(one)]
    return Judgement(done.returncode, done.stdout + done.stderr, checks)


def _checks(folder: Path) -> Iterator[Check]:
    named = _folder.fullmatch(folder.name)
    assert named is not None, folder.name
    found: list[dict[str, Any]] = json.loads((folder / "checks.json").read_text(encoding="utf-8"))
    for one in found:
        yield Check(named["scenario"], one["id"], one["status"], one.get("errorMessage", ""))


@contextmanager
def fixture_server() -> Iterator[int]:
    """The fixture as a process of its own; the port that it listens on."""
    command = [sys.executable, "-W", "ignore", "-m", "outside.conformance.serve"]
    process = subprocess.Popen(command, cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
        process.communicate(timeout=END_S)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
