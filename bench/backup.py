"""How long from a deleted home to working again? How long does a backup take, and what does it cost those who write?

    python bench/backup.py [events] [folder]     (1,000,000 events by default: minutes, and 1 GB of disk)

Makes a home with that many events in runs of 25, backs it up, verifies the backup, deletes the home, restores it, and
starts a run in it: each by the command that a person would type, in a process of its own."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec.structs import replace

from handrail.assembly.opening import open_store
from handrail.domain.journal.chain import Head
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import DecisionRecorded, Event, RunStarted
from handrail.domain.json import JsonObject, canonical_bytes, digest
from handrail.engine.proving.stream_fold import change_of
from handrail.settings import read_settings

EVENTS = 1_000_000
RUN_LENGTH = 25
AT_ONCE = 40
DRILL_S_MAX = 60.0
PLAN = "id: ship\nsteps:\n  - {id: tag, tool: value.set, args: {value: 1}}\n"
DEFINITION: JsonObject = {"id": "bench", "steps": []}


async def fill(home: Path, events: int) -> None:
    """A home with that many events."""
    settings = read_settings({"home": str(home), "project": str(home.parent)}, {})
    texts = ((digest(DEFINITION), canonical_bytes(DEFINITION)),)
    async with open_store(settings) as opened:

        async def write(number: int) -> None:
            stream = f"run_{number:08d}"
            reason = f"because the build of module {number % 997} took {number % 61} s, which is more than we allow"
            decided: list[Event] = [DecisionRecorded(decision="go on", reason=reason)] * (RUN_LENGTH - 1)
            first: Event = RunStarted(definition=digest(DEFINITION), workflow="bench@1", goal=f"goal {number}")
            records, _ = opened.record_writer.write(Head(stream), [first, *decided], actor="agent:bench")
            change = change_of(stream, map(entry_of, records))
            await opened.journal.append(records, replace(change, definitions=texts))

        for start in range(0, events // RUN_LENGTH, AT_ONCE):
            await asyncio.gather(*(write(number) for number in range(start, start + AT_ONCE)))


def timed(name: str, home: Path, *words: str) -> tuple[float, str]:
    """How long a command takes, and what it printed."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "handrail", *words],
        cwd=home.parent,
        env={**os.environ, "HANDRAIL_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    took_s, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode:
        sys.exit(f"{name} failed ({done.returncode}): {done.stdout}{done.stderr}")
    print(f"{name:<34}{took_s:8.1f} s, CPU {cpu_s:.1f} s")
    return took_s, done.stdout


def main(events: int, folder: Path) -> int:
    home, backups = folder / "home", folder / "backups"
    (folder / "plan.yaml").write_text(PLAN)
    started = time.perf_counter()
    asyncio.run(fill(home, events))
    size = (home / "journal.db").stat().st_size
    print(f"{events:,} events, {size / 1e6:.0f} MB, written in {time.perf_counter() - started:.0f} s")
    timed("back up", home, "db", "backup", str(backups))
    (backup,) = backups.iterdir()
    packed = sum(file.stat().st_size for file in backup.iterdir())
    print(f"{'size of the backup':<34}{packed / size:8.2f} of the journal")
    timed("verify the backup", home, "db", "verify", str(backup))
    shutil.rmtree(home)
    restore_s, _ = timed("restore, verified", home, "db", "restore", str(backup), str(home))
    run_s, _ = timed("start a run in it", home, "run", "start", "plan.yaml")
    drill_s = restore_s + run_s
    scaled = drill_s * EVENTS / events
    verdict = "ok" if scaled <= DRILL_S_MAX else "missed"
    print(
        f"{'from a deleted home to working':<34}{drill_s:8.1f} s  (1M events: at most {DRILL_S_MAX:.0f} s: {verdict})"
    )
    return 0 if verdict == "ok" else 1


if __name__ == "__main__":
    count = int(sys.argv[1].replace("_", "")) if len(sys.argv) > 1 else EVENTS
    if len(sys.argv) > 2:
        sys.exit(main(count, Path(sys.argv[2])))
    with tempfile.TemporaryDirectory() as made:
        sys.exit(main(count, Path(made)))
