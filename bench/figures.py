"""What do metrics cost the journal: without measuring, with it, and while the journal is followed as well?

    python bench/figures.py [folder]

The same appends from 64 writers to a SQLite store on the same disk, in interleaved repeats; the median of the ratios
within each repeat. Without an exporter, only an empty function is called for each transaction."""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench.journal import Appends, a_run
from handrail.domain.metrics.figures import Figures
from handrail.engine.measuring.journal_figures import JournalFigures
from handrail.engine.measuring.measures import NO_MEASURES
from handrail.interfaces.metrics.process_figures import ProcessFigures
from handrail.storage.sqlite.store import SqliteStore

REPEATS = 9
WRITERS = 64
ROUNDS = 6
MEASURED_LEAST = 0.95
FOLLOWED_LEAST = 0.5
"""Who follows shares the process with who writes: at full speed that costs, and only there."""


async def rate(folder: Path, *, measures: bool, follows: bool) -> float:
    """Events a second."""
    work = [[a_run() for _ in range(WRITERS)] for _ in range(ROUNDS)]
    given = ProcessFigures() if measures else NO_MEASURES
    async with await SqliteStore.open(folder / "journal.db", measures=given) as store:

        async def write(appends: Appends) -> None:
            for record, change in appends:
                await store.append([record], change)

        await asyncio.gather(*(write(a_run()) for _ in range(WRITERS)))
        figures = JournalFigures(store, Figures())
        if follows:
            await figures.open()
        started_s = time.perf_counter()
        for runs in work:
            await asyncio.gather(*map(write, runs))
        took_s = time.perf_counter() - started_s
        await figures.close()
        return sum(len(run) for runs in work for run in runs) / took_s


async def main(parent: Path) -> int:
    plain: list[float] = []
    measured: list[float] = []
    followed: list[float] = []
    for _ in range(REPEATS):
        for rates, measures, follows in ((plain, False, False), (measured, True, False), (followed, True, True)):
            with tempfile.TemporaryDirectory(dir=parent) as folder:
                rates.append(await rate(Path(folder), measures=measures, follows=follows))
    lines = {
        "measured / plain": (_ratio(measured, plain), MEASURED_LEAST),
        "measured and followed at full speed / plain": (_ratio(followed, plain), FOLLOWED_LEAST),
    }
    print(f"plain: {statistics.median(plain):,.0f} events a second")
    for name, (value, least) in lines.items():
        print(f"{name}: {value:.2f} (at least {least}) {'ok' if value >= least else 'missed'}")
    return int(any(value < least for value, least in lines.values()))


def _ratio(rates: list[float], base: list[float]) -> float:
    return statistics.median(one / other for one, other in zip(rates, base, strict=True))


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.gettempdir()))))
