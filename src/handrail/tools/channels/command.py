"""The command channel: starts a program with the notice as a CloudEvent on its stdin.

The program is the owner's own, from config.toml in HANDRAIL_HOME. Nothing of a notice is in its arguments, which others
can see, and little of this process's environment goes with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from handrail.domain.definition.duration import duration_ms
from handrail.domain.notify.bodies import cloud_event
from handrail.domain.notify.channel import CommandChannel
from handrail.domain.notify.notice import Notice
from handrail.engine.notify.sender import NotSent

KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "LOGNAME", "SYSTEMROOT", "TEMP", "TMP")
"""The variables that go with it: others may be secrets."""
SAID_BYTES: Final = 300


@dataclass(frozen=True)
class CommandSender:
    """Starts a program for each notice."""

    channel: CommandChannel
    folder: Path
    """Where it is started: a folder in which nothing of a project is found."""

    async def send(self, notice: Notice, *, now: int) -> None:
        """Return once the program has ended well; NotSent if it has not."""
        await run_program(
            self.channel.argv,
            msgspec.json.encode(cloud_event(notice)),
            folder=self.folder,
            within_s=duration_ms(self.channel.timeout) / 1_000,
        )

    async def close(self) -> None:
        """Nothing stays open."""


async def run_program(argv: tuple[str, ...], given: bytes, *, folder: Path, within_s: float) -> None:
    """Start a program and wait for its end; NotSent if it can't be started, takes too long, or fails."""
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    # A group of its own, so that what it has started ends with it.
    group: dict[str, Any] = {} if sys.platform == "win32" else {"start_new_session": True}
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            env={name: value for name in KEPT if (value := os.environ.get(name)) is not None},
            **group,
        )
    except (OSError, ValueError) as error:
        raise NotSent(f"{argv[0]} can't be started: {error}") from None
    try:
        async with asyncio.timeout(within_s):
            said = await _talked(process, given)
            code = await process.wait()
    except TimeoutError:
        raise NotSent(f"{argv[0]} did not end within {within_s:g} s") from None
    finally:
        _end(process)
    if code:
        words = " ".join(said.decode("utf-8", "replace").split())
        raise NotSent(f"{argv[0]} ended with {code}{': ' if words else ''}{words}")


async def _talked(process: asyncio.subprocess.Process, given: bytes) -> bytes:
    """Give the program its input while what it says is read; only the start of that is kept."""

    async def give() -> None:
        assert process.stdin is not None  # noqa: S101
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it need not read it
            process.stdin.write(given)
            await process.stdin.drain()
            process.stdin.close()

    async def hear() -> bytes:
        assert process.stderr is not None  # noqa: S101
        said = b""
        while block := await process.stderr.read(4_096):
            said = (said + block)[:SAID_BYTES]  # read to its end all the same: a full pipe would block the program
        return said

    _, said = await asyncio.gather(give(), hear())
    return said


def _end(process: asyncio.subprocess.Process) -> None:
    """End what is left of it, and what it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
