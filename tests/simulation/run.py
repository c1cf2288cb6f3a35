"""The command of the simulation: `python tests/simulation/run.py --seed 0 --count 20000`, or one seed with its story.

A seed that finds something is printed with its story and the command that repeats it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from simulation.day import Outcome, simulate

CHUNK = 50
TALE_LINES = 400


def chunk(first: int, count: int, is_fleet: bool) -> tuple[int, int, list[Outcome]]:
    """Simulate some seeds: how many, how many events they wrote, and those that found something."""
    outcomes = [simulate(seed, is_fleet=is_fleet) for seed in range(first, first + count)]
    return count, sum(outcome.events for outcome in outcomes), [outcome for outcome in outcomes if outcome.broken]


def report(outcome: Outcome, *, lines: int = TALE_LINES) -> str:
    """What a seed found, its story, and how to see it again."""
    broken = "\n".join(f"  {words}" for words in outcome.broken[:5])
    tale = "\n".join(outcome.tale[-lines:])
    fleet = " --fleet" if outcome.is_fleet else ""
    command = f"python tests/simulation/run.py --seed {outcome.seed} --count 1 --story{fleet}"
    return f"{tale}\n\nseed {outcome.seed} broke:\n{broken}\nrepeat it: {command}\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="simulate handrail")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=2_000, help="how many seeds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--story", action="store_true", help="tell the story even if all is well")
    parser.add_argument("--fleet", action="store_true", help="machines, lanes, labels, a lossy host")
    parser.add_argument("--keep-on", action="store_true", help="list all seeds that find something")
    parser.add_argument("--digest", action="store_true", help="print the hash of each seed's journal")
    asked = parser.parse_args(arguments)
    if asked.count == 1 or asked.digest:
        return _one_by_one(asked)
    return _many(asked)


def _one_by_one(asked: argparse.Namespace) -> int:
    worst = 0
    for seed in range(asked.seed, asked.seed + asked.count):
        outcome = simulate(seed, is_fleet=asked.fleet)
        worst |= bool(outcome.broken)
        if asked.digest:
            sys.stdout.write(f"{seed} {outcome.digest}\n")
        elif asked.story or outcome.broken:
            sys.stdout.write(report(outcome, lines=10**6))
    return worst


def _many(asked: argparse.Namespace) -> int:
    began = time.monotonic()
    seeds = events = 0
    found: list[Outcome] = []
    firsts = range(asked.seed, asked.seed + asked.count, CHUNK)
    last = asked.seed + asked.count
    with ProcessPoolExecutor(asked.jobs) as pool:
        chunks = [pool.submit(chunk, first, min(CHUNK, last - first), asked.fleet) for first in firsts]
        for future in chunks:
            count, written, broken = future.result()
            seeds, events = seeds + count, events + written
            found += broken
            if found and not asked.keep_on:
                pool.shutdown(cancel_futures=True)
                break
    for outcome in found if asked.keep_on else []:
        sys.stdout.write(f"seed {outcome.seed}: {outcome.broken[0][:300]}\n")
    if found and not asked.keep_on:
        sys.stdout.write(report(found[0]))
    took = time.monotonic() - began
    sys.stdout.write(f"{seeds} seeds, {events} events, {len(found)} broken, {took:.1f} s, {seeds / took:.0f} seeds/s\n")
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
