"""Runs the tasks of tool chains in the sandbox, one after the other, and turns their results into an outcome.

Which tasks there are is decided in the file of each language."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.finding import Finding, FixedBy
from handrail.domain.checks.rule import CheckOutcome, Evidence, RuleCard
from handrail.domain.definition.duration import duration_ms, duration_text
from handrail.domain.definition.model import Category
from handrail.engine.checking.rule import Setting
from handrail.engine.sandbox import GIB, Bounds, Job, Ran
from handrail.engine.tool import ToolFailed
from handrail.rules.function_rule import bounded, found_at, not_checked
from handrail.rules.toolchain.probe import SEAL
from handrail.rules.toolchain.program import FoundProgram, environment, shown_for
from handrail.rules.toolchain.report_file import reporting
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import CannotRun, Problem, Result, Task
from handrail.rules.toolchain.versions import Versions

MEMORY_BYTES: Final = 3 * GIB
PROCESSES: Final = 256
OUTPUT_BYTES: Final = 10_000_000
LEFT_OUT: Final = {"skipped": "skipped", "xfailed": "expected to fail", "deselected": "deselected"}
SLACK_MS: Final = 2_000
"""A command is stopped a little before the gate's timeout, so that the finding can show the command and its output."""
LEAST_MS: Final = 100
EXCERPT_MAX: Final = 2_000
LAST_LINES: Final = 12
SHOWN_MAX: Final = 300
OUTPUT_READ_MAX: Final = 20_000
NO_SANDBOX_FIX: Final = "ask a person to run `handrail doctor`: it says what the sandbox needs"

_not_found = re.compile(
    r"(?:No such file or directory|ENOENT|can't open file)[^\n]{0,40}?[:,] ?['\"]?(/[^\s'\":]{1,300})"
    r"|(/[^\s'\":]{1,300})['\"]?: (?:No such file or directory|not found|bad interpreter|cannot open)"
)
_wrong = re.compile(r"error|fail|exception|cannot|can't|not found|no such|panic", re.IGNORECASE)
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
        impossible = [_impossible(self.card, one) for one in plan if isinstance(one, CannotRun)]
        if impossible:
            return CheckOutcome(findings=bounded(impossible))
        # Before the first command, not when one fails: commands of a project are never started outside of the sandbox.
        if why_not := await setting.sandbox.trial():
            return CheckOutcome(findings=(self.unusable(why_not),))
        try:
            steps = await self._run([one for one in plan if isinstance(one, Task)], site, asked, setting)
        except NotStarted as error:
            return CheckOutcome(findings=(error.finding,))
        return self._outcome(steps, site, await self._evidence(steps, setting), judged)

    def _outcome(self, steps: Sequence[Step], site: Site, evidence: Evidence, judged: Judge) -> CheckOutcome:
        hides = not evidence.caveat  # without a sandbox a command sees every file
        findings = [found for step in steps for found in self._findings(step, site, hides=hides)]
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
        """Run one task; NotStarted says why it could not be started."""
        job = Job(
            argv=reporting(task.argv, task.reports),
            cwd=cwd_of(task, site),
            env=environment(task.programs, task.env),
            stdin=task.stdin,
            bounds=bounds,
            writable=task.writable,
            wanted=task.wanted,
            apart=task.apart,
            replaced=task.replaced,
            shows=shown_for(task.programs, task.shows),
        )
        try:
            return await setting.sandbox.run(job, progress=setting.progress)
        except ToolFailed as error:
            raise NotStarted(self._not_started(task, site, error)) from error

    async def _run(self, tasks: Sequence[Task], site: Site, asked: Mapping[str, Any], setting: Setting) -> list[Step]:
        loop = asyncio.get_running_loop()
        end = loop.time() + time_ms(self.card, asked) / 1_000
        steps: list[Step] = []
        for task in tasks:
            # All commands share the time of the check: a later one gets what the earlier ones have left.
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
            chosen=chosen(programs),
            counts=_summed(result.counts for _, _, result in steps),
            excerpt=_excerpt(steps),
            caveat=setting.sandbox.caveat,
        )

    def _findings(self, step: Step, site: Site, *, hides: bool) -> list[Finding]:
        task, ran, result = step
        findings = [self._finding(problem, task, site) for problem in result.problems]
        if trouble := _trouble(task, ran, result):
            words = last_words(ran)
            hidden = _absent(ran) if hides else ""
            # A file that exists outside but not in the sandbox looks to the command as if it were missing.
            fix = _way_out(ran, task, words, is_hidden=bool(hidden))
            excerpt = words if hidden in words else f"{words[: EXCERPT_MAX - len(hidden) - 1]}\n{hidden}"
            excerpt = excerpt or shlex.join(task.argv)[:EXCERPT_MAX]
            findings.append(replace(found_at(self.card.name, "checks", trouble, fix), excerpt=excerpt))
        return findings

    def _finding(self, problem: Problem, task: Task, site: Site) -> Finding:
        parts = [site.shown(problem.file)] if problem.file else ["checks"]
        parts += [str(number) for number in (problem.line, problem.column) if number and problem.file]
        found = found_at(self.card.name, ":".join(parts), problem.message, task.fix)
        return replace(found, excerpt=readable_lines(problem.excerpt))

    def _not_started(self, task: Task, site: Site, error: ToolFailed) -> Finding:
        fix, by = NO_SANDBOX_FIX, FixedBy.PERSON
        if error.category is Category.NOT_FOUND and task.programs:
            program = task.programs[0]
            if program.path.is_relative_to(site.project.root) and not program.path.exists():
                fix, by = f"create {site.shown(str(program.path))}, or name another command", FixedBy.AGENT
            else:
                fix = f"ask a person to let the sandbox read {program.folder}"
        return not_checked(self.card.name, error.message, fix, by)


def cwd_of(task: Task, site: Site) -> str:
    """Where a task is run, relative to the project's root."""
    return "/".join(filter(None, (site.cwd, task.folder)))


def chosen(programs: Iterable[FoundProgram]) -> dict[str, str]:
    """By program: where it is, and why it was chosen."""
    return {one.name: f"{one.path} ({one.why})" if one.why else str(one.path) for one in programs}


def _impossible(card: RuleCard, one: CannotRun) -> Finding:
    return replace(not_checked(card.name, one.message, one.fix, one.fixed_by), excerpt=readable_lines(one.excerpt))


class NotStarted(Exception):
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
    """The last lines of a command's output, where errors usually are; not of warnings, if it printed anything else."""
    lines, printed = (_of_others(text)[-LAST_LINES:] for text in (ran.stderr, ran.stdout))
    if not lines or (printed and ran.exit and not _wrong.search("\n".join(lines))):
        lines = printed or lines
    return readable_lines("\n".join(line[:300] for line in lines)[-EXCERPT_MAX:])


def _of_others(text: str) -> list[str]:
    """The lines of a text, without those of our own probes."""
    return [line for line in text.strip().splitlines() if SEAL not in line]


def readable_lines(text: str) -> str:
    """A string that is safe to display, with its line breaks."""
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
    if ran.exit not in task.exits and not (result.elsewhere and ran.exit in task.finds):
        return f"{name} ended with exit {ran.exit}"
    if not result.is_whole:
        return f"{name} ended with exit {ran.exit}, but its results are incomplete"
    return _no_pass(result.counts)


def _no_pass(counts: Mapping[str, int]) -> str:
    """What is wrong if tests were counted and none passed; tests that were skipped show nothing."""
    tests = counts.get("tests")
    if tests is None:
        return ""
    if not tests:
        return ": ".join(filter(None, ("no tests ran", _left_out(counts))))
    others = ("failed", "errors", "skipped", "xfailed")
    if counts.get("passed", tests - sum(counts.get(name, 0) for name in others)) > 0:
        return ""
    return ": ".join(filter(None, ("no test passed", _left_out(counts))))


def _left_out(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[name]:,} {word}" for name, word in LEFT_OUT.items() if counts.get(name))


def _way_out(ran: Ran, task: Task, words: str, *, is_hidden: bool) -> str:
    """What to do about a command that failed by itself. Its output is shown in the excerpt and is no part of this: the
    project decides what a command prints, and would choose what a person is asked to allow, or who has to act."""
    if ran.stopped == "time":
        return "make it faster, narrow it with `paths` or `args`, or set a longer `timeout`"
    if ran.exit in task.exits:
        return "write tests, or let those that are there run"
    if is_hidden:
        return f"look at the excerpt; {task.fix}; if it lacks a file that only the sandbox hides, ask a person"
    if not words:
        return f"it printed nothing: run the command of the excerpt yourself; {task.fix}"
    return f"look at the excerpt; {task.fix}"


def _absent(ran: Ran) -> str:
    """What a command says of a file of this machine that it did not find, although it is there."""
    for found in _not_found.finditer((ran.stderr + "\n" + ran.stdout)[-OUTPUT_READ_MAX:]):
        path = Path(found[1] or found[2])
        with suppress(OSError):  # a name that is too long is no file
            if path.is_absolute() and path.exists():
                return readable_lines(found[0].strip())[:SHOWN_MAX]
    return ""


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
