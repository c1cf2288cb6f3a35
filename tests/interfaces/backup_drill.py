"""The disaster drill, as it is written in docs/operations/drill.md: executed with real processes, step by step.

    python tests/interfaces/backup_drill.py [events]

A home with that many events and an open run is backed up, followed, lost, restored and salvaged. Prints what each step
took; exit code 1 if one of them did not do what it has to."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PLAN = """\
id: release
steps:
  - {id: notes, tool: file.write, args: {path: NOTES.md, text: second}}
  - {id: check, prompt: Look at the notes.}
"""
LOOP = """\
id: busy
steps:
  - id: loop
    repeat: {times: 100, max: 100}
    steps:
      - {id: tick, tool: value.set, args: {value: 1}}
"""
PAGE = 4_096


class Drill:
    """A home, and what was done with it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.lines = folder, folder / "home", list[tuple[str, float]]()

    def run(self, *words: str, home: Path | None = None, code: int = 0) -> Any:
        """A command with its answer as JSON; the drill fails if it ends otherwise."""
        done = subprocess.run(
            [sys.executable, "-m", "handrail", *words, "--json"],
            cwd=self.folder,
            env={**os.environ, "HANDRAIL_HOME": str(home or self.home)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != code:
            raise SystemExit(f"FAILED: handrail {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def step(self, name: str, *words: str, home: Path | None = None, code: int = 0) -> Any:
        """A timed step of the drill."""
        started = time.perf_counter()
        answer = self.run(*words, home=home, code=code)
        self.lines.append((name, time.perf_counter() - started))
        return answer

    def require(self, holds: bool, what: str) -> None:
        if not holds:
            raise SystemExit(f"FAILED: {what}")


def main(events: int) -> int:
    with tempfile.TemporaryDirectory() as made:
        drill = Drill(Path(made))
        prepare(drill, events)
        lost_home(drill)
        damaged_file(drill)
        for name, took_s in drill.lines:
            say(f"{name:<44}{took_s:7.1f} s")
    say("the drill is passed")
    return 0


def prepare(drill: Drill, events: int) -> None:
    """A home in use: runs that are over, and one that waits for its agent."""
    (drill.folder / "release.yaml").write_text(PLAN)
    (drill.folder / "busy.yaml").write_text(LOOP)
    (drill.folder / "NOTES.md").write_text("first")
    drill.run("run", "start", "release.yaml", code=4)
    count = 0
    while count < events:
        drill.run("run", "start", "busy.yaml")
        count = drill.run("journal", "verify")["events"]


def lost_home(drill: Drill) -> None:
    """1. The home is gone: restore the newest backup, and go on."""
    (open_run,) = drill.run("run", "list")["runs"]
    backup = drill.step("back up", "db", "backup", str(drill.folder / "backups"))["backup"]
    verified = drill.step("verify the backup", "db", "verify", backup)
    drill.require(verified["ok"], "the backup verifies")
    copied = drill.step("follow, once", "db", "follow", str(drill.folder / "copy"), "--once", "--with-keys")
    shutil.rmtree(drill.home)
    restored = drill.step("restore into a new home", "db", "restore", backup, str(drill.home))
    drill.require(restored["events"] == verified["events"], "everything is restored")
    drill.step("verify the restored journal", "journal", "verify", "--replay")
    words = ("run", "submit", open_run["run"], "check", "--output", '{"ok": true}')
    drill.step("finish the run that was open", *words)
    drill.require(copied["events"] == verified["events"], "the copy has everything, too")
    drill.step("verify the copy as a home", "journal", "verify", "--replay", home=drill.folder / "copy")


def damaged_file(drill: Drill) -> None:
    """2. The disk has damaged the file: salvage it."""
    journal, draw = drill.home / "journal.db", random.Random(18)
    pages = journal.stat().st_size // PAGE
    with journal.open("r+b") as file:
        file.write(bytes(100))  # the head of the file: SQLite reads nothing of it any more
        for page in draw.sample(range(1, pages), k=max(1, pages // 1_000)):
            file.seek(page * PAGE)
            file.write(draw.randbytes(PAGE))
    target = drill.folder / "salvaged"
    report = drill.step("salvage the damaged file", "db", "salvage", str(target), "--reason", "the disk failed")
    say(f"salvaged {report['streams']} streams, lost {len(report['lost'])}")
    drill.step("verify what was salvaged", "journal", "verify", "--replay", home=target)
    drill.step("start a run in it", "run", "start", "busy.yaml", home=target)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def events_of(words: Sequence[str]) -> int:
    return int(words[0].replace("_", "").replace(",", "")) if words else 2_000


if __name__ == "__main__":
    raise SystemExit(main(events_of(sys.argv[1:])))
