"""How fast is handrail's engine beside DBOS and LangGraph, all on SQLite, and beside the least an engine can do?

    python bench/engines.py [--rounds 5] [--quick] [--only pure|effect|sequential|fanout|growth|restart]

Each peer is installed into an environment of its own under build/bench/, once. In every round every engine does the
same work in a fresh process and a fresh folder, taking turns; a ratio is the median of the rounds' ratios, so that
neighbours in time are compared. What the engines do is described in bench/peers/ and bench/handrail_steps.py."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

ROOT: Final = Path(__file__).parent.parent
CACHE: Final = ROOT / "build" / "bench"
READY: Final = "ready"
"""A file in a peer's environment: what is installed there, once it is whole."""
PEERS: Final = {
    "dbos": ("dbos==3.3.0",),
    "langgraph": ("langgraph==1.2.20", "langgraph-checkpoint-sqlite==3.1.2"),
}
QUIET: Final = {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}
"""No peer reports anywhere while it is measured."""
INSTALL_S_MAX: Final = 900
MEASURE_S_MAX: Final = 600
TRIES_MAX, TURN_S_MIN = 5, 1.0


class LeftOut(Exception):
    """An engine that can't be measured, and why."""


@dataclass(frozen=True)
class Sizes:
    """How much work each question is asked with."""

    runs: int = 200
    steps: int = 10
    grown: int = 1600
    sequential: int = 1000
    fan: int = 500
    left_open: int = 1000


QUICK: Final = Sizes(runs=40, grown=320, sequential=150, fan=200, left_open=200)


@dataclass(frozen=True)
class Measured:
    """What one engine said of one piece of work."""

    steps: int
    seconds: float
    cpu_seconds: float
    rss_kb: int
    db_bytes: int

    @property
    def rate(self) -> float:
        return self.steps / self.seconds

    @property
    def cpu_us(self) -> float:
        return self.cpu_seconds / self.steps * 1e6


@dataclass(frozen=True)
class Assembly:
    """One of those that take turns, and the work it is given."""

    name: str
    python: Path
    module: str
    work: tuple[str, ...]
    before: tuple[str, ...] = ()
    """What a process before it does in the same folder, unmeasured."""


Rounds: TypeAlias = dict[str, list[Measured | None]]
"""By engine, what it measured in each round; None where it could not."""


@dataclass(frozen=True)
class Target:
    """A figure that is judged; without a limit it is only shown."""

    words: str
    value: Callable[[Rounds], float | None]
    limit: float | None = None
    form: str = "{:.1f}"
    most: bool = False

    def verdict(self, value: float | None) -> str:
        if value is None:
            return "not measured"
        if self.limit is None:
            return ""
        return "ok" if (value <= self.limit if self.most else value >= self.limit) else "MISSED"


@dataclass(frozen=True)
class Question:
    """One piece of work for several engines, and what is expected."""

    name: str
    words: str
    engines: Sequence[Assembly]
    targets: Sequence[Target]


# ---- The questions.


def questions(sizes: Sizes, pythons: dict[str, Path]) -> list[Question]:
    """Everything that is asked, of those engines that are there."""
    many = ("--runs", str(sizes.runs), "--steps", str(sizes.steps))
    return [
        Question(
            "pure",
            f"pure steps, {sizes.runs} runs x {sizes.steps}",
            everyone(pythons, "pure", many),
            [*ratios(dbos=15, langgraph=8, floor=0.3), cpu(300)],
        ),
        Question(
            "effect",
            f"steps with an effect, intent first, {sizes.runs} runs x {sizes.steps}",
            everyone(pythons, "effect", many),
            [*ratios(dbos=8), cpu(500)],
        ),
        Question(
            "sequential",
            f"one run of {sizes.sequential:,} steps, one after the other",
            [raw_commits(sizes.sequential), *everyone(pythons, "sequential", ("--steps", str(sizes.sequential)))],
            ratios(dbos=4, langgraph=2, commits=0.25),
        ),
        Question(
            "fanout",
            f"one run of {sizes.fan} steps, all at once",
            everyone(pythons, "fanout", ("--steps", str(sizes.fan))),
            ratios(dbos=30),
        ),
        growth(sizes),
        restart(sizes),
    ]


def everyone(pythons: dict[str, Path], shape: str, size: tuple[str, ...]) -> list[Assembly]:
    """The engines that can do a shape, in the order in which they take turns."""
    work = ("--shape", shape, *size)
    engines = [Assembly("floor", Path(sys.executable), "bench.peers.floor", work)]
    if python := pythons.get("dbos"):
        engines += [
            Assembly("dbos", python, "bench.peers.dbos_steps", work),
            Assembly("dbos-wal", python, "bench.peers.dbos_steps", (*work, "--wal")),
        ]
    if python := pythons.get("langgraph"):
        engines.append(Assembly("langgraph", python, "bench.peers.langgraph_steps", work))
    return [*engines, ours("handrail", *work)]


def ours(name: str, *work: str, before: tuple[str, ...] = ()) -> Assembly:
    return Assembly(name, Path(sys.executable), "bench.handrail_steps", work, before)


def raw_commits(rows: int) -> Assembly:
    work = ("--shape", "commits", "--steps", str(rows))
    return Assembly("commits", Path(sys.executable), "bench.peers.floor", work)


def growth(sizes: Sizes) -> Question:
    few, many = f"handrail, {sizes.runs} runs", f"handrail, {sizes.grown} runs"
    more_runs = sizes.grown - sizes.runs
    more_steps = more_runs * sizes.steps
    work = ("--shape", "pure", "--steps", str(sizes.steps), "--runs")
    return Question(
        "growth",
        f"growth from {sizes.runs} to {sizes.grown:,} runs x {sizes.steps}",
        [ours(few, *work, str(sizes.runs)), ours(many, *work, str(sizes.grown))],
        [
            Target("steps/s, many runs beside few", over(many, few, lambda a, b: a.rate / b.rate), 0.9, "{:.2f}"),
            Target(
                "bytes on disk, each further step",
                over(many, few, lambda a, b: (a.db_bytes - b.db_bytes) / more_steps),
                700,
                "{:,.0f}",
                most=True,
            ),
            Target(
                "kB of peak RSS, each further closed run",
                over(many, few, lambda a, b: (a.rss_kb - b.rss_kb) / more_runs),
                5,
                most=True,
            ),
        ],
    )


def restart(sizes: Sizes) -> Question:
    size = ("--runs", str(sizes.left_open), "--steps", "1")
    parts = ours("handrail", "--shape", "restart", *size, before=("--shape", "open", *size))
    taken_up = Target("seconds until all are taken up", one("handrail", lambda a: a.seconds), 1, "{:.2f}", most=True)
    return Question("restart", f"restart after a crash with {sizes.left_open:,} open runs", [parts], [taken_up])


def ratios(**limits: float) -> list[Target]:
    """Handrail's steps a second beside those of others; DBOS with WAL is shown beside them, without a limit."""
    asked: dict[str, float | None] = dict(limits)
    if "dbos" in asked:
        asked["dbos-wal"] = None
    return [
        Target(f"handrail beside {name}", over("handrail", name, lambda a, b: a.rate / b.rate), limit, "{:.2f}")
        for name, limit in asked.items()
    ]


def cpu(limit_us: float) -> Target:
    return Target("handrail's CPU a step, us", one("handrail", lambda a: a.cpu_us), limit_us, "{:,.0f}", most=True)


def one(name: str, figure: Callable[[Measured], float]) -> Callable[[Rounds], float | None]:
    """The median over the rounds of one engine's figure."""
    return lambda rounds: median(figure(a) for a in rounds.get(name, ()) if a)


def over(name: str, other: str, figure: Callable[[Measured, Measured], float]) -> Callable[[Rounds], float | None]:
    """The median over the rounds of a figure of two engines, for those rounds that both have."""
    return lambda rounds: median(
        figure(a, b) for a, b in zip(rounds.get(name, ()), rounds.get(other, ()), strict=False) if a and b
    )


def median(values: Iterable[float]) -> float | None:
    found = list(values)
    return statistics.median(found) if found else None


# ---- The peers' environments.


def peers() -> dict[str, Path]:
    """The interpreters of the peers that could be installed; the others are named, with the reason."""
    pythons = {}
    for peer, pins in PEERS.items():
        try:
            pythons[peer] = environment(CACHE / peer, pins)
            print(f"beside {' '.join(pins)}", flush=True)
        except LeftOut as reason:
            print(f"left out: {peer}: {reason}", flush=True)
    return pythons


def environment(folder: Path, pins: Sequence[str]) -> Path:
    """The interpreter of an environment that holds these packages; kept as long as the pins are the same."""
    python, ready, wanted = folder / "bin" / "python", folder / READY, "\n".join(pins)
    if ready.exists() and ready.read_text(encoding="utf-8") == wanted:
        return python
    print(f"installing {' '.join(pins)} (once)", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    called([sys.executable, "-m", "venv", folder], seconds_max=INSTALL_S_MAX)
    called([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pins], seconds_max=INSTALL_S_MAX)
    ready.write_text(wanted, encoding="utf-8")
    return python


def called(command: Sequence[str | Path], *, seconds_max: int) -> str:
    """What a command prints; LeftOut with its last words if it fails."""
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | QUIET, capture_output=True, text=True, timeout=seconds_max, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LeftOut(str(error)) from error
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()
        raise LeftOut(words[-1])
    return done.stdout


# ---- Taking turns.


@dataclass
class Turns:
    """The rounds of one question; an engine that fails once is left out of the rest."""

    question: Question
    rounds: Rounds = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def take(self, number: int) -> None:
        """One round, started by another engine than the last."""
        engines = self.question.engines
        first = number % len(engines)
        for parts in (*engines[first:], *engines[:first]):
            self.rounds.setdefault(parts.name, []).append(self._measured(parts))

    def _measured(self, parts: Assembly) -> Measured | None:
        if parts.name in self.failures:
            return None
        try:
            return settled(parts)
        except LeftOut as reason:
            self.failures[parts.name] = str(reason)
            return None


def settled(parts: Assembly) -> Measured:
    """One turn: work that is soon done is done again, and the middle one counts, because a blink is mostly noise."""
    done = [measured(parts)]
    while len(done) < TRIES_MAX and sum(each.seconds for each in done) < TURN_S_MIN:
        done.append(measured(parts))
    return sorted(done, key=lambda each: each.rate)[len(done) // 2]


def measured(parts: Assembly) -> Measured:
    """Let an engine do its work in a process and a folder of its own."""
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        where = ("--db", str(Path(folder) / "journal.db"))
        if parts.before:
            called([parts.python, "-m", parts.module, *parts.before, *where], seconds_max=MEASURE_S_MAX)
        said = called([parts.python, "-m", parts.module, *parts.work, *where], seconds_max=MEASURE_S_MAX)
    try:
        return Measured(**json.loads(said.splitlines()[-1]))
    except (IndexError, ValueError, TypeError) as error:
        raise LeftOut(f"its answer can't be read: {said.strip()[-80:]!r}") from error


# ---- The table.


def tell(turns: Turns) -> bool:
    """Print what was measured beside what is expected; whether something was missed, or handrail not measured."""
    for name, rounds in turns.rounds.items():
        if found := [each for each in rounds if each]:
            rate, cpu_us, rss_kb = (
                statistics.median(figures)
                for figures in zip(*((each.rate, each.cpu_us, each.rss_kb) for each in found), strict=True)
            )
            size = f"{rss_kb / 1000:,.0f} MB RSS"
            print(f"  {name:30} {rate:>12,.0f} steps/s {cpu_us:>8,.0f} us CPU/step {size:>12}")
        else:
            print(f"  {name:30} left out: {turns.failures[name]}")
    verdicts = []
    for target in turns.question.targets:
        value = target.value(turns.rounds)
        verdicts.append(target.verdict(value))
        figure = "-" if value is None else target.form.format(value)
        limit = "" if target.limit is None else ("<= " if target.most else ">= ") + target.form.format(target.limit)
        print(f"  {target.words:52} {figure:>12}  {limit:>10}  {verdicts[-1]}")
    return "MISSED" in verdicts or any(name.startswith("handrail") for name in turns.failures)


def options() -> Namespace:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    names = [question.name for question in questions(QUICK, {})]
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="less work and two rounds: a hint, not a figure")
    parser.add_argument("--only", choices=names, help="one question alone")
    return parser.parse_args()


def main() -> int:
    chosen = options()
    CACHE.mkdir(parents=True, exist_ok=True)
    sizes, rounds = (QUICK, min(2, chosen.rounds)) if chosen.quick else (Sizes(), chosen.rounds)
    is_missed = False
    for question in questions(sizes, peers()):
        if chosen.only not in {None, question.name}:
            continue
        print(f"\n{question.name}: {question.words}; {rounds} rounds", flush=True)
        turns = Turns(question)
        for number in range(rounds):
            turns.take(number)
        is_missed |= tell(turns)
    return int(is_missed)


if __name__ == "__main__":
    raise SystemExit(main())
