"""Backups that are made while others write: each is whole, and nothing acknowledged before it started is missing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread

import pytest

from handrail.assembly.backups.opening import Access
from handrail.assembly.backups.register import BackupProof
from handrail.assembly.backups.restoring import restore_backup
from handrail.assembly.backups.taking import BackupRequest, make_backup
from handrail.assembly.backups.verifying import verify_backup
from handrail.settings import Settings, read_settings

LOAD = Path(__file__).parent / "load.py"


class Load:
    """What a process that writes all the time has acknowledged."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process, self.lines = process, list[bytes]()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)

    def wait_for_more(self, lines: int) -> None:
        wanted = len(self.lines) + lines
        while len(self.lines) < wanted:
            assert self.process.poll() is None, "the load has ended"
            self._reader.join(0.01)

    def acknowledged(self) -> dict[str, tuple[int, str]]:
        """The last acknowledged event of each stream."""
        words = [line.split() for line in list(self.lines)]
        return {stream.decode(): (int(n), digest.decode()) for stream, n, digest in words}


@contextmanager
def under_load(home: Path, *, processes: int = 1) -> Iterator[Load]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(LOAD), str(home), "16"]
    others = [subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) for _ in range(processes - 1)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        try:
            load = Load(process)
            load.wait_for_more(200)
            yield load
        finally:
            for one in (process, *others):
                one.kill()
                one.wait()


def settings_in(folder: Path) -> Settings:
    (folder / "home").mkdir(mode=0o700)
    (folder / "home" / "config.toml").write_text("checkpoint_every = 20\n")  # signed all the time, too
    return read_settings({"home": str(folder / "home"), "project": str(folder)}, {})


async def back_up_and_restore(settings: Settings, load: Load, folder: Path) -> int:
    """Make a backup under load, verify and restore it; how many events it has."""
    before = load.acknowledged()
    made = await make_backup(settings, BackupRequest(target=folder / "backups"))
    verdict = await verify_backup(settings, made.folder, Access())
    assert (verdict.proof, verdict.breaks, verdict.reason) == (BackupProof.VERIFIED, (), "")
    restored = await restore_backup(made.folder, folder / "restored", Access(), actor="person:ada")
    with closing(sqlite3.connect(folder / "restored" / "journal.db")) as database:
        for stream, (n, digest) in before.items():
            row = database.execute("select hex(hash) from event where stream = ? and n = ?", (stream, n)).fetchone()
            assert row == (digest.upper(),), f"event {n} of {stream} was acknowledged before the backup started"
    shutil.rmtree(folder / "restored")
    shutil.rmtree(made.folder)
    return restored.events


async def test_backups_under_load_are_whole(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with under_load(settings.home) as load:
        counts = []
        for _ in range(3):
            counts.append(await back_up_and_restore(settings, load, tmp_path))
            load.wait_for_more(1)
    assert counts == sorted(set(counts)), "writers went on all the time"


@pytest.mark.long
async def test_fifty_backups_under_the_load_of_three_processes_are_whole(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with under_load(settings.home, processes=3) as load:
        for _ in range(50):
            await back_up_and_restore(settings, load, tmp_path)
            load.wait_for_more(1)
