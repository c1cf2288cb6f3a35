"""A yard: one real project with its environment, a server over it, and an agent that submits what it did there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from interfaces.mcp.surface.agent import Place, data_of, joined
from outside.debian import bubblewrap
from rules.on_project import git, write

PATIENCE_S = 1200
IGNORED = "/.venv/\n/venv/\n/node_modules/\n/.cache/\n__pycache__/\n*.egg-info/\n/.handrail-run/\n"
KEPT_WHEN_RESET = (".venv", "venv", "node_modules", ".cache")
ROOT = "$ROOT"
"""Stands in the parameters of checks for the folder of the project."""

Checks = Sequence[Mapping[str, Any]]


class Yard:
    """A project in a folder of its own, and what an agent does to it."""

    def __init__(self, home: Path, name: str) -> None:
        self.home = home
        self.root = home / "work" / name
        self.root.mkdir(parents=True)
        self.top = self.root
        """The folder of the repository."""
        self.base = ""

    def write(self, files: Mapping[str, str]) -> None:
        write(self.root, files)

    def text(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that must be there."""
        text = self.text(path)
        assert old in text, f"{old!r} is not in {path}"
        self.write({path: text.replace(old, new)})

    def append(self, path: str, text: str) -> None:
        self.write({path: self.text(path) + text})

    def prepend(self, path: str, text: str) -> None:
        self.write({path: text + self.text(path)})

    def delete(self, path: str) -> None:
        (self.root / path).unlink()

    def git(self, *words: str) -> str:
        return git(self.root, *words)

    def commit(self, message: str = "work") -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def begin(self) -> None:
        """Commit all that there is: where every case starts."""
        write(self.top, {".gitignore": IGNORED})
        git(self.top, "init", "-q", "-b", "main")
        self.commit("first")
        self.base = self.git("rev-parse", "HEAD")

    def reset(self) -> None:
        """Everything as it was at the beginning."""
        if (self.top / ".git" / "info" / "sparse-checkout").exists():
            self.git("sparse-checkout", "disable")
            (self.top / ".git" / "info" / "sparse-checkout").unlink()
        self.git("checkout", "-q", "-f", "-B", "main", self.base)
        self.git("reset", "-q", "--hard", self.base)
        for path in self.root.glob("venv/lib/*/site-packages/zzz-*.pth"):  # git does not know what is in there
            path.unlink()
        kept = [word for name in KEPT_WHEN_RESET for word in ("-e", name)]
        self.git("clean", "-fdxq", "-f", *kept)
        (self.top / ".git" / "info" / "exclude").unlink(missing_ok=True)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One submission: what the agent does between getting the step and submitting it."""

    name: str
    project: str
    is_honest: bool
    checks: Checks
    work: Callable[[Yard], object]
    before: Callable[[Yard], object] = field(default=lambda _: None)
    """What the project is like when the run starts, besides what it always is."""
    quick: bool = False
    """Whether it is tried in every run of the tests."""

    @property
    def title(self) -> str:
        return f"{'honest' if self.is_honest else 'lying'}: {self.project}: {self.name}"


@dataclass(frozen=True)
class Verdict:
    """What came of a case."""

    case: Case
    accepted: bool
    words: str

    @property
    def is_right(self) -> bool:
        return self.accepted is self.case.is_honest


@asynccontextmanager
async def agent_at(yard: Yard, cases: Sequence[Case]) -> AsyncIterator[Callable[[Case], Any]]:
    """An agent that submits cases, with default settings; only where bubblewrap is may have to be said."""
    (yard.home / "handrail").mkdir()
    place = Place(yard.home / "handrail")
    place.project = yard.root
    home = place.home
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f'[shell]\nbubblewrap = "{bubblewrap()}"\n', encoding="utf-8")
    names = _written(place, cases)
    yard.begin()

    async with place.serving(checks="run") as server, joined(server) as agent:

        async def submitted(case: Case) -> Verdict:
            yard.reset()
            case.before(yard)
            if yard.git("status", "--porcelain"):
                yard.commit("the state at the start")
            started = await agent.call("workflow_next", workflow=names[_key(case.checks)])
            case.work(yard)
            arguments = {"run": started["run"], "step": "do", "output": {"done": True}}
            said = await agent.client.call_tool("workflow_next", arguments, read_timeout_seconds=PATIENCE_S)
            answer = data_of(said)
            words = "; ".join(f"{one['rule']}: {one['message']}" for one in answer.get("findings", [])[:4])
            return Verdict(case, answer.get("accepted") is True, words or str(answer)[:300])

        yield submitted


def _key(checks: Checks) -> str:
    return json.dumps(list(checks), sort_keys=True)


def _written(place: Place, cases: Sequence[Case]) -> dict[str, str]:
    """A workflow for each list of checks."""
    found: dict[str, str] = {}
    for case in cases:
        if _key(case.checks) not in found:
            identity = f"corpus-{len(found)}"
            checks = json.loads(_key(case.checks).replace(ROOT, str(place.project)))
            step = {"id": "do", "prompt": "Do the work.", "checks": checks}
            place.workflow({"id": identity, "version": "1.0.0", "steps": [step]})
            found[_key(case.checks)] = identity
    return found


def copied(source: Path, target: Path) -> None:
    """A copy whose files are the same on disk, made quickly."""
    shutil.copytree(source, target, symlinks=True, copy_function=os.link)


def clean_shell(monkeypatch: pytest.MonkeyPatch, home: Path, *folders: Path) -> None:
    """The shell of a developer who has only this home folder, and these programs besides the system's."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", ":".join([*map(str, folders), "/usr/local/bin:/usr/bin:/bin"]))
    names = ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "PYENV_VERSION", "PYTHONPATH")
    for name in (*names, "XDG_DATA_HOME", "XDG_CACHE_HOME", "PYTHONUSERBASE", "GOPATH", "GOMODCACHE", "GOCACHE"):
        monkeypatch.delenv(name, raising=False)
