"""A world that real tool servers change: a git repository, a database, a knowledge graph and files, side by side.

The effects are read from git, SQLite and the disk, never from handrail. How servers are installed is described
in tool_servers.py."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outside.processes import Place, place_in
from outside.tool_servers import ToolServers
from support import trust_project

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE_S = 60.0
AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
}
SHOP = {"type": "entity", "name": "shop", "entityType": "repository", "observations": ["sells ladders"]}


@dataclass(frozen=True)
class Looks:
    """The world at one moment."""

    branches: tuple[str, ...]
    head: str
    staged: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    graph: frozenset[str]
    files: tuple[str, ...]


@dataclass(frozen=True)
class World:
    """A project whose tools.json declares real servers over real things."""

    place: Place

    @property
    def project(self) -> Path:
        return self.place.project

    @property
    def repository(self) -> Path:
        return self.project / "shop"

    @property
    def database(self) -> Path:
        return self.project / "shop.db"

    @property
    def memory(self) -> Path:
        return self.project / "memory.jsonl"

    def looks(self) -> Looks:
        """What git, SQLite, the graph's file and the disk say."""
        with closing(sqlite3.connect(self.database)) as database:
            rows = tuple(database.execute("select version from releases order by version"))
        graph = self.memory.read_text(encoding="utf-8").splitlines()
        files = (path.relative_to(self.project) for path in self.project.rglob("*") if path.is_file())
        return Looks(
            branches=tuple(self.git("branch", "--format=%(refname:short)").split()),
            head=self.git("symbolic-ref", "--short", "HEAD"),
            staged=tuple(self.git("diff", "--cached", "--name-only").split()),
            rows=rows,
            graph=frozenset(" ".join(_words(json.loads(line))) for line in graph if line),
            files=tuple(sorted(str(file) for file in files if not {".git", ".handrail"} & set(file.parts))),
        )

    def git(self, *words: str) -> str:
        environment = {**os.environ, **AUTHOR, "GIT_CONFIG_GLOBAL": os.devnull}
        command = ["git", "-C", str(self.repository), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()

    def handrail(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`handrail ...` as a process of its own, to its end."""
        command = [sys.executable, "-m", "handrail", *words]
        place = self.place
        return subprocess.run(
            command,
            cwd=place.project,
            env=place.environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
        )

    def json_of(self, *words: str, code: int = 0) -> Any:
        """What a command that ends with this code answers, as data."""
        done = self.handrail(*words, "--json")
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def seen(self, run: str, step: str) -> tuple[str, str]:
        """The option of an approval by somebody who has looked at what is asked."""
        asked = self.json_of("approvals")["approvals"]
        (one,) = [one for one in asked if (one["run"], one["step"]) == (run, step)]
        return "--digest", one["digest"]

    def declare(self, servers: Mapping[str, Any]) -> None:
        declared = json.dumps({"mcpServers": servers}, indent=1)
        (self.project / ".handrail" / "tools.json").write_text(declared, encoding="utf-8")
        trust_project(self.place.home, self.project)

    def write(self, name: str, plan: Mapping[str, Any]) -> str:
        """A plan's file."""
        file = self.project / ".handrail" / name
        file.write_text(json.dumps(plan), encoding="utf-8")
        return str(file)


def _words(line: Mapping[str, Any]) -> list[str]:
    names = ("name",) if line["type"] == "entity" else ("from", "relationType", "to")
    return [str(line[name]) for name in names]


def world_in(folder: Path) -> World:
    """A world as it is before anything is done to it."""
    world = World(place_in(folder))
    (world.project / "drafts").mkdir()
    (world.project / "drafts" / "notes.md").write_text("# 1.2.0\n", encoding="utf-8")
    world.memory.write_text(json.dumps(SHOP) + "\n", encoding="utf-8")
    with closing(sqlite3.connect(world.database)) as database, database:
        database.execute("create table releases (version text primary key)")
    world.repository.mkdir()
    world.git("init", "--quiet", "--initial-branch=main")
    (world.repository / "README.md").write_text("Ladders.\n", encoding="utf-8")
    world.git("add", "README.md")
    world.git("commit", "--quiet", "--message", "Sell ladders")
    return world


def declared(world: World, servers: ToolServers) -> dict[str, Any]:
    """The servers of a world: what the example says of them, and where they are installed here.

    The project is in every command line, needed or not, so that its servers can be distinguished from all others."""
    said: dict[str, Any] = json.loads((EXAMPLES / "prepare-release" / "tools.json").read_text(encoding="utf-8"))
    lines = {
        "git": command(servers.git(world.repository)),
        "sqlite": command(servers.sqlite(world.database)),
        "memory": command([*servers.memory(), str(world.project)], MEMORY_FILE_PATH=str(world.memory)),
        "files": command(servers.filesystem(world.project)),
        "time": command(servers.time()),
        "everything": command([*servers.everything(), str(world.project)]),
    }
    return {name: {**said["mcpServers"].get(name, {}), **line} for name, line in lines.items()}


def command(line: Sequence[str], **environment: str) -> dict[str, Any]:
    """How tools.json says that a server is started."""
    return {"command": line[0], "args": list(line[1:]), "env": environment}


@contextmanager
def served_over_http(servers: ToolServers) -> Iterator[str]:
    """The server `everything` as somebody else runs it: its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    line, environment = servers.everything("streamableHttp"), {**os.environ, "PORT": str(port)}
    with subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: _answers(port), "the server's answer")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def processes_with(words: str) -> list[int]:
    """The processes on this machine with these words in their command line."""
    folders = [folder for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    return [int(folder.name) for folder in folders if words.encode() in _command_line(folder)]


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def kill(process: int) -> None:
    """kill -9."""
    os.kill(process, signal.SIGKILL)


def until(holds: Callable[[], bool], what: str, *, within_s: float = PATIENCE_S) -> None:
    """Wait until something is true."""
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end, f"{what} did not come true within {within_s:g} s"
        time.sleep(0.02)
