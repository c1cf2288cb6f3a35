"""Runs the tasks of tool chains in the sandbox, one after the other, and turns their results into an outcome.

Which tasks there are is decided in the file of each language."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import CheckOutcome, Evidence, RuleCard
from handrail.domain.definition.duration import duration_ms, duration_text
from handrail.domain.definition.model import Category
from handrail.engine.checking.rule import Setting
from handrail.engine.sandbox import GIB, Bounds, Job, Ran
from handrail.engine.tool import ToolFailed
from handrail.rules.function_rule import bounded, found_at, not_checked
from handrail.rules.toolchain.program import FoundProgram, environment
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import CannotRun, Problem, Result, Task
from handrail.rules.toolchain.versions import Versions

MEMORY_BYTES: Final = 3 * GIB
PROCESSES: Final = 256
OUTPUT_BYTES: Final = 10_000_000
SLACK_MS: Final = 2_000
"""A command is stopped a little before the gate's timeout, so that the finding can show the command and its output."""
LEAST_MS: Final = 100
EXCERPT_MAX: Final = 2_000
LAST_LINES: Final = 12
NO_SANDBOX_FIX: Final = 'or allow checks without a sandbox: [checks] sandbox = "off" in HANDRAIL_HOME/config.toml'

_unreadable = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

Step = tuple[Task, Ran, Result]


Judge = Callable[[Sequence[Result]], tuple[list[Finding], dict[str, int]]]
"""A rule's findings and counts for all results together, if every command finished."""


def nothing_more(_results: Sequence[Result]) -> tuple[list[Finding], dict[str, int]]:
    """For rules without findings of their own besides those of the commands."""
    return [], {}


@dataclass(frozen=True)
class ToolchainRunner:
    """Runs the tasks of one rule."""

    card: RuleCard
    versions: Versions = field(default_factory=Versions)
    asks_versions: bool = True
    """Whether programs are asked for their versions; not for arbitrary commands."""
    network: bool = False
    """Whether commands may reach the network."""

    async def run_all(
        self,
        plan: Sequence[Task | CannotRun],
        site: Site,
        asked: Mapping[str, Any],
        setting: Setting,
        *,
        judged: Judge = nothing_more,
    ) -> CheckOutcome:
        """The outcome of all tasks. If any task can't be run, that is reported and nothing is run."""
        impossible = [not_checked(self.card.name, one.message, one.fix) for one in plan if isinstance(one, CannotRun)]
        if impossible:
            return CheckOutcome(findings=bounded(impossible))
        if why_not := await setting.sandbox.trial():
            return CheckOutcome(findings=(self.unusable(why_not),))
        try:
            steps = await self._run([one for one in plan if isinstance(one, Task)], site, asked, setting)
        except _NotStarted as error:
            return CheckOutcome(findings=(error.finding,))
        return self._outcome(steps, site, await self._evidence(steps, setting), judged)

    def _outcome(self, steps: Sequence[Step], site: Site, evidence: Evidence, judged: Judge) -> CheckOutcome:
        findings = [found for step in steps for found in self._findings(step, site)]
        more, counts = judged([result for _, _, result in steps]) if not findings else ([], {})
        every = bounded([*findings, *more])
        counted = {**evidence.counts, **counts}
        # A command that failed by itself, on a busy machine or for lack of settings, may succeed next time.
        is_settled = not any(_trouble(*step) for step in steps)
        evidence = replace(evidence, passed=not every, counts=counted, is_settled=is_settled)
        return CheckOutcome(findings=every, evidence=evidence)

    def unusable(self, why_not: str) -> Finding:
        """The finding that there is no sandbox to run anything in."""
        return not_checked(self.card.name, f"commands can't be run here: {why_not}", NO_SANDBOX_FIX)

    async def ran(self, task: Task, site: Site, setting: Setting, *, bounds: Bounds) -> Ran:
        """Run one task; _NotStarted says why it could not be started."""
        job = Job(
            argv=task.argv,
            cwd=site.cwd,
            env=environment(task.programs, task.env),
            stdin=task.stdin,
            bounds=bounds,
            writable=task.writable,
        )
        try:
            return await setting.sandbox.run(job, progress=setting.progress)
        except ToolFailed as error:
            raise _NotStarted(self._not_started(task.programs, error)) from error

    async def _run(self, tasks: Sequence[Task], site: Site, asked: Mapping[str, Any], setting: Setting) -> list[Step]:
        loop = asyncio.get_running_loop()
        end = loop.time() + time_ms(self.card, asked) / 1_000
        steps: list[Step] = []
        for task in tasks:
            left_ms = max(LEAST_MS, round((end - loop.time()) * 1_000))
            ran = await self.ran(task, site, setting, bounds=bounds_of(left_ms, network=self.network))
            steps.append((task, ran, task.read(ran)))
        return steps

    async def _evidence(self, steps: Sequence[Step], setting: Setting) -> Evidence:
        programs = [program for task, _, _ in steps for program in task.programs]
        return Evidence(
            rule=self.card.name,
            version=self.card.version,
            passed=False,
            ran=_ran(steps),
            exit=_exit(steps),
            took=sum(ran.took_ms for _, ran, _ in steps),
            tools=await self.versions.of(programs, setting) if self.asks_versions else {},
            counts=_summed(result.counts for _, _, result in steps),
            excerpt=_excerpt(steps),
        )

    def _findings(self, step: Step, site: Site) -> list[Finding]:
        task, ran, result = step
        findings = [self._finding(problem, task, site) for problem in result.problems]
        if trouble := _trouble(task, ran, result):
            found = found_at(self.card.name, "checks", trouble, _way_out(ran, task))
            findings.append(replace(found, excerpt=last_words(ran)))
        return findings

    def _finding(self, problem: Problem, task: Task, site: Site) -> Finding:
        parts = [site.shown(problem.file)] if problem.file else ["checks"]
        parts += [str(number) for number in (problem.line, problem.column) if number and problem.file]
        found = found_at(self.card.name, ":".join(parts), problem.message, task.fix)
        return replace(found, excerpt=readable_lines(problem.excerpt))

    def _not_started(self, programs: Sequence[FoundProgram], error: ToolFailed) -> Finding:
        fix = NO_SANDBOX_FIX
        if error.category is Category.NOT_FOUND and programs:
            folder = programs[0].folder
            fix = f'let the sandbox read it: [shell] read = ["{folder}"] in config.toml; {NO_SANDBOX_FIX}'
        return not_checked(self.card.name, error.message, fix)


class _NotStarted(Exception):
    """A command that could not be started."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def time_ms(card: RuleCard, asked: Mapping[str, Any]) -> int:
    """How long all commands of a check may take together."""
    written = duration_ms(str(asked.get("timeout") or card.timeout))
    return max(LEAST_MS, written - min(SLACK_MS, written // 10))


def bounds_of(left_ms: int, *, network: bool = False) -> Bounds:
    """The limits of a command of a tool chain: compilers need much."""
    return Bounds(
        time_ms=left_ms, memory_bytes=MEMORY_BYTES, processes=PROCESSES, output_bytes=OUTPUT_BYTES, network=network
    )


def last_words(ran: Ran) -> str:
    """The last lines of a command's output, where errors usually are."""
    lines = (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-LAST_LINES:]
    return readable_lines("\n".join(line[:300] for line in lines)[-EXCERPT_MAX:])


def readable_lines(text: str) -> str:
    """A text that is safe to display, with its line breaks."""
    return _unreadable.sub("?", text.expandtabs(4))


def _trouble(task: Task, ran: Ran, result: Result) -> str:
    """What is wrong with the command itself; empty if it finished and its results are complete."""
    name = task.programs[0].name
    if ran.stopped == "time":
        return f"{name} was stopped after {duration_text(ran.took_ms - ran.took_ms % 1_000)}"
    if ran.stopped:
        return f"{name} was stopped: it exceeded its limit of {ran.stopped}"
    if result.problems:
        return ""
    if ran.exit not in task.exits:
        return f"{name} ended with exit {ran.exit}"
    if not result.is_whole:
        return f"{name} ended with exit {ran.exit}, but its results are incomplete"
    return "no tests ran" if result.counts.get("tests") == 0 else ""


def _way_out(ran: Ran, task: Task) -> str:
    if ran.stopped == "time":
        return "make it faster, narrow it with `paths` or `args`, or set a longer `timeout`"
    if ran.exit in task.exits:
        return "write tests, or select more of them"
    hidden = ", ".join(f'"{folder}"' for folder in task.shows)
    hint = f"; if it did not start: [shell] read = [{hidden}]" if hidden else ""
    return f"look at the excerpt; {task.fix}{hint}"


def _ran(steps: Sequence[Step]) -> tuple[str, ...]:
    """The commands, joined as in a shell."""
    words: list[str] = []
    for task, _, _ in steps:
        words += [*(["&&"] if words else []), *task.argv]
    return tuple(words)


def _exit(steps: Sequence[Step]) -> int:
    """The first exit code that is a failure, else the last one."""
    return next((ran.exit for task, ran, _ in steps if ran.exit not in task.exits), steps[-1][1].exit)


def _excerpt(steps: Sequence[Step]) -> str:
    return "\n".join(last_words(ran) for _, ran, _ in steps)[-EXCERPT_MAX:]


def _summed(every: Iterable[Mapping[str, int]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in every:
        for name, count in one.items():
            counts[name] = counts.get(name, 0) + count
    return counts
