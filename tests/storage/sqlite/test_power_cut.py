"""The power fails at any moment, or a sync fails: what was acknowledged is there, and nothing that was refused.

strace records what a child process really asks of the disk; from that, a strict model of the disk (disk_model.py)
says what a power cut may leave, and every such remainder must open as a sound store."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from handrail.domain.journal.chain import Head, first_break
from handrail.storage.sqlite.store import SqliteStore
from storage.acknowledging import mark
from storage.disk_model import SYSCALLS, Call, Disk, Write, calls
from storage.rounds import everything
from storage.stories import Story, head_of

CHILD = Path(__file__).parents[1] / "acknowledging.py"
CUTS = 300
SEED = random.SystemRandom().randrange(2**32)
FRAME_HEADER_BYTES = 24


@pytest.fixture(scope="module")
def strace() -> str:
    """The tool that sees all; installed if this is a machine where we may."""
    if not sys.platform.startswith("linux"):
        pytest.skip("strace is a matter of Linux")
    if shutil.which("strace") is None and shutil.which("apt-get") and os.geteuid() == 0:
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", "strace"]):
            subprocess.run(command, capture_output=True, timeout=120, check=False)
    found = shutil.which("strace")
    if found is None:
        pytest.skip("strace is not installed, and we may not install it")
    if subprocess.run([found, "-o", os.devnull, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this system does not let strace watch a process")
    return found


@dataclass(frozen=True)
class Said:
    """A line that the child wrote, and when."""

    words: list[str]
    began: int


@dataclass
class Life:
    """What a child process did and said, in order."""

    folder: Path
    calls: list[Call] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)


@pytest.fixture(scope="module")
def life(strace: str, tmp_path_factory: pytest.TempPathFactory) -> Life:
    folder, trace = tmp_path_factory.mktemp("disk"), tmp_path_factory.mktemp("trace") / "trace"
    watch = [strace, "-f", "-xx", "-s", "1000000", "-o", str(trace), "-e", f"trace={SYSCALLS}"]
    subprocess.run(
        [*watch, sys.executable, CHILD, "all", folder / "journal.db"], check=True, timeout=120, capture_output=True
    )
    seen = Life(folder, list(calls(trace)))
    seen.said = [
        Said(line.split(), call.began)
        for call in seen.calls
        if call.name == "write" and call.number(0) == 1
        for line in call.text().decode().splitlines()
    ]
    assert sum(said.words[0] == "ack" for said in seen.said) > 190
    return seen


def test_every_acknowledged_commit_was_synced_before_it_was_acknowledged(life: Life) -> None:
    disk = Disk(str(life.folder))
    writes: list[Write] = []
    syncs: list[Call] = []
    for call in life.calls:
        disk.see(call)
        if call.name in ("pwrite64", "fdatasync") and (file := disk.file(call)) and file.name == "journal.db-wal":
            if call.name == "fdatasync":
                syncs.append(call)
            else:
                writes.append(Write(call.number(3), call.text(), call.ended))
    assert len(syncs) > 50
    checked = 0
    for said in life.said:
        if said.words[0] == "ack":
            end = end_of_commit(writes, mark(int(said.words[1])))
            assert any(end < sync.began and sync.ended < said.began for sync in syncs), said.words
            checked += 1
    assert checked > 190


def end_of_commit(writes: Sequence[Write], words: bytes) -> int:
    """When the last write ended of the first commit that holds these words: the page behind a header that says so."""
    first = next(at for at, write in enumerate(writes) if words in write.content)
    while True:
        header, page = writes[first - 1], writes[first]
        if len(header.content) == FRAME_HEADER_BYTES and any(header.content[4:8]):
            return page.ended
        first += 2


async def test_no_power_cut_loses_what_was_acknowledged(life: Life, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    begins = next(at for at, call in enumerate(life.calls) if call.name == "openat" and b"journal.db" in call.text())
    cuts = set(chance.sample(range(begins, len(life.calls)), CUTS))
    disk = Disk(str(life.folder))
    for at, call in enumerate(life.calls):
        disk.see(call)
        if at in cuts:
            folder = tmp_path / str(at)
            put(folder, disk.after_power_cut(chance))
            try:
                await require_sound(folder / "journal.db", [said for said in life.said if said.began <= call.began])
            except Exception as error:
                raise AssertionError(f"seed {SEED}, power cut behind call {at}: {call.name}") from error
            shutil.rmtree(folder)


def put(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)


async def require_sound(path: Path, said: Sequence[Said]) -> None:
    """Everything that had been said by then holds in what was left."""
    async with await SqliteStore.open(path) as store:
        streams = await everything(store)
        for stream, records in streams.items():
            assert first_break(Head(stream), records)[1] is None
            row = await store.run(stream)
            assert row is None or (row.n, row.head) == (records[-1].n, records[-1].hash)
        stored = {f"{record.stream}:{record.n}": record for records in streams.values() for record in records}
        hashes = {record.hash.hex() for record in stored.values()}
        for one in said:
            match one.words:
                case ["ack", _, *events]:
                    for event in events:
                        place, _, digest = event.rpartition(":")
                        assert stored[place].hash.hex() == digest
                case ["refused", digest]:
                    assert digest not in hashes
                case ["erased", place]:
                    assert stored[place].erased is not None
        assert await store.flaws() == []
        records = streams.get("run_a", [])
        await store.append(*Story(head=head_of(records) if records else Head("run_a")).tell())


@pytest.mark.parametrize("at", [1, 2, 7, 20])
async def test_after_a_failed_sync_nothing_is_acknowledged_until_a_restart(
    strace: str, tmp_path: Path, at: int
) -> None:
    path = tmp_path / "journal.db"
    async with await SqliteStore.open(path):
        pass  # made in peace, so that the first sync to fail is one of an append
    failing = ["-e", "trace=fdatasync,fsync", "-e", f"inject=fdatasync,fsync:error=EIO:when={at}+"]
    command = [strace, "-f", "-o", os.devnull, *failing, sys.executable, str(CHILD), "until-failure", str(path)]
    done = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True)
    lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
    acks = [words for kind, words in lines if kind == "ack"]
    assert [kind for kind, _ in lines] == [
        *(["ack"] * len(acks)),
        "failed",
        *(["refused-after-failure"] * 3),
        "read-after-failure",
    ]
    assert len(acks) < at
    assert "only a restart shows whether this was saved" in lines[len(acks)][1]
    assert all("accepts no more events" in words and "restart" in words for _, words in lines[-4:-1])
    assert lines[-1][1] == str(len(acks))
    async with await SqliteStore.open(path) as store:
        streams = await everything(store)
        kept = streams.get("run_a", [])
        assert set(streams) <= {"run_a"}
        assert first_break(Head("run_a"), kept)[1] is None
        assert [f"{record.n - 1} run_a:{record.n}:{record.hash.hex()}" for record in kept][: len(acks)] == acks
        assert len(kept) in (len(acks), len(acks) + 1)
