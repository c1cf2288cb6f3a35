"""Running git: one process within limits, killed with all that it has started; and what is said if it can't be run.

What is asked of git, and with which configuration, is decided in git.py."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import stat
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

from handrail.domain.checks.finding import FixedBy

TIME_S: Final = 30.0
LOOK_S: Final = 1.0
"""After how long it is looked at what git may be waiting for."""
GIT_FOLDER: Final = ".git"
PATTERN_FILES: Final = (".gitignore", ".gitattributes")
ENTRIES_MAX: Final = 200_000
OUTPUT_BYTES_MAX: Final = 32_000_000
BLOCK_BYTES: Final = 65_536
WORDS_MAX: Final = 300
HOW_TO_GET: Final = "install git so that it is on PATH, or remove this check"

_hashed = re.compile(r"[0-9a-f]{2}")


class GitUnavailable(Exception):
    """Git could not be run or gave no answer; the message says why, `fix` what to do, and `by` who has to do it."""

    def __init__(self, why: str, fix: str, by: FixedBy = FixedBy.PERSON) -> None:
        super().__init__(why)
        self.fix, self.by = fix, by


async def run_git(
    argv: tuple[str, ...], cwd: Path, env: Mapping[str, str], stdin: bytes = b""
) -> tuple[int, bytes, str]:
    """Run a program within limits: its exit code, output and error message. It is always ended afterwards."""
    process = await _started(argv, cwd, env, has_input=bool(stdin))
    talking = asyncio.gather(_fed(process.stdin, stdin), _taken(process.stdout), _taken(process.stderr))
    try:
        async with asyncio.timeout(TIME_S):
            done, _ = await asyncio.wait({talking}, timeout=LOOK_S)
            if not done:
                await asyncio.to_thread(_require_no_pipes, cwd)
            _, said, complaint = await talking
            exit_ = await process.wait()
    except TimeoutError:
        raise GitUnavailable(
            f"git took longer than {TIME_S:.0f} seconds", "make the repository smaller, or try again"
        ) from None
    finally:
        if process.returncode is None:
            _kill(process)
            await asyncio.shield(process.wait())
        talking.cancel()
    return exit_, said, _last_line(complaint)


def _require_no_pipes(root: Path) -> None:
    """Refuse a repository with a pipe that git would wait for; asked once git takes longer than usual."""
    seen = 0
    above: list[tuple[str, list[str], list[str]]] = [(str(one), [], [*PATTERN_FILES]) for one in root.parents]
    for folder, inner, names in chain(above, os.walk(root)):
        seen += len(inner) + len(names)
        if seen > ENTRIES_MAX:
            return
        is_gits = GIT_FOLDER in Path(folder).parts
        for name in names if is_gits else PATTERN_FILES:
            if name in names and _is_special(Path(folder) / name):
                raise GitUnavailable(f"{folder}/{name} is not a regular file: git would wait for it", "remove it")
        if is_gits:  # what git names by hashes is not opened before it was found in a list
            inner[:] = [one for one in inner if not _hashed.fullmatch(one)]


def _is_special(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:  # nothing there, or nothing that git could open
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


async def _started(
    argv: tuple[str, ...], cwd: Path, env: Mapping[str, str], *, has_input: bool
) -> asyncio.subprocess.Process:
    """Start a program. A cancelled caller waits until it is started: only then can all of it be killed."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=env,
            stdin=PIPE if has_input else DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=sys.platform != "win32",
        )
    )
    try:
        return await asyncio.shield(starting)
    except OSError as error:
        raise GitUnavailable(f"git can't be started: {error.strerror}", HOW_TO_GET) from error
    except asyncio.CancelledError:
        with suppress(OSError):
            process = await starting
            _kill(process)
            await process.wait()
        raise


def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill a program and all processes that it has started."""
    with suppress(ProcessLookupError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


async def _fed(stream: asyncio.StreamWriter | None, content: bytes) -> None:
    if stream is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):  # it ended without reading everything: its exit says why
        stream.write(content)
        await stream.drain()
        stream.close()


async def _taken(stream: asyncio.StreamReader | None) -> bytes:
    blocks: list[bytes] = []
    size = 0
    while stream and (block := await stream.read(BLOCK_BYTES)):
        size += len(block)
        if size > OUTPUT_BYTES_MAX:
            raise GitUnavailable(
                f"git wrote more than {OUTPUT_BYTES_MAX:,} bytes",
                "name fewer files, or commit what is done",
                FixedBy.AGENT,
            )
        blocks.append(block)
    return b"".join(blocks)


def _last_line(complaint: bytes) -> str:
    lines = [line for line in complaint.decode(errors="replace").splitlines() if line.strip()]
    first = next((line for line in lines if line.startswith("fatal:")), lines[-1] if lines else "")
    return first.removeprefix("fatal:").strip()[:WORDS_MAX]
