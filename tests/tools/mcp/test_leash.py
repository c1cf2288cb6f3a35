"""The leash: nothing that a tool server started outlives handrail, however handrail ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tools.mcp.servers_at_hand import SERVER, is_alive, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has job objects instead")

HOLDER = """
import asyncio, sys
from pathlib import Path
from tools.mcp.servers_at_hand import connection, call

async def hold():
    server = connection(Path(sys.argv[1]), "stubborn")
    children = [await call(server, "breed", leaves=leaves) for leaves in (False, True)]
    print(server.status.pid, *children, flush=True)
    await asyncio.sleep(600)

asyncio.run(hold())
"""


async def test_kill_9_of_handrail_leaves_no_server_and_no_grandchild(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as holder:
        assert holder.stdout
        line = await asyncio.to_thread(holder.stdout.readline)
        processes = [int(word) for word in line.split()]
        assert len(processes) == 3
        assert all(map(is_alive, processes))
        holder.kill()
        await until(lambda: not any(map(is_alive, processes)), seconds=10)


@contextmanager
def leashed(*command: str) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
    """A command on a leash that is measured like any other code."""
    ours, theirs = socket.socketpair()
    words = [sys.executable, "-m", "handrail.tools.mcp.transport.leash", str(theirs.fileno()), *command]
    pipe = subprocess.PIPE
    with (
        ours,
        subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, pass_fds=(theirs.fileno(),)) as leash,
    ):
        theirs.close()
        ours.settimeout(20)
        yield leash, ours


def started(lifeline: socket.socket) -> int:
    """The server's process, once it ignores signals: sooner, it would end by itself."""
    server = int(lifeline.recv(4096).split()[1])
    ignores = 1 << (signal.SIGTERM - 1)

    def is_ready() -> bool:
        lines = Path(f"/proc/{server}/status").read_text().splitlines()
        return any(line.startswith("SigIgn:") and int(line.split()[1], 16) & ignores for line in lines)

    asyncio.run(until(is_ready))
    return server


def heard(lifeline: socket.socket) -> list[str]:
    """All that the leash says until it ends."""
    said = b""
    while news := lifeline.recv(4096):
        said += news
    return said.decode().splitlines()


@pytest.mark.parametrize(
    ("program", "last", "status"),
    [
        ("raise SystemExit(5)", "exit 5", 5),
        ("import os; os.kill(os.getpid(), 9)", "signal 9", 137),
        ("print(input())", "exit 0", 0),
    ],
)
def test_the_leash_passes_everything_through_and_ends_as_the_server_does(program: str, last: str, status: int) -> None:
    with leashed(sys.executable, "-c", program) as (leash, lifeline):
        out, _ = leash.communicate(b"through\n")
        assert heard(lifeline)[-1] == last
        assert leash.returncode == status
        assert out.strip() == (b"through" if status == 0 else b"")


def test_a_command_that_can_not_be_run_says_so() -> None:
    with leashed("/no/such/command") as (leash, lifeline):
        _, errors = leash.communicate()
        assert heard(lifeline)[-1] == "exit 127"
        assert b"/no/such/command can't be started: No such file or directory" in errors


@pytest.mark.parametrize("end", ["lifeline", "signal"])
def test_the_end_of_the_lifeline_or_a_polite_signal_ends_a_server_that_ignores_it(end: str) -> None:
    with leashed(sys.executable, "-I", "-S", str(SERVER), "stubborn") as (leash, lifeline):
        server = started(lifeline)
        began = time.monotonic()
        if end == "lifeline":
            lifeline.shutdown(socket.SHUT_WR)
        else:
            leash.send_signal(signal.SIGTERM)
        assert heard(lifeline) == []
        assert leash.wait(10) == 0
        assert time.monotonic() - began < 8
        assert not is_alive(server)


def test_a_leash_that_is_killed_takes_its_server_along() -> None:
    with leashed(sys.executable, "-I", "-S", str(SERVER), "stubborn") as (leash, lifeline):
        server = started(lifeline)
        leash.kill()
        leash.wait(10)
        asyncio.run(until(lambda: not is_alive(server)))
