"""What tool chain rules share: their tasks, and the digest of what their outcome depends on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from handrail.domain.checks.finding import FixedBy
from handrail.domain.checks.rule import CheckOutcome, RuleCard
from handrail.engine.checking.rule import PlannedCommand, Setting
from handrail.rules.files.project import PathRefused, project_of
from handrail.rules.files.tree import tree_of
from handrail.rules.function_rule import FunctionRule, not_checked
from handrail.rules.toolchain.languages import LANGUAGES, detected
from handrail.rules.toolchain.program import FoundProgram, find, identities, shown_for
from handrail.rules.toolchain.reading import generic_result
from handrail.rules.toolchain.site import Site, site_at
from handrail.rules.toolchain.task import CannotRun, Task, TaskKind, TaskOptions
from handrail.rules.toolchain.toolchain_runner import ToolchainRunner, chosen
from handrail.rules.toolchain.versions import Versions

INSTALLED: Final = (".venv/pyvenv.cfg", ".venv/lib", "venv/lib", "node_modules/.package-lock.json", "lib", "vendor")
"""What changes when a package is installed; git does not track most of it."""
SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/opt", "/etc")
"""What every command sees anyway, so that it is not worth a word."""
VERSIONS: Final = Versions()


def toolchain_rule(card: RuleCard, kind: TaskKind) -> FunctionRule:
    """The rule that runs one kind of task for every language of a project."""
    runner = ToolchainRunner(card, VERSIONS)

    async def apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
        try:
            site, plan = await asyncio.to_thread(planned, kind, parameters, setting)
        except PathRefused as error:
            return CheckOutcome(
                findings=(not_checked(card.name, str(error), "name a path in the project", FixedBy.AGENT),)
            )
        return await runner.run_all(plan, site, parameters, setting)

    async def reads(parameters: Mapping[str, Any], setting: Setting) -> str:
        return await depends_on(kind, parameters, setting)

    async def would(parameters: Mapping[str, Any], setting: Setting) -> Sequence[PlannedCommand]:
        return await asyncio.to_thread(planned_commands, partial(planned, kind), parameters, setting)

    return FunctionRule(card, apply, reads, would)


Planning: TypeAlias = Callable[[Mapping[str, Any], Setting], tuple[Site, Sequence[Task | CannotRun]]]


def planned_commands(planning: Planning, parameters: Mapping[str, Any], setting: Setting) -> Sequence[PlannedCommand]:
    """What a rule would run, and why; nothing is run."""
    try:
        site, plan = planning(parameters, setting)
    except PathRefused as error:
        return [PlannedCommand(missing=str(error), fix="name a path in the project")]
    return [_planned_command(site, one) for one in plan]


def _planned_command(site: Site, one: Task | CannotRun) -> PlannedCommand:
    if isinstance(one, CannotRun):
        return PlannedCommand(missing=one.message, fix=one.fix, excerpt=one.excerpt)
    usual = (site.project.root, *map(Path, SYSTEM))
    needed = shown_for(one.programs, one.shows)
    outside = [str(path) for path in needed if not any(path.is_relative_to(folder) for folder in usual)]
    return PlannedCommand(argv=one.argv, folder=site.cwd or ".", chosen=chosen(one.programs), shows=tuple(outside))


def planned(
    kind: TaskKind, parameters: Mapping[str, Any], setting: Setting, *, changed: Sequence[str] | None = None
) -> tuple[Site, Sequence[Task | CannotRun]]:
    """The site that a check names, and what to run there, if only for files that have changed; PathRefused if it names
    something else. Reads files."""
    site = site_at(project_of(setting), parameters.get("path", "."))
    return site, planned_at(kind, parameters, site, changed=changed)


def planned_at(
    kind: TaskKind, parameters: Mapping[str, Any], site: Site, *, changed: Sequence[str] | None = None
) -> Sequence[Task | CannotRun]:
    """What to run at a site, if only for files that have changed."""
    if "command" in parameters:
        return [command_task(site, parameters["command"], parameters.get("env", {}), is_test=kind is TaskKind.TEST)]
    asked = TaskOptions(
        paths=tuple(site.inside(path) for path in parameters.get("paths", ())),
        args=tuple(parameters.get("args", ())),
        changed=None if changed is None else tuple(_below(site, changed)),
    )
    plan = _by_language(kind, site, asked, parameters.get("language", ""))
    return [_with(one, parameters.get("env", {})) for one in plan]


def _below(site: Site, paths: Sequence[str]) -> Iterator[str]:
    """Files of the project that are below the site, relative to it."""
    start = f"{site.cwd}/" if site.cwd else ""
    yield from (f"./{path.removeprefix(start)}" for path in paths if path.startswith(start))


def _by_language(kind: TaskKind, site: Site, asked: TaskOptions, name: str) -> Sequence[Task | CannotRun]:
    languages = (LANGUAGES[name],) if name else detected(site)
    if not languages:
        fix = f"set `language` ({', '.join(sorted(LANGUAGES))}), `path` or `command`"
        return [CannotRun(message="no known language was found in the project", fix=fix, fixed_by=FixedBy.AGENT)]
    return [one for language in languages for one in language.plans[kind](site, asked)]


def command_task(site: Site, argv: Sequence[str], env: Mapping[str, str], *, is_test: bool) -> Task | CannotRun:
    """A command given by the author; its program is found like those of tool chains."""
    name = argv[0]
    program = FoundProgram(name, site.folder / name) if "/" in name else find(site, name)
    if program is None:
        return CannotRun(message=f"there is no program {name} here", fix=f"install {name}, so that it is on PATH")
    fix = "fix the code, or the test if that is wrong" if is_test else "fix it"
    words = (str(program.path) if "/" not in name else name, *argv[1:])
    return Task(argv=words, read=generic_result, programs=(program,), fix=fix, env=env, writable=True)


def _with(one: Task | CannotRun, env: Mapping[str, str]) -> Task | CannotRun:
    if isinstance(one, CannotRun) or not env:
        return one
    return replace(one, env={**one.env, **env})


async def depends_on(kind: TaskKind, parameters: Mapping[str, Any], setting: Setting) -> str:
    """The digest of everything that an outcome depends on: the project's files, installed packages, and programs."""
    tree = await tree_of(setting)
    if not tree:
        return ""
    return await asyncio.to_thread(_identified, tree, kind, parameters, setting)


def _identified(tree: str, kind: TaskKind, parameters: Mapping[str, Any], setting: Setting) -> str:
    try:
        site, plan = planned(kind, parameters, setting)
    except PathRefused:
        return ""
    if any(isinstance(one, CannotRun) for one in plan):
        return ""  # not cached: what is missing may be installed any moment
    programs = [program for one in plan if isinstance(one, Task) for program in one.programs]
    return f"{tree}\n{identities([*programs, *_installed(site)])}"


def _installed(site: Site) -> list[FoundProgram]:
    places = [folder / name for folder in site.above() for name in INSTALLED]
    deeper = [path for folder in site.above() for path in _site_packages(folder)]
    return [FoundProgram(path.name, path) for path in (*places, *deeper) if path.exists()]


def _site_packages(folder: Path) -> list[Path]:
    return [*folder.glob(".venv/lib/*/site-packages"), *folder.glob("venv/lib/*/site-packages")]
