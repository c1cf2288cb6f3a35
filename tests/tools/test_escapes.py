"""The sandbox against programs that try to get out: none may leave a trace in the world, read a secret or live on.

Each attempt (escapes.py) is judged by the world outside; many are also let loose outside, to see that they bite."""

from __future__ import annotations

import os
import platform
import secrets
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.engine.sandbox import Bounds, Job, Ran
from handrail.tools.sandbox.syscall_filter import MACHINES
from outside.debian import bubblewrap
from tools.escapes import ATTEMPTS, PRELUDE, Attempt

if not sys.platform.startswith("linux"):
    pytest.skip("the sandbox was not tried: it needs Linux", allow_module_level=True)

from handrail.tools.sandbox.bubblewrap import Bubblewrap

PYTHON = str(Path(sys.executable).resolve())


@dataclass
class World:
    """A project, and all around it that an attempt could reach for."""

    folder: Path
    token: str
    facts: dict[str, Any]
    doors: list[socket.socket]
    victim: subprocess.Popen[bytes]

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def sandbox(self) -> Bubblewrap:
        private = [self.folder / "beside", self.project / "state" / "home"]
        return Bubblewrap(self.project, program=str(bubblewrap()), private=private, read=[Path(sys.base_prefix)])

    def command(self, code: str) -> tuple[str, ...]:
        return (PYTHON, "-I", "-S", "-c", PRELUDE + code)

    async def run(self, code: str, *, kept: bool = True, **bounds: Any) -> Ran:
        stdin = msgspec.json.encode(self.facts).decode()
        return await self.sandbox().run(
            Job(argv=self.command(code), stdin=stdin, bounds=Bounds(time_ms=10_000, **bounds), kept=kept)
        )

    def traces(self, said: str) -> list[str]:
        """What an attempt left behind, or got to know."""
        found = ["a secret was read"] if self.token in said else []
        found += ["it boasts"] if "ESCAPED" in said else []
        found += ["a process was killed"] if self.victim.poll() is not None else []
        found += [f"door {place} was opened" for place, door in enumerate(self.doors) if _was_reached(door)]
        found += ["something lives on"] if (self.project / "alive").exists() and self._is_alive() else []
        return found

    def _is_alive(self) -> bool:
        file = self.project / "alive"
        before = file.read_text()
        time.sleep(0.05)
        return file.read_text() != before

    def kept(self) -> dict[str, Any]:
        """Everything that must stay as it is."""
        places = [self.folder / "outside", self.folder / "beside", self.project / "state" / "home"]
        places += [self.project / ".handrail", self.project / ".venv", self.folder / "person"]
        found: dict[str, Any] = {
            str(path): _state(path) for place in places for path in (place, *sorted(place.rglob("*")))
        }
        rights = [
            path.name for path in self.project.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o6000
        ]
        return found | {"suid": rights, "project": self.project.is_dir()}


def _state(path: Path) -> tuple[int, bytes | None]:
    if not path.exists():
        return 0, None
    status = path.stat()
    return status.st_mode, path.read_bytes() if stat.S_ISREG(status.st_mode) else None


def _was_reached(door: socket.socket) -> bool:
    try:
        door.recv(1) if door.type is socket.SOCK_DGRAM else door.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    token = secrets.token_hex(8)
    project = tmp_path / "project"
    secret_files = ["outside/secret.txt", "beside/key", "project/state/home/key", "person/.ssh/id"]
    for name in (*secret_files, "project/.handrail/config.toml", "project/.venv/bin/python"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(token if name in secret_files else "as it was")
    (project / "link.txt").symlink_to("../outside/secret.txt")
    (project / "link-folder").symlink_to(tmp_path / "outside")
    monkeypatch.setattr(sys, "prefix", str(project / ".venv"))
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.setenv("HANDRAIL_TOKEN", token)
    with ExitStack() as held:
        doors = [_door(held, *where) for where in _doors(tmp_path)]
        shared = Path("/dev/shm") / f"handrail-{token[:4]}"
        shared.write_text(token)
        held.callback(shared.unlink)
        left_open = os.open(tmp_path / "outside" / "secret.txt", os.O_RDONLY)
        os.set_inheritable(left_open, True)
        held.callback(os.close, left_open)
        victim = held.enter_context(subprocess.Popen(["sh", "-c", "read words", token], stdin=subprocess.PIPE))
        held.callback(victim.kill)
        machine = MACHINES[platform.machine()]
        ports = {name: door.getsockname()[1] for name, door in zip(("tcp", "tcp6", "udp"), doors, strict=False)}
        names = {name: str(tmp_path / name) for name in ("outside", "beside", "person", "project")}
        facts = {
            **ports,
            **names,
            "secret": str(tmp_path / "outside" / "secret.txt"),
            "abstract": doors[3].getsockname()[1:].decode(),
            "shared": shared.name,
            "victim": victim.pid,
            "first": 1,
            "calls": {**machine.refused, "clone": machine.clone},
        }
        yield World(tmp_path, token, facts, doors, victim)


def _doors(folder: Path) -> list[tuple[socket.AddressFamily, socket.SocketKind, Any]]:
    return [
        (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        (socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)),
        (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        (socket.AF_UNIX, socket.SOCK_STREAM, ""),
        (socket.AF_UNIX, socket.SOCK_STREAM, str(folder / "outside" / "socket")),
    ]


def _door(held: ExitStack, family: socket.AddressFamily, kind: socket.SocketKind, address: Any) -> socket.socket:
    door = held.enter_context(socket.socket(family, kind))
    door.setblocking(False)
    door.bind(address)
    if kind is socket.SOCK_STREAM:
        door.listen()
    return door


def test_there_are_at_least_thirty_attempts() -> None:
    assert len({attempt.name for attempt in ATTEMPTS}) == len(ATTEMPTS) >= 30


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "thrown away"])
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
async def test_nothing_gets_out(attempt: Attempt, world: World, kept: bool) -> None:
    before = world.kept()
    ran = await world.run(attempt.code, kept=kept)
    assert world.traces(ran.stdout + ran.stderr) == []
    assert world.kept() == before
    assert "SyntaxError" not in ran.stderr
    assert "NameError" not in ran.stderr


@pytest.mark.parametrize("attempt", [one for one in ATTEMPTS if one.works_outside], ids=lambda attempt: attempt.name)
async def test_the_same_attempt_without_a_sandbox_is_seen(attempt: Attempt, world: World) -> None:
    before = world.kept()
    given = msgspec.json.encode({**world.facts, "first": os.getpid()})
    running = subprocess.Popen(
        world.command(attempt.code),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        close_fds=False,
        start_new_session=True,
        cwd=world.project,
    )
    said, _ = running.communicate(given)
    try:
        assert world.traces(said.decode(errors="replace")) or world.kept() != before
    finally:
        _end_what_lives_on(world)


def _end_what_lives_on(world: World) -> None:
    """The one attempt that lives on is our child's child: known by the file that it writes."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (world.project / "alive").exists():
            try:
                if entry.joinpath("cwd").readlink() == world.project and entry.name != str(os.getpid()):
                    os.kill(int(entry.name), 9)
            except OSError:  # gone, or not ours to look at
                continue
