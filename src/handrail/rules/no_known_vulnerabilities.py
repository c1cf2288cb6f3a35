"""`no_known_vulnerabilities`: no package that the project depends on has a publicly known vulnerability.

Runs the installed scanner. Scanners query databases on the network: only with `network: true`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from handrail.domain.checks.finding import FixedBy
from handrail.domain.checks.rule import CheckOutcome
from handrail.engine.checking.rule import Setting
from handrail.engine.sandbox import Ran
from handrail.rules.cards import NO_KNOWN_VULNERABILITIES as CARD
from handrail.rules.files.project import PathRefused, project_of
from handrail.rules.function_rule import FunctionRule, not_checked
from handrail.rules.toolchain.parameters import VERSIONS
from handrail.rules.toolchain.program import FoundProgram, find
from handrail.rules.toolchain.scanners import SCANNERS, Scanner, Vulnerability
from handrail.rules.toolchain.site import Site, site_at
from handrail.rules.toolchain.task import CannotRun, Problem, Result, Task
from handrail.rules.toolchain.toolchain_runner import ToolchainRunner


async def _apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    try:
        site = await asyncio.to_thread(site_at, project_of(setting), parameters.get("path", "."))
    except PathRefused as error:
        return CheckOutcome(
            findings=(not_checked(CARD.name, str(error), "name a folder in the project", FixedBy.AGENT),)
        )
    network = parameters.get("network") is True
    plan = await asyncio.to_thread(_planned, site, frozenset(parameters.get("ignore", ())), network=network)
    return await ToolchainRunner(CARD, VERSIONS, network=network).run_all(plan, site, parameters, setting)


def _planned(site: Site, ignored: frozenset[str], *, network: bool) -> Sequence[Task | CannotRun]:
    fitting = [scanner for scanner in SCANNERS if any(map(site.has, scanner.files))]
    if not fitting:
        names = ", ".join(name for scanner in SCANNERS for name in scanner.files[:1])
        return [
            CannotRun(
                message=f"no file lists the dependencies: no {names}",
                fix="name its folder with `path`",
                fixed_by=FixedBy.AUTHOR,
            )
        ]
    return [_of(scanner, site, ignored, network=network) for scanner in fitting]


def _of(scanner: Scanner, site: Site, ignored: frozenset[str], *, network: bool) -> Task | CannotRun:
    program = find(site, scanner.program)
    if program is None:
        fix = f"install it ({scanner.how}), so that it is on PATH"
        return CannotRun(message=f"there is no {scanner.program} here to look at {_seen(scanner, site)}", fix=fix)
    if not network:
        message = f"{scanner.program} needs its database on the network, and may not reach it"
        return CannotRun(message=message, fix="set `network: true` on the check", fixed_by=FixedBy.AUTHOR)
    return _task(scanner, program, site, ignored)


def _task(scanner: Scanner, program: FoundProgram, site: Site, ignored: frozenset[str]) -> Task:
    seen = _seen(scanner, site)

    def read(ran: Ran) -> Result:
        vulnerabilities = scanner.read(ran.stdout)
        if vulnerabilities is None:
            return Result(is_whole=False)
        left = [
            vulnerability
            for vulnerability in vulnerabilities
            if not ignored & {vulnerability.id, *vulnerability.aliases}
        ]
        counts = {"vulnerabilities": len(left), "ignored": len(vulnerabilities) - len(left)}
        return Result(counts=counts, problems=tuple(_problem(vulnerability, seen) for vulnerability in left))

    argv = (str(program.path), *scanner.words(site))
    fix = "update the package, or accept the id with `ignore`"
    also_needs = tuple(filter(None, (find(site, name) for name in scanner.also_needs)))
    return Task(argv=argv, read=read, programs=(program, *also_needs), fix=fix, exits=scanner.exits)


def _seen(scanner: Scanner, site: Site) -> str:
    return next(filter(site.has, scanner.files))


def _problem(vulnerability: Vulnerability, file: str) -> Problem:
    fixed = f"; fixed in {vulnerability.fixed}" if vulnerability.fixed else "; there is no fixed version yet"
    name = f"{vulnerability.package} {vulnerability.version}".strip()
    message = (
        f"{name} has {vulnerability.id}: {vulnerability.title}{fixed}"
        if vulnerability.title
        else f"{name} has {vulnerability.id}{fixed}"
    )
    return Problem(file=vulnerability.file or file, line=vulnerability.line, message=message[:500])


# Never cached: the databases change while the project stays the same.
no_known_vulnerabilities: Final = FunctionRule(CARD, _apply)
