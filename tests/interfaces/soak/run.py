"""A soak: a mixed load with faults for many minutes, a table of what it took over time, and whether that is flat.

    make soak MINUTES=30          (python tests/interfaces/soak/run.py [MINUTES])

A real server and a worker on one home. Scripts start runs that complete, fail after retries, are undone or wait for a
person; a person answers; agents come and go over MCP; four readers follow the live feed. Meanwhile the worker is killed
(kill -9) and started again, the journal is verified, backed up and pruned, and completed runs are archived. Memory,
descriptors and the WAL are those of the server, from the system; latency is that of all requests, judged by
what a process takes that does nothing. In the end the server is stopped in order, the journal verified with a replay,
and every run that was acknowledged is looked for."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from signal import SIGTERM
from statistics import median

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from handrail.assembly.opening import open_reader
from handrail.settings import read_settings
from interfaces.http.live_console import LiveConsole, serving
from interfaces.shell import Process
from interfaces.soak.load import Load
from interfaces.soak.verdict import LIMITS, grown, growth

CONFIG = '[retention]\narchive_after = "1h"\n'
SAMPLES = 60
SAMPLE_S_MIN = 2.0
COLUMNS = ("minute", "memory MB", "descriptors", "WAL MB", "p50 ms", "p95 ms", "bare ms", "journal MB", "runs")
BARE = (sys.executable, "-I", "-S", "-c", "pass")
ROWS = 15


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Soak:
    """A soak of one server."""

    def __init__(self, console: LiveConsole, minutes: float) -> None:
        self.console, self.seconds = console, 60 * minutes
        self.load = Load(console, time.monotonic() + self.seconds)
        self.samples: dict[str, list[float]] = {name: [] for name in (*COLUMNS, *LIMITS)}
        self.failed: list[str] = []

    async def run(self) -> None:
        """Until the time is over."""
        await asyncio.gather(
            self.load.run(),
            self._sampling(),
            self._killing(),
            self._operating(("journal", "verify"), every_s=60),
            self._archiving(every_s=75),
            self._operating(("db", "prune"), every_s=120),
            self._backing_up(every_s=90),
        )

    async def _sampling(self) -> None:
        began, every_s = time.monotonic(), max(SAMPLE_S_MIN, self.seconds / SAMPLES)
        process = Path(f"/proc/{self.console.process.pid}")
        home = self.console.shell.home
        while not self.load.is_over:
            await asyncio.sleep(every_s)
            latencies, self.load.latencies_ms = sorted(self.load.latencies_ms), []
            if not latencies:
                continue
            bare_ms = median([await _bare_ms() for _ in range(3)])
            found = {
                "minute": (time.monotonic() - began) / 60,
                "memory MB": _resident_mb(process),
                "descriptors": float(len(list((process / "fd").iterdir()))),
                "WAL MB": _mb(home / "journal.db-wal"),
                "journal MB": _mb(home / "journal.db"),
                "p50 ms": latencies[len(latencies) // 2],
                "p95 ms": latencies[int(0.95 * len(latencies))],
                "bare ms": bare_ms,
                "runs": float(len(self.load.started)),
            }
            found |= {f"{name} / bare": found[f"{name} ms"] / bare_ms for name in ("p50", "p95")}
            for name, value in found.items():
                self.samples[name].append(value)

    async def _killing(self) -> None:
        """A worker beside the server, which is killed and started again."""
        while not self.load.is_over:
            with self.console.shell.process("worker", "--metrics", "0") as worker:
                await asyncio.sleep(min(self.seconds / 4, 45))
                worker.kill()
                self.load.counts["workers killed"] += 1

    async def _operating(self, words: Sequence[str], *, every_s: float) -> None:
        while not self.load.is_over:
            await asyncio.sleep(min(every_s, self.seconds / 4))
            code, out = await self._command(*words)
            self.load.counts[" ".join(words)] += 1
            if code:
                self.failed.append(f"{' '.join(words)}: exit {code}: {out[-300:]}")

    async def _archiving(self, *, every_s: float) -> None:
        """Completed runs leave the journal, a while after they have ended."""
        while not self.load.is_over:
            await asyncio.sleep(min(every_s, self.seconds / 4))
            ended = list(self.load.completed)
            del self.load.completed[:]
            await asyncio.sleep(2)  # so that the last of them has ended, too
            code, out = await self._command("db", "archive", *ended)
            self.load.counts["runs archived"] += len(ended)
            if code:
                self.failed.append(f"db archive: exit {code}: {out[-300:]}")

    async def _backing_up(self, *, every_s: float) -> None:
        backups = self.console.shell.folder / "backups"
        number = 0
        while not self.load.is_over:
            await asyncio.sleep(min(every_s, self.seconds / 3))
            code, out = await self._command("db", "backup", str(backups / f"b{number}"))
            number += 1
            self.load.counts["backups"] += 1
            if code:
                self.failed.append(f"db backup: exit {code}: {out[-300:]}")
            shutil.rmtree(backups / f"b{number - 2}", ignore_errors=True)

    async def _command(self, *words: str) -> tuple[int, str]:
        process: Process = self.console.shell.process(*words, "--json")
        code, out, err = await asyncio.to_thread(process.end)
        return code, out + err


async def _bare_ms() -> float:
    """How long a process takes that does nothing: how fast the machine is now."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(*BARE)
    await process.wait()
    return 1_000 * (time.perf_counter() - began)


def _resident_mb(process: Path) -> float:
    for line in (process / "status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1_000
    raise AssertionError("the system does not say how much memory it has")


def _mb(file: Path) -> float:
    try:
        return file.stat().st_size / 1e6
    except FileNotFoundError:
        return 0.0


def verified(soak: Soak) -> list[str]:
    """What is wrong in the end: with the journal, with runs that were acknowledged, with anything that was asked."""
    console = soak.console
    console.process.send(SIGTERM)
    code, _, err = console.process.end()
    wrong = [*soak.failed, *soak.load.problems]
    if code:
        wrong.append(f"the server ended with {code}: {err[-300:]}")
    if not console.shell.json("journal", "verify", "--replay")["ok"]:
        wrong.append("the journal does not verify")
    lost = asyncio.run(_missing(console, soak.load.started))
    return wrong + [f"{len(lost)} acknowledged runs are lost: {lost[:3]}"] * bool(lost)


async def _missing(console: LiveConsole, runs: Sequence[str]) -> list[str]:
    settings = read_settings({"home": str(console.shell.home), "project": str(console.shell.folder)}, {})
    async with open_reader(settings) as look:
        return [run for run in runs if await look.store.run(run) is None]


def print_table(soak: Soak) -> None:
    """The samples, thinned out, and what was done."""
    say("  ".join(f"{name:>11}" for name in COLUMNS))
    count = len(soak.samples["minute"])
    for row in range(0, count, max(1, count // ROWS)):
        say("  ".join(f"{soak.samples[name][row]:11.1f}" for name in COLUMNS))
    say("\n" + ", ".join(f"{name} {number}" for name, number in sorted(soak.load.counts.items())))


def main(minutes: float) -> int:
    """Soak, print, judge; 0 if all is flat and nothing was lost."""
    folder = Path(tempfile.mkdtemp(prefix="handrail-soak-"))
    (folder / "plan.txt").write_text("here", encoding="utf-8")
    with ExitStack() as resources:
        resources.callback(shutil.rmtree, folder, ignore_errors=True)
        soak = Soak(resources.enter_context(serving(folder, config=CONFIG)), minutes)
        asyncio.run(soak.run())
        wrong = verified(soak)
        print_table(soak)
    risen = grown(soak.samples)
    for name in LIMITS:
        both = growth(soak.samples[name])
        words = "too few samples" if both is None else f"{both[0]:.1f} -> {both[1]:.1f}"
        say(f"{name:<12} second quarter -> last: {words}{'  NOT FLAT' if name in risen else ''}")
    for one in wrong[:20]:
        say(f"WRONG: {one}")
    say("flat, and nothing was lost" if not (risen or wrong) else "NOT as it should be")
    return int(bool(risen or wrong))


if __name__ == "__main__":
    raise SystemExit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0))
