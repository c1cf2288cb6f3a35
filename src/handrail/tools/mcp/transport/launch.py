"""The process of an MCP server, from handrail's side: started on its leash, and stopped with all its descendants.

POSIX only. Its three pipes are plain file descriptors, so that no other buffer holds a server's bytes before they are
limited. The bytes are parsed in pipe.py; the leash process is in leash.py."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio
from msgspec import Struct, field

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolFailed

CHUNK_BYTES: Final = 65_536
STOP_GRACE_S: Final = 2.0
"""How long a server has to end by itself after its input was closed, as the protocol requires."""
LEASH_S: Final = 6.0
"""How long the leash may take to stop everything; it kills what does not end after one second."""
REAP_S: Final = 2.0
POLL_S: Final = 0.005
INHERITED: Final = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""The variables of our environment that a server gets; others must be declared, so that no secret leaks."""
LEASH: Final = Path(__file__).with_name("leash.py")


class ServerLaunch(Struct, frozen=True, kw_only=True):
    """The command of a server, with all references filled in."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str


class ServerProcess:
    """A server that was started; `ended` is set when it has ended, `gone` when none of its descendants is left."""

    def __init__(self, launch: ServerLaunch) -> None:
        environment = {name: os.environ[name] for name in INHERITED if name in os.environ} | dict(launch.env)
        _check(launch, environment)
        self._lifeline, theirs = socket.socketpair()
        with theirs:
            leash = [sys.executable, "-I", "-S", str(LEASH), str(theirs.fileno())]
            try:
                self._leash = subprocess.Popen(  # noqa: S603 - no shell; the command is what a person declared
                    [*leash, launch.command, *launch.args],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    env=environment,
                    cwd=launch.cwd,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                self._lifeline.close()
                raise ToolFailed(Category.TRANSIENT, f"`{launch.command}` can't be started: {error}") from None
        self._lifeline.settimeout(0)
        for pipe in (self._leash.stdin, self._leash.stdout, self._leash.stderr):
            os.set_blocking(_number(pipe), False)
        self.pid = 0
        self.how = ""
        """How it ended, for messages."""
        self.ended = anyio.Event()
        self.gone = anyio.Event()

    async def read_output(self) -> bytes:
        """The next bytes of its standard output; empty at the end."""
        return await _read(_number(self._leash.stdout))

    async def read_errors(self) -> bytes:
        """The next bytes of its standard error; empty at the end."""
        return await _read(_number(self._leash.stderr))

    async def send(self, data: bytes) -> None:
        """Write to its input; waits while it does not read, OSError if it can't any more."""
        rest = memoryview(data)
        pipe = _number(self._leash.stdin)
        while rest:
            try:
                rest = rest[os.write(pipe, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(pipe)

    async def watch(self) -> None:
        """Read reports of the leash until it has ended."""
        received = b""
        while not self.gone.is_set():
            await anyio.wait_readable(self._lifeline)
            try:
                block = self._lifeline.recv(CHUNK_BYTES)
            except OSError:
                block = b""
            *lines, received = (received + block).split(b"\n")
            for line in lines:
                self._on_line(line.decode())
            if not block:
                self._end("ended")
                self.gone.set()

    def close_input(self) -> None:
        """Close its input: in the protocol, that asks a server to end. No write to it may be waiting."""
        if self._leash.stdin and not self._leash.stdin.closed:
            self._leash.stdin.close()

    async def stop(self, *, is_polite: bool) -> None:
        """Stop it and all its descendants; `watch` must be running. Closes its input first."""
        self.close_input()
        with anyio.move_on_after(STOP_GRACE_S if is_polite else 0):
            await self.gone.wait()
        with contextlib.suppress(OSError):
            self._lifeline.shutdown(socket.SHUT_WR)
        with anyio.move_on_after(LEASH_S):
            await self.gone.wait()
        if not self.gone.is_set():
            self._leash.kill()  # the kernel then kills the server as well
        with anyio.move_on_after(REAP_S):
            while self._leash.poll() is None:  # noqa: ASYNC110 - there is no event for the end of a process
                await anyio.sleep(POLL_S)

    def release(self) -> None:
        """Close what is left open; nothing may be waiting for it."""
        self._lifeline.close()
        for pipe in (self._leash.stdin, self._leash.stdout, self._leash.stderr):
            if pipe:
                pipe.close()

    def _on_line(self, line: str) -> None:
        word, _, number = line.partition(" ")
        if word == "pid":
            self.pid = int(number)
        elif word == "exit":
            self._end(f"ended with exit status {number}")
        elif word == "signal":
            self._end(f"was killed by {_signal_name(int(number))}")

    def _end(self, how: str) -> None:
        self.how = self.how or how
        self.ended.set()


def _check(launch: ServerLaunch, environment: Mapping[str, str]) -> None:
    """Fail at once for errors that a retry can't fix."""
    if not Path(launch.cwd).is_dir():
        raise ToolFailed(Category.NOT_FOUND, f"its folder {launch.cwd} does not exist; fix `cwd`")
    folder = str(Path(launch.cwd, launch.command)) if "/" in launch.command else launch.command
    if shutil.which(folder, path=environment.get("PATH")) is None:
        raise ToolFailed(Category.NOT_FOUND, f"the command `{launch.command}` was not found; install it, or fix it")


def _number(pipe: object) -> int:
    fileno = getattr(pipe, "fileno", None)
    if fileno is None:
        raise OSError("the pipe was never opened")
    number: int = fileno()
    return number


async def _read(pipe: int) -> bytes:
    while True:
        await anyio.wait_readable(pipe)
        try:
            return os.read(pipe, CHUNK_BYTES)
        except BlockingIOError:
            continue
        except OSError:
            return b""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
