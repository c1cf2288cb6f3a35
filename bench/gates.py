"""What does a gate cost? Ten trivial checks; a project's tests, and the same submission again; a large project.

    python bench/gates.py [--rounds 200]

The first figure is what handrail adds to rules that do nothing worth mentioning: ten of them on one output. The second
is a real project whose tests are run in the sandbox (or without one, where there is none: that is said), and submitted
again with nothing changed: the ratio is what the memory is worth. The third is how much later a command starts as a
check of a project of 10,000 files than by itself: it gets a view of the project that is thrown away, by every way that
this machine has (a copy is the last resort, and has no limit). Then the two figures of a gate's own cost there: each
rule that compares with the start of the run and one whole submission, without the time of its tests; and a check that
is answered from memory. Both stand beside `git status` of the same files, in the same rounds: that is what this machine
needs to look at so many files at all. CPU is that of handrail and of the processes that it starts."""

from __future__ import annotations

import asyncio
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from handrail.assembly.checks import gate_of
from handrail.domain.checks.judgement import Judgement
from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Prompt
from handrail.domain.run.baseline import Baseline
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import top_lane
from handrail.engine.checking.gate import QualityGate
from handrail.engine.checking.rule import NoMemory
from handrail.engine.sandbox import Job, Ran, Sandbox
from handrail.engine.tool import silent
from handrail.rules.files.baseline import observed
from handrail.settings import Settings, read_settings
from handrail.tools.sandbox.bubblewrap import Bubblewrap
from handrail.tools.sandbox.throw_away import ViewKind
from handrail.tools.sandbox.unconfined import Unconfined

TRIVIAL: Final[list[dict[str, Any]]] = [
    {"rule": "contains", "of": "text", "text": "done"},
    {"rule": "length", "of": "text", "min": 1},
] * 5
PYTEST: Final = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
MILLISECONDS_MAX: Final = 2.0
RATIO_MIN: Final = 20.0
FILES: Final = 40
MANY_FILES: Final = 10_000
FOLDER_FILES: Final = 100
START_MS_MAX: Final = 150.0
STARTS: Final = 15
REMEMBERED_MS_MAX: Final = 20.0
OWN_RATIO_MAX: Final = 6.0
REMEMBERED_RATIO_MAX: Final = 3.0
"""How many times `git status` each may take: the limit where a machine is too slow for the milliseconds."""
NO_BASELINE: Final = Run(id="run_22222222")
COMPARING: Final[list[dict[str, Any]]] = [
    {"rule": "files_changed", "paths": ["part-0"]},
    {"rule": "files_unchanged", "paths": ["part-1"]},
    {"rule": "diff_within", "paths": ["part-0"]},
    {"rule": "git_clean"},
    {"rule": "no_secrets", "since": "run"},
    {"rule": "commit_exists", "commit": "HEAD"},
    {"rule": "commits_since"},
]
SUBMISSION: Final[list[dict[str, Any]]] = [
    {"rule": "files_changed", "paths": ["part-0"]},
    {"rule": "no_secrets", "since": "run"},
    {"rule": "git_clean"},
    {"rule": "tests_pass", "paths": ["tests"]},
]
REMEMBERED: Final[list[dict[str, Any]]] = [{"rule": "compiles", "paths": ["part-0"]}]
TESTS: Final = {"pyproject.toml": "", "tests/test_one.py": "def test_one():\n    assert sum([1, 2]) == 3\n"}


def main() -> int:
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    rounds: int = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(measured(Path(folder), rounds))


async def measured(folder: Path, rounds: int) -> int:
    settings = settings_in(folder)
    gate = gate_of(settings)
    judging = judge(gate, TRIVIAL, {"text": "done"})
    spent = [await taken_ms(judging) for _ in range(rounds)]
    p50, p99 = statistics.median(spent), sorted(spent)[int(0.99 * rounds)]
    print(f"ten trivial checks: p50 {p50:.2f} ms, p99 {p99:.2f} ms (at most {MILLISECONDS_MAX:g} ms)")

    written(settings.project)
    if why_not := await gate.sandbox.trial():
        print(f"without a sandbox, since {why_not}")
        gate = replace(gate, sandbox=Unconfined(settings.project))
    tests = judge(gate, [{"rule": "tests_pass", "command": PYTEST}], {})
    first = await taken_ms(tests)
    again = statistics.median([await taken_ms(tests) for _ in range(9)])
    ratio = first / again
    print(f"tests of {FILES} files: first {first:.0f} ms, again {again:.1f} ms")
    print(f"the memory is worth {ratio:.0f} times (at least {RATIO_MIN:g})")
    later = await started(folder / "large")
    is_slow = [again > REMEMBERED_MS_MAX, await compared(folder / "repository")]
    return int(p50 > MILLISECONDS_MAX or ratio < RATIO_MIN or later > START_MS_MAX or any(is_slow))


async def started(folder: Path) -> float:
    """How many milliseconds later a command starts as a check of a large project, once the sandbox was tried."""
    settings = settings_in(folder)
    fill(settings.project, MANY_FILES)
    gate = gate_of(settings)
    if why_not := await gate.sandbox.trial():
        print(f"no command in a large project, since {why_not}")
        return 0.0
    alone = await median_ms(lambda: run_alone(settings.project))
    later = await median_ms(judge(gate, [{"rule": "command_succeeds", "argv": ["true"]}], {})) - alone
    print(f"a check of {MANY_FILES:,} files starts {later:.0f} ms later than alone (at most {START_MS_MAX:g} ms)")
    for way in ViewKind:
        sandbox = Bubblewrap(settings.project, way=way)
        spent = await median_ms(partial(sandbox.run, Job(argv=("true",))), 1 if way is ViewKind.COPY else STARTS)
        print(f"    the sandbox by {way}: {spent - alone:.0f} ms")
    return later


def fill(project: Path, files: int) -> None:
    for number in range(files):
        file = project / f"part-{number // FOLDER_FILES}" / f"file-{number}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"NUMBER = {number}\n" * 50, encoding="utf-8")


class Timed:
    """A sandbox that adds up how long its commands take."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox, self.caveat, self.spent_ms = sandbox, sandbox.caveat, 0.0

    async def trial(self) -> str:
        return await self._sandbox.trial()

    async def run(self, job: Job, *, progress: Any = silent) -> Ran:
        began = time.perf_counter()
        try:
            return await self._sandbox.run(job, progress=progress)
        finally:
            self.spent_ms += 1_000 * (time.perf_counter() - began)


@dataclass
class Cost:
    """What something cost in each round: wall time without that of commands, and CPU."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @property
    def p50(self) -> float:
        return statistics.median(self.wall)

    def line(self, limit_ms: float, status: Cost) -> str:
        cpu = statistics.median(self.cpu) / statistics.median(status.cpu)
        figures = f"p50 {self.p50:.0f} ms, {self.p50 / status.p50:.1f} times git status"
        return f"{figures} (at most {limit_ms:g} ms); CPU {statistics.median(self.cpu):.0f} ms, {cpu:.1f} times"


async def compared(folder: Path) -> bool:
    """Whether a gate itself takes too long on a large repository: to judge a submission, or to answer from memory."""
    small, large = repository(folder / "small", FILES), repository(folder / "large", MANY_FILES)
    for settings in (small, large):
        spent = await median_ms(partial(observed, settings.project))
        count = sum(1 for path in settings.project.rglob("*.py"))
        print(f"the look at {count:,} files for the start of a run: {spent:.1f} ms")
    run = Run(id="run_22222222", baselines={"": await observed(large.project) or Baseline()})
    (large.project / "part-0" / "file-0.py").write_text("NUMBER = -1\n", encoding="utf-8")
    git(large.project, "commit", "-qam", "work")
    gate = gate_of(large)
    if why_not := await gate.sandbox.trial():
        print(f"    without a sandbox, since {why_not}")
        gate = replace(gate, sandbox=Unconfined(large.project))
    costs = await own_costs(gate, large.project, run)
    status = costs.pop("git status")
    print(
        f"    git status on {MANY_FILES:,} files: p50 {status.p50:.0f} ms, CPU {statistics.median(status.cpu):.0f} ms"
    )
    slow = []
    for name, cost in costs.items():
        limit, most = (REMEMBERED_MS_MAX, REMEMBERED_RATIO_MAX) if "memory" in name else (START_MS_MAX, OWN_RATIO_MAX)
        print(f"    {name}: {cost.line(limit, status)}")
        slow.append(cost.p50 > limit and cost.p50 > most * status.p50)
    return any(slow)


async def own_costs(gate: QualityGate, project: Path, run: Run) -> dict[str, Cost]:
    """The cost of each thing, in rounds that take turns: what else the machine does hits all of them."""
    timed = Timed(gate.sandbox)
    fresh = replace(gate, sandbox=timed, memory=NoMemory())
    doing: dict[str, Callable[[], Awaitable[Any]]] = {"git status": partial(git_status, project)}
    doing |= {str(check["rule"]): judge(fresh, [check], {}, run) for check in COMPARING}
    doing["a submission without its tests"] = judge(fresh, SUBMISSION, {}, run)
    doing["a check that is answered from memory"] = judge(replace(gate, sandbox=timed), REMEMBERED, {}, run)
    costs = {name: Cost() for name in doing}
    for number in range(STARTS + 1):
        for name, do in doing.items():
            timed.spent_ms, began, cpu = 0.0, time.perf_counter(), cpu_ms()
            judgement = await do()
            assert judgement is None or judgement.is_good, judgement.findings
            if number:  # the first round warms up
                costs[name].wall.append(1_000 * (time.perf_counter() - began) - timed.spent_ms)
                costs[name].cpu.append(cpu_ms() - cpu)
    return costs


async def git_status(project: Path) -> None:
    process = await asyncio.create_subprocess_exec("git", "status", "--porcelain", cwd=project, stdout=DEVNULL)
    assert await process.wait() == 0


def cpu_ms() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return 1_000 * sum(one.ru_utime + one.ru_stime for one in used)


def repository(folder: Path, files: int) -> Settings:
    settings = settings_in(folder)
    fill(settings.project, files)
    for name, text in TESTS.items():
        (settings.project / name).parent.mkdir(exist_ok=True)
        (settings.project / name).write_text(text, encoding="utf-8")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "first")):
        git(settings.project, *words)
    return settings


def git(project: Path, *words: str) -> None:
    who = ("-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=project, check=True, capture_output=True)


async def median_ms(doing: Callable[[], Awaitable[Any]], times: int = STARTS) -> float:
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        await doing()
        spent.append(1_000 * (time.perf_counter() - began))
    return statistics.median(spent)


async def run_alone(project: Path) -> None:
    process = await asyncio.create_subprocess_exec("true", cwd=project)
    assert await process.wait() == 0


def settings_in(folder: Path) -> Settings:
    (folder / "project").mkdir(parents=True)
    (folder / "home").mkdir(mode=0o700)
    read = sorted({sys.prefix, sys.base_prefix})
    config = f"[shell]\nread = {read}\n".replace("'", '"')
    (folder / "home" / "config.toml").write_text(config, encoding="utf-8")
    return read_settings({"home": str(folder / "home"), "project": str(folder / "project")}, {})


def written(project: Path) -> None:
    for number in range(FILES):
        test = f"def test_{number}():\n    assert sum(range({number})) >= 0\n"
        (project / f"test_part_{number}.py").write_text(test, encoding="utf-8")


def judge(
    gate: QualityGate, checks: list[dict[str, Any]], output: Any, run: Run = NO_BASELINE
) -> Callable[[], Awaitable[Judgement]]:
    definition = definition_from({"id": "bench", "steps": [{"id": "a", "prompt": "p", "checks": checks}]})
    work = definition.steps[0].work
    assert isinstance(work, Prompt)
    lane = top_lane(definition)
    return lambda: gate.judge(work, output, run, lane)


async def taken_ms(judging: Callable[[], Awaitable[Judgement]]) -> float:
    began = time.perf_counter()
    judgement = await judging()
    spent = 1_000 * (time.perf_counter() - began)
    assert judgement.is_good, judgement.findings
    return spent


if __name__ == "__main__":
    raise SystemExit(main())
