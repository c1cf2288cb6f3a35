"""Commands without a sandbox: still within bounds, without secrets, and gone afterwards."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.definition.model import Category
from handrail.engine.sandbox import Bounds, Job, Ran, Sandbox
from handrail.tools.sandbox import unconfined
from handrail.tools.sandbox.unconfined import Unconfined
from tools.calls import Fails

if os.name != "posix":
    pytest.skip("these commands are for POSIX", allow_module_level=True)

PATIENCE_S = 10.0


@pytest.fixture
def sandbox(tmp_path: Path) -> Unconfined:
    return Unconfined(tmp_path)


async def sh(sandbox: Sandbox, code: str, **bounds: Any) -> Ran:
    return await sandbox.run(Job(argv=("sh", "-c", code), bounds=Bounds(**bounds)))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except OSError:
        return False


async def until_gone(pid: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while is_alive(pid):
            await asyncio.sleep(0.01)


async def test_a_command_works_in_the_project_and_says_what_came_of_it(sandbox: Unconfined, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    job = Job(
        argv=("sh", "-c", "cat; pwd; echo $WORD; echo no >&2; exit 3"), cwd="sub", env={"WORD": "é"}, stdin="in\n"
    )
    ran = await sandbox.run(job)
    assert (ran.exit, ran.stdout, ran.stderr) == (3, f"in\n{tmp_path / 'sub'}\né\n", "no\n")
    assert ran.stopped == ""
    assert await sandbox.trial() == ""


async def test_it_gets_to_know_no_secret_and_has_a_folder_that_is_removed(
    sandbox: Unconfined, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "very-secret")
    ran = await sh(sandbox, "env; touch $TMPDIR/x; echo place=$TMPDIR")
    assert "very-secret" not in ran.stdout
    place = ran.stdout.split("place=")[1].strip()
    assert place
    assert not Path(place).exists()


async def test_a_command_that_takes_too_long_is_stopped_with_its_children(sandbox: Unconfined) -> None:
    ran = await sh(sandbox, "sleep 60 & echo $!; sleep 60", time_ms=300)
    assert (ran.stopped, ran.exit) == ("time", 137)
    await until_gone(int(ran.stdout))


async def test_what_a_command_leaves_behind_in_its_group_ends_with_it(sandbox: Unconfined) -> None:
    ran = await sh(sandbox, "sleep 60 > /dev/null 2>&1 & echo $!")
    assert ran.exit == 0
    await until_gone(int(ran.stdout))


async def test_endless_output_is_stopped_and_cut(sandbox: Unconfined) -> None:
    told: list[str] = []
    job = Job(argv=("yes",), bounds=Bounds(output_bytes=100_000))
    ran = await sandbox.run(job, progress=told.append)
    assert ran.stopped == "output"
    assert len(ran.stdout) == 100_000
    assert told


async def test_the_kernel_limits_memory_and_files(sandbox: Unconfined) -> None:
    code = "x = bytearray(400_000_000); print(len(x))"
    job = Job(argv=(sys.executable, "-I", "-S", "-c", code), bounds=Bounds(memory_bytes=100_000_000))
    assert "MemoryError" in (await sandbox.run(job)).stderr
    ran = await sh(sandbox, "head -c 3000000 /dev/zero > big; wc -c < big", file_bytes=1_000_000)
    assert ran.stdout.strip() == "1000000"


async def test_a_cancelled_command_is_gone(sandbox: Unconfined, tmp_path: Path) -> None:
    task = asyncio.create_task(sh(sandbox, "echo $$ > pid; sleep 60"))
    async with asyncio.timeout(PATIENCE_S):
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_gone(int((tmp_path / "pid").read_text()))


async def test_a_command_cancelled_while_it_starts_is_gone(
    sandbox: Unconfined, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    really = loop.subprocess_exec
    began, go = asyncio.Event(), asyncio.Event()
    started: list[int] = []

    async def slow(*words: Any, **options: Any) -> Any:
        transport, protocol = await really(*words, **options)
        started.append(transport.get_pid())
        began.set()
        await go.wait()
        return transport, protocol

    monkeypatch.setattr(loop, "subprocess_exec", slow)
    task = asyncio.create_task(sh(sandbox, "sleep 60"))
    await began.wait()
    task.cancel()
    await asyncio.sleep(0)
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_alive(started[0])


async def test_who_leaves_the_group_and_holds_the_output_does_not_hold_us(
    sandbox: Unconfined, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unconfined, "LINGER_S", 0.2)
    code = (
        "import os, sys, time\npid = os.fork()\n"
        "if pid:\n    print(pid, flush=True); os._exit(0)\n"
        "os.setsid(); time.sleep(60)"
    )
    ran = await sandbox.run(Job(argv=(sys.executable, "-I", "-S", "-c", code)))
    pid = int(ran.stdout)
    try:
        assert ran.exit == 0
    finally:
        os.kill(pid, 9)


async def test_a_command_that_does_not_read_is_no_error(sandbox: Unconfined) -> None:
    assert (await sandbox.run(Job(argv=("true",), stdin="x" * 1_000_000))).exit == 0


@pytest.mark.parametrize("argv", [("no-such-program",), ("./gone",), ("a\0b",), ("/",)])
async def test_a_program_that_is_not_there_is_named(sandbox: Unconfined, argv: tuple[str, ...]) -> None:
    with Fails(Category.NOT_FOUND, "there is no program"):
        await sandbox.run(Job(argv=argv))


async def test_a_word_that_no_command_can_take_is_refused(sandbox: Unconfined) -> None:
    with Fails(Category.INVALID_INPUT, "can't be started"):
        await sandbox.run(Job(argv=("true", "a\0b")))


@pytest.mark.parametrize("cwd", ["gone", "..", "out"])
async def test_it_starts_in_the_project_only(sandbox: Unconfined, tmp_path: Path, cwd: str) -> None:
    (tmp_path / "out").symlink_to("/")
    with Fails(Category.NOT_FOUND, "there is no folder"):
        await sandbox.run(Job(argv=("true",), cwd=cwd))


async def test_a_program_of_the_project_is_found_from_where_it_starts(sandbox: Unconfined, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "tool").write_text("#!/bin/sh\necho here\n")
    (tmp_path / "sub" / "tool").chmod(0o755)
    assert (await sandbox.run(Job(argv=("./tool",), cwd="sub"))).stdout == "here\n"
