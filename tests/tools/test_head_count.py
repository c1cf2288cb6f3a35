"""The kernel's own count of a sandbox's processes: made where it can be had, and removed when all have ended."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.tools.sandbox.process_limit import NAME, TaskLimit, limit_tasks

if not sys.platform.startswith("linux"):
    pytest.skip("control groups are Linux's", allow_module_level=True)

FORKING = """
import os, sys
sys.stdin.readline()
born = 0
for _ in range(50):
    try:
        if os.fork() == 0:
            sys.stdin.readline()
            os._exit(0)
        born += 1
    except OSError:
        break
print(born, flush=True)
"""


async def test_the_kernel_refuses_more_processes_than_were_counted_for() -> None:
    forking = subprocess.Popen([sys.executable, "-c", FORKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert forking.stdin is not None
    assert forking.stdout is not None
    try:
        group = limit_tasks(forking.pid, 5)
        if group is None:
            pytest.skip("not tried: there are no control groups to be had here")
        forking.stdin.write(b"\n")
        forking.stdin.flush()
        assert forking.stdout.readline() == b"4\n"
    finally:
        forking.stdin.close()
        forking.stdout.close()
        forking.wait()
    await group.remove()
    assert not group.folder.exists()
    await group.remove()  # once more does no harm


async def test_a_group_that_is_still_in_use_is_left_for_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.tools.sandbox.process_limit.REMOVAL_PAUSE_S", 0.0)
    (tmp_path / "group" / "inside").mkdir(parents=True)
    async with asyncio.timeout(10):
        await TaskLimit(tmp_path / "group").remove()
    assert (tmp_path / "group").exists()


@pytest.mark.parametrize("lines", ["0::/here\n", "9:name=systemd:/\n8:cpu,pids:/here\n0::/\n"])
def test_both_versions_of_control_groups_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    above = tmp_path / ("here" if lines.startswith("0") else "cpu,pids/here")
    above.mkdir(parents=True)
    left = above / f"{NAME}999999999-1"
    left.mkdir()
    read = Path.read_text
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        Path, "read_text", lambda path, **more: lines if path == Path("/proc/self/cgroup") else read(path, **more)
    )
    group = limit_tasks(1, 5, mounted=tmp_path)
    assert group is not None
    assert (group.folder.parent, (group.folder / "pids.max").read_text()) == (above, "5")
    assert not left.exists(), "its process is no more"


def test_where_there_are_none_or_it_is_no_superuser_the_watch_is_all_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert limit_tasks(os.getpid(), 5, mounted=tmp_path / "nowhere") is None
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    assert limit_tasks(os.getpid(), 5) is None
