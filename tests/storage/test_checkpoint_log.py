"""The checkpoint log: durable, one chain however many write, and honest about lines it did not write."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from handrail.domain.errors import IntegrityBroken, Unavailable
from handrail.domain.journal.chain import Head
from handrail.domain.journal.checkpoint import (
    SealedCheckpoint,
    checkpoint_digest,
    checkpoint_line,
    misplaced,
    next_checkpoint,
    sealed_with,
)
from handrail.domain.journal.mark import Mark
from handrail.storage.checkpoint_log import CheckpointFile

APPEND_MANY = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from storage.test_checkpoint_log import append_next
from handrail.storage.checkpoint_log import CheckpointFile
async def main():
    log = CheckpointFile(Path(sys.argv[1]))
    for _ in range(25):
        await append_next(log)
asyncio.run(main())
"""


def following(previous: SealedCheckpoint | None, *, streams: int = 1) -> SealedCheckpoint:
    before = previous.checkpoint if previous else None
    events = (before.events if before else 0) + 1
    heads = [Head(f"run_{n:08d}", events, os.urandom(32)) for n in range(streams)]
    checkpoint = next_checkpoint(before, store="st", at=events, mark=Mark.at(events), orders={}, heads=heads)
    return sealed_with(checkpoint, key="k", signature=b"s")


def digest_of(sealed: SealedCheckpoint | None) -> str:
    return checkpoint_digest(sealed.checkpoint) if sealed else ""


async def append_next(log: CheckpointFile, *, streams: int = 1) -> SealedCheckpoint:
    while True:
        last = await log.last()
        sealed = following(last, streams=streams)
        if await log.append(sealed, after=digest_of(last)):
            return sealed


async def everything(log: CheckpointFile) -> list[SealedCheckpoint]:
    return [sealed async for sealed in log.all()]


async def test_a_log_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    log = CheckpointFile(tmp_path / "none")
    assert await log.last() is None
    assert await everything(log) == []
    assert not (tmp_path / "none").exists()


async def test_what_was_appended_is_read_in_order(tmp_path: Path) -> None:
    log = CheckpointFile(tmp_path / "checkpoints")
    written = [await append_next(log) for _ in range(250)]
    assert await everything(log) == written
    assert await log.last() == written[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="rights are not told by mode there")
async def test_the_log_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "checkpoints"
    await append_next(CheckpointFile(folder))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "log.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="folders can't be synced there")
async def test_a_new_line_and_a_new_file_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def noted(file: int) -> None:
        synced.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "file")
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    log = CheckpointFile(tmp_path)
    await append_next(log)
    assert synced == ["file", "folder"]
    await append_next(log)
    assert synced[2:] == ["file"]


async def test_the_second_of_two_that_follow_the_same_one_is_refused(tmp_path: Path) -> None:
    log = CheckpointFile(tmp_path)
    first = await append_next(log)
    assert await log.append(following(first), after=digest_of(first))
    assert not await log.append(following(first), after=digest_of(first))
    assert not await log.append(following(None), after="")
    assert len(await everything(log)) == 2


async def test_many_writers_in_one_process_make_one_chain(tmp_path: Path) -> None:
    logs = [CheckpointFile(tmp_path) for _ in range(4)]
    await asyncio.gather(*(append_next(log) for log in logs for _ in range(10)))
    assert_one_chain(await everything(logs[0]), 40)


async def test_many_processes_make_one_chain(tmp_path: Path) -> None:
    tests = str(Path(__file__).parent.parent)
    command = [sys.executable, "-c", APPEND_MANY, str(tmp_path), tests]
    started = [await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE) for _ in range(3)]
    for process in started:
        _, talk = await process.communicate()
        assert process.returncode == 0, talk.decode()
    assert_one_chain(await everything(CheckpointFile(tmp_path)), 75)


def assert_one_chain(written: list[SealedCheckpoint], count: int) -> None:
    assert len(written) == count
    assert misplaced(None, written[0].checkpoint) is None
    assert all(misplaced(before.checkpoint, after.checkpoint) is None for before, after in pairwise(written))


@pytest.mark.parametrize(("streams", "kept"), [(1, 1), (1, 20), (1, -1), (200, 9_000)])
async def test_a_torn_last_line_is_ignored_and_cut_at_the_next_append(tmp_path: Path, streams: int, kept: int) -> None:
    log = CheckpointFile(tmp_path)
    first = await append_next(log)
    path = tmp_path / "log.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + checkpoint_line(following(first, streams=streams))[:kept])
    assert await log.last() == first
    assert await everything(log) == [first]
    second = await append_next(log)
    assert path.read_bytes() == whole + checkpoint_line(second)


async def test_a_log_that_was_torn_at_its_very_first_line_is_empty(tmp_path: Path) -> None:
    log = CheckpointFile(tmp_path)
    (tmp_path / "log.jsonl").write_bytes(checkpoint_line(following(None))[:-1])
    assert await log.last() is None
    sealed = await append_next(log)
    assert (tmp_path / "log.jsonl").read_bytes() == checkpoint_line(sealed)


@pytest.mark.parametrize("streams", [1, 40, 200, 1_000])
async def test_the_last_line_is_found_however_long_it_is(tmp_path: Path, streams: int) -> None:
    log = CheckpointFile(tmp_path)
    await append_next(log)
    sealed = await append_next(log, streams=streams)
    assert await log.last() == sealed
    (tmp_path / "log.jsonl").write_bytes(checkpoint_line(sealed))
    assert await log.last() == sealed


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b"no json\n", b'{"a":1}\n'])
async def test_any_other_bad_line_is_named(tmp_path: Path, line: bytes) -> None:
    log = CheckpointFile(tmp_path)
    for _ in range(3):
        await append_next(log)
    path = tmp_path / "log.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], line, lines[2]]))
    with pytest.raises(IntegrityBroken, match="line 2 of the checkpoint log is damaged"):
        await everything(log)
    path.write_bytes(b"".join([*lines, line]))
    with pytest.raises(IntegrityBroken, match="the last line of the checkpoint log is damaged"):
        await log.last()
    with pytest.raises(IntegrityBroken, match="the last line"):
        await log.append(following(None), after="")


async def test_the_lines_before_a_bad_one_are_still_read(tmp_path: Path) -> None:
    log = CheckpointFile(tmp_path)
    first = await append_next(log)
    with (tmp_path / "log.jsonl").open("ab") as file:
        file.write(b"{}\n")
    lines = log.all()
    assert await anext(lines) == first
    with pytest.raises(IntegrityBroken, match="line 2"):
        await anext(lines)


async def test_a_reader_may_stop_early(tmp_path: Path) -> None:
    log = CheckpointFile(tmp_path)
    first = await append_next(log)
    await append_next(log)
    async for sealed in log.all():
        assert sealed == first
        break


async def test_a_restart_sets_the_old_log_aside_and_never_over_another(tmp_path: Path) -> None:
    log = CheckpointFile(tmp_path)
    await log.restart(following(None))
    assert not (tmp_path / "log.1.jsonl").exists()
    for k in (1, 2):
        old = (tmp_path / "log.jsonl").read_bytes()
        sealed = following(None)
        await log.restart(sealed)
        assert (tmp_path / f"log.{k}.jsonl").read_bytes() == old
        assert await everything(log) == [sealed]


async def test_a_damaged_log_can_be_restarted(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b"rubbish\n")
    log = CheckpointFile(tmp_path)
    sealed = following(None)
    await log.restart(sealed)
    assert await everything(log) == [sealed]


async def test_a_disk_that_fails_is_reported_and_leaves_a_usable_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = CheckpointFile(tmp_path)
    first = await append_next(log)

    def fail(file: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(Unavailable, match="No space left"):
            await log.append(following(first), after=digest_of(first))
    last = await log.last()
    assert await log.append(following(last), after=digest_of(last))


async def test_a_log_that_can_not_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(Unavailable, match="can't be used"):
        await CheckpointFile(tmp_path).last()
