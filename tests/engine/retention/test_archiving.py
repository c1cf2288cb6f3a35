"""Archiving: events leave the journal only after their archive was read back, whoever is killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from handrail.assembly.backups.follow import following, verify_copy
from handrail.assembly.opening import OpenStore, open_reader, open_store
from handrail.assembly.retention.archives import archiver_of
from handrail.domain.errors import Forbidden, IntegrityBroken, Unavailable
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import DecisionRecorded, Event, RunCompleted, RunStarted
from handrail.domain.json import JsonObject, canonical_bytes, digest
from handrail.engine.proving.stream_fold import change_of
from handrail.engine.stream_pages import records_of
from handrail.settings import Settings, read_settings
from handrail.storage.archives.archive_folder import ArchiveFolder

ADA = "person:ada"
DEFINITION: JsonObject = {"id": "bench", "steps": []}
RUNS = [f"run_{number:08d}" for number in range(6)]
ARCHIVES_ALL = """\
import asyncio, sys
from handrail.assembly.opening import open_store
from handrail.assembly.retention.archives import archiver_of
from handrail.settings import read_settings

async def main():
    async with open_store(read_settings({"home": sys.argv[1], "project": sys.argv[2]}, {})) as opened:
        archiver = await archiver_of(opened)
        while True:
            for run in sys.argv[3:]:
                await archiver.archive([run], reason="old", actor="person:ada")
                print(run, flush=True)
                await archiver.unarchive([run], reason="back", actor="person:ada")
                print(run, flush=True)

asyncio.run(main())
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return read_settings({"home": str(tmp_path / "home"), "project": str(tmp_path)}, {})


async def ended_runs(opened: OpenStore, runs: list[str] = RUNS) -> dict[str, list[Record]]:
    """Runs that have ended, in a store."""
    known = {}
    for run in runs:
        told: list[Event] = [DecisionRecorded(decision="go on", reason=f"because of {run}")] * 3
        first: Event = RunStarted(definition=digest(DEFINITION), workflow="bench@1")
        records, _ = opened.record_writer.write(Head(run), [first, *told, RunCompleted()], actor="agent:a")
        texts = ((digest(DEFINITION), canonical_bytes(DEFINITION)),)
        await opened.journal.append(records, replace(change_of(run, map(entry_of, records)), definitions=texts))
        known[run] = records
    return known


async def require_whole(settings: Settings, known: dict[str, list[Record]]) -> None:
    """Every run can be read as it was, and the whole verifies with all runs replayed."""
    async with open_reader(settings) as look:
        for run, records in known.items():
            assert await records_of(look.store, run) == records
        verdict = await look.verify(replay=True)
        assert verdict.breaks == ()


async def test_an_archive_that_was_written_wrong_removes_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(settings) as opened:
        known = await ended_runs(opened)
        archiver = await archiver_of(opened)
        whole = ArchiveFolder.write

        def write(folder: ArchiveFolder, archive: str, data: bytes) -> None:
            whole(folder, archive, data[:-1] + bytes([data[-1] ^ 1]))

        monkeypatch.setattr(ArchiveFolder, "write", write)
        with pytest.raises(IntegrityBroken):
            await archiver.archive(RUNS, reason="old", actor=ADA)
        assert await opened.store.archives().tombstones() == []
    await require_whole(settings, known)


async def test_what_a_process_that_was_stopped_before_the_removal_has_left_is_removed_by_the_next(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(settings) as opened:
        known = await ended_runs(opened)
        archiver = await archiver_of(opened)

        async def stop(*_: object) -> None:
            raise Unavailable("stopped")

        with monkeypatch.context() as patched:
            patched.setattr(opened.store.archives(), "archive", stop)
            with pytest.raises(Unavailable):
                await archiver.archive(RUNS, reason="old", actor=ADA)
        files = opened.store.archives().files
        assert len(files.names()) == 1
        assert await archiver.tidy() != []
        assert files.names() == []
    await require_whole(settings, known)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
async def test_a_kill_at_any_point_leaves_the_events_or_the_archive(settings: Settings, tmp_path: Path) -> None:
    async with open_store(settings) as opened:
        known = await ended_runs(opened)
    script = [sys.executable, "-c", ARCHIVES_ALL, str(settings.home), str(tmp_path), *RUNS]
    for lines in (1, 4, 7):
        with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(lines):
                assert process.stdout.readline(), "it goes on until it is killed"
            os.kill(process.pid, signal.SIGKILL)
        await require_whole(settings, known)
        async with open_store(settings) as opened:
            await archiver_of(opened)  # removes what was left
            stones = await opened.store.archives().tombstones()
            assert opened.store.archives().files.names() == sorted({stone.archive for stone in stones})
            if stones:
                archiver = await archiver_of(opened)
                await archiver.unarchive([stone.stream for stone in stones], reason="again", actor=ADA)


async def test_a_run_with_a_broken_chain_is_left_alone_and_named(settings: Settings) -> None:
    async with open_store(settings) as opened:
        known = await ended_runs(opened)
        row = await opened.store.run(RUNS[0])
        assert row is not None
        await opened.store.rebuild(
            RUNS[0], replace(change_of(RUNS[0], map(entry_of, known[RUNS[0]])), run=replace(row, n=3))
        )
        archiver = await archiver_of(opened)
        done = await archiver.archive([*RUNS, "run_nobodyxx"], reason="old", actor=ADA)
        assert [one.run for one in done.left_alone] == [RUNS[0], "run_nobodyxx"]
        assert done.runs == len(RUNS) - 1
        assert done.events == 5 * done.runs


async def test_only_people_delete_and_no_agent_archives(settings: Settings) -> None:
    async with open_store(settings) as opened:
        await ended_runs(opened)
        archiver = await archiver_of(opened)
        with pytest.raises(Forbidden):
            await archiver.archive(RUNS, reason="old", actor="agent:a")
        await archiver.archive(RUNS[:2], reason="old", actor="handrail")
        for actor in ("agent:a", "handrail"):
            with pytest.raises(Forbidden):
                await archiver.delete(RUNS[:1], reason="old", actor=actor)
        with pytest.raises(Forbidden):
            await archiver.unarchive(RUNS[:1], reason="x", actor="agent:a")


async def test_space_is_given_back_to_the_disk(settings: Settings) -> None:
    async with open_store(settings) as opened:
        await ended_runs(opened, [f"run_{number:08d}" for number in range(120)])
        archiver = await archiver_of(opened)
        await archiver.archive([f"run_{number:08d}" for number in range(10)], reason="old", actor=ADA)
        await archiver.give_back()
        assert (await opened.store.archives().size()).free > 0, "so little is used again: the file is not rewritten"
        await archiver.archive([f"run_{number:08d}" for number in range(10, 110)], reason="old", actor=ADA)
        await archiver.give_back()
        assert (await opened.store.archives().size()).free == 0
    async with open_reader(settings) as look:
        assert (await look.verify(replay=True)).ok


async def test_a_copy_that_follows_takes_archived_runs_along(settings: Settings, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    async with open_store(settings) as opened:
        known = await ended_runs(opened)
        with following(settings, target) as follower:
            await follower.step()
            archiver = await archiver_of(opened)
            await archiver.archive(RUNS[:4], reason="old", actor=ADA)
            await follower.step()
            await verify_copy(target)
            assert len(list((target / "archives").iterdir())) == 1
            await archiver.delete(RUNS[:1], reason="asked", actor=ADA)
            await archiver.unarchive(RUNS[1:2], reason="back", actor=ADA)
            await archiver.archive(RUNS[4:5], reason="old", actor=ADA)
            await follower.step()
            await verify_copy(target)
            assert {file.name for file in (target / "archives").iterdir()} == {
                file.name for file in settings.archives.iterdir()
            }
            await archiver.unarchive(RUNS[2:5], reason="back", actor=ADA)
            await follower.step()
            await verify_copy(target)
    copy = read_settings({"home": str(target), "project": str(tmp_path)}, {})
    del known[RUNS[0]]
    await require_whole(copy, known)
