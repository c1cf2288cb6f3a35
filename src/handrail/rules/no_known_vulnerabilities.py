"""`no_known_vulnerabilities`: no package that the project depends on has a hole that is publicly known.

Asked of the scanner that is installed. Those ask databases on the network: only with `network: true`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from handrail.domain.rule import CheckOutcome
from handrail.engine.rule import Setting
from handrail.engine.sandbox import Ran
from handrail.rules.cards import NO_KNOWN_VULNERABILITIES as CARD
from handrail.rules.function_rule import FunctionRule, not_done
from handrail.rules.project import PathRefused, project_of
from handrail.rules.toolchain.asking import VERSIONS
from handrail.rules.toolchain.conduct import ToolchainRunner
from handrail.rules.toolchain.program import Program, find
from handrail.rules.toolchain.scanners import SCANNERS, Hole, Scanner
from handrail.rules.toolchain.site import Site, site_at
from handrail.rules.toolchain.task import CannotRun, Problem, Result, Task


async def _apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    try:
        site = await asyncio.to_thread(site_at, project_of(setting), parameters.get("path", "."))
    except PathRefused as error:
        return CheckOutcome(findings=(not_done(CARD.name, str(error), "name a folder in the project"),))
    network = parameters.get("network") is True
    plan = await asyncio.to_thread(_planned, site, frozenset(parameters.get("ignore", ())), network=network)
    return await ToolchainRunner(CARD, VERSIONS, network=network).conduct(plan, site, parameters, setting)


def _planned(site: Site, ignored: frozenset[str], *, network: bool) -> Sequence[Task | CannotRun]:
    fitting = [scanner for scanner in SCANNERS if any(map(site.has, scanner.files))]
    if not fitting:
        names = ", ".join(name for scanner in SCANNERS for name in scanner.files[:1])
        return [
            CannotRun(message=f"nothing here says what the project depends on: no {names}", fix="name it with `path`")
        ]
    return [_of(scanner, site, ignored, network=network) for scanner in fitting]


def _of(scanner: Scanner, site: Site, ignored: frozenset[str], *, network: bool) -> Task | CannotRun:
    program = find(site, scanner.program)
    if program is None:
        fix = f"install it ({scanner.how}), so that it is on PATH"
        return CannotRun(message=f"there is no {scanner.program} here to look at {_seen(scanner, site)}", fix=fix)
    if not network:
        message = f"{scanner.program} needs its database on the network, and may not reach it"
        return CannotRun(message=message, fix="set `network: true` on the check")
    return _task(scanner, program, site, ignored)


def _task(scanner: Scanner, program: Program, site: Site, ignored: frozenset[str]) -> Task:
    seen = _seen(scanner, site)

    def read(ran: Ran) -> Result:
        holes = scanner.read(ran.stdout)
        if holes is None:
            return Result(is_whole=False)
        left = [hole for hole in holes if not ignored & {hole.id, *hole.aliases}]
        counts = {"vulnerabilities": len(left), "ignored": len(holes) - len(left)}
        return Result(counts=counts, problems=tuple(_problem(hole, seen) for hole in left))

    argv = (str(program.path), *scanner.words(site))
    fix = "update the package, or accept the id with `ignore`"
    company = tuple(filter(None, (find(site, name) for name in scanner.company)))
    return Task(argv=argv, read=read, programs=(program, *company), fix=fix, exits=scanner.exits)


def _seen(scanner: Scanner, site: Site) -> str:
    return next(filter(site.has, scanner.files))


def _problem(hole: Hole, file: str) -> Problem:
    cure = f"; fixed in {hole.fixed}" if hole.fixed else "; there is no fixed version yet"
    name = f"{hole.package} {hole.version}".strip()
    message = f"{name} has {hole.id}: {hole.title}{cure}" if hole.title else f"{name} has {hole.id}{cure}"
    return Problem(file=hole.file or file, line=hole.line, message=message[:500])


# What is known changes without the project: it is never remembered.
no_known_vulnerabilities: Final = FunctionRule(CARD, _apply)
