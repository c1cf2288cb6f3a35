"""Does a journal from which 90 % of the events were archived stay whole, get smaller, and take appends as an empty one?

    python bench/retention.py [events] [folder]     (1,000,000 events by default: minutes, and 1 GB of disk)

Makes a home with that many events in ended runs of 25, verifies it, archives nine of ten runs, verifies again, brings
some runs back, and compares them event by event. Appends are measured in turns: into this journal, and into an empty
one; and while runs are archived. Figures are ratios within one run."""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from handrail.assembly.opening import OpenStore, open_store
from handrail.assembly.retention.archives import archiver_of
from handrail.assembly.stores import verifier_of
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import DecisionRecorded, Event, RunCompleted, RunStarted
from handrail.domain.json import JsonObject, canonical_bytes, digest
from handrail.engine.proving.audit import verify
from handrail.engine.proving.stream_fold import change_of
from handrail.engine.stream_pages import records_of
from handrail.settings import read_settings

EVENTS = 1_000_000
RUN_LENGTH = 25
AT_ONCE = 40
BACK = 50
TURNS, TURN_RUNS = 7, 200
SIZE_MAX = 0.35
APPEND_MIN = 0.8
PERSON = "person:bench"
DEFINITION: JsonObject = {"id": "bench", "steps": []}


def events_of_run(opened: OpenStore, number: int) -> tuple[str, list[Record]]:
    """The events of a run that has ended."""
    stream = f"run_{number:08d}"
    reason = f"because the build of module {number % 997} took {number % 61} s, which is more than we allow"
    decided: list[Event] = [DecisionRecorded(decision="go on", reason=reason)] * (RUN_LENGTH - 2)
    first: Event = RunStarted(definition=digest(DEFINITION), workflow="bench@1", goal=f"goal {number}")
    records, _ = opened.record_writer.write(Head(stream), [first, *decided, RunCompleted()], actor="agent:bench")
    return stream, records


async def write(opened: OpenStore, number: int) -> None:
    """Append one run, as whole."""
    stream, records = events_of_run(opened, number)
    texts = ((digest(DEFINITION), canonical_bytes(DEFINITION)),)
    await opened.journal.append(records, replace(change_of(stream, map(entry_of, records)), definitions=texts))


async def fill(opened: OpenStore, first: int, runs: int) -> float:
    """Write runs, many at once; events a second."""
    started = time.perf_counter()
    for start in range(first, first + runs, AT_ONCE):
        await asyncio.gather(*(write(opened, number) for number in range(start, min(start + AT_ONCE, first + runs))))
    return runs * RUN_LENGTH / (time.perf_counter() - started)


async def verified(opened: OpenStore, home: Path) -> tuple[float, bool]:
    """How long a whole verification takes, and whether it says yes."""
    settings = read_settings({"home": str(home), "project": str(home.parent)}, {})
    started = time.perf_counter()
    verdict = await verify(opened.store, opened.checkpoints, await verifier_of(settings, opened.store))
    return time.perf_counter() - started, verdict.ok


async def appends_beside(opened: OpenStore, folder: Path, first: int) -> float:
    """Appends into this journal beside those into an empty one, in turns: the median of the ratios."""
    ratios = []
    for turn in range(TURNS):
        fresh = read_settings({"home": str(folder / f"empty-{turn}"), "project": str(folder)}, {})
        async with open_store(fresh) as empty:
            ours = await fill(opened, first + turn * TURN_RUNS, TURN_RUNS)
            ratios.append(ours / await fill(empty, 0, TURN_RUNS))
    return statistics.median(ratios)


async def slowest_append(opened: OpenStore, first: int, until: asyncio.Future[Any]) -> tuple[float, int]:
    """The slowest of the appends that are made, one after the other, until something has ended."""
    slowest_s, count = 0.0, 0
    while not until.done():
        started = time.perf_counter()
        await write(opened, first + count)
        slowest_s, count = max(slowest_s, time.perf_counter() - started), count + 1
    return slowest_s, count


async def measure(events: int, folder: Path) -> bool:
    """All figures; whether all are as they should be."""
    home, runs = folder / "home", events // RUN_LENGTH
    settings = read_settings({"home": str(home), "project": str(folder)}, {})
    async with open_store(settings) as opened:
        await fill(opened, 0, runs)
    before = settings.journal.stat().st_size
    async with open_store(settings) as opened:
        old = [f"run_{number:08d}" for number in range(runs * 9 // 10)]
        kept = {run: await records_of(opened.store, run) for run in old[:: max(1, len(old) // BACK)]}
        before_s, is_whole = await verified(opened, home)
        archiver = await archiver_of(opened)
        started = time.perf_counter()
        archiving = asyncio.ensure_future(archiver.archive(old, reason="bench", actor=PERSON))
        slowest_s, others = await slowest_append(opened, 2 * runs, archiving)
        done = await archiving
        archive_s = time.perf_counter() - started
        giving = asyncio.ensure_future(archiver.give_back())
        slowest_back_s, more = await slowest_append(opened, 3 * runs, giving)
        await giving
        after_s, is_still_whole = await verified(opened, home)
        archived_bytes = sum(one.bytes for one in done.archives)
    after = settings.journal.stat().st_size
    async with open_store(settings) as opened:
        archiver = await archiver_of(opened)
        await archiver.unarchive(list(kept), reason="bench", actor=PERSON)
        is_equal = all([await records_of(opened.store, run) == records for run, records in kept.items()])
        ratio = await appends_beside(opened, folder, 4 * runs)
    written = (others + more) * RUN_LENGTH * before / events
    size = (after - written) / before
    print(f"{events:,} events, {before / 1e6:.0f} MB; archived {done.events:,} in {archive_s:.0f} s")
    print(f"{'whole before / after':<44}{is_whole} / {is_still_whole}")
    print(f"{'verifying, after by before':<44}{after_s / before_s:8.2f}")
    print(f"{'the file, after by before':<44}{size:8.2f}  (at most {SIZE_MAX})")
    print(f"{'the archives by the file before':<44}{archived_bytes / before:8.2f}")
    print(f"{f'{len(kept)} runs came back equal':<44}{is_equal}")
    print(f"{'appends, by those into an empty journal':<44}{ratio:8.2f}  (at least {APPEND_MIN})")
    print(
        f"{'slowest append during archiving':<44}{slowest_s * 1e3:8.0f} ms of {others:,} appends of {RUN_LENGTH} events"
    )
    print(f"{'slowest append while space is given back':<44}{slowest_back_s * 1e3:8.0f} ms of {more:,} appends")
    return is_whole and is_still_whole and is_equal and size <= SIZE_MAX and ratio >= APPEND_MIN


def main(events: int, folder: Path) -> int:
    """Print the figures; 1 if one is not as it should be."""
    if asyncio.run(measure(events, folder)):
        return 0
    print("missed")
    return 1


if __name__ == "__main__":
    count = int(sys.argv[1].replace("_", "")) if len(sys.argv) > 1 else EVENTS
    if len(sys.argv) > 2:
        sys.exit(main(count, Path(sys.argv[2])))
    with tempfile.TemporaryDirectory() as made:
        sys.exit(main(count, Path(made)))
