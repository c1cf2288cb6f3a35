"""What the rules of tool chains share: their parameters, the site they name, and what their outcome depends on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.rule import Outcome, RuleCard
from handrail.engine.rule import Setting
from handrail.rules.function_rule import FunctionRule, not_done
from handrail.rules.project import PathRefused, project_of
from handrail.rules.toolchain.conduct import Conductor
from handrail.rules.toolchain.languages import LANGUAGES, detected
from handrail.rules.toolchain.program import Program, find, identities
from handrail.rules.toolchain.reading import said
from handrail.rules.toolchain.site import Site, site_at
from handrail.rules.toolchain.task import Asked, Lack, Task, Want
from handrail.rules.toolchain.versions import Versions
from handrail.rules.tree import tree_digest

INSTALLED: Final = (".venv/pyvenv.cfg", ".venv/lib", "venv/lib", "node_modules/.package-lock.json", "lib", "vendor")
"""What changes when somebody installs a package; git does not know of most of it."""
VERSIONS: Final = Versions()


def toolchain_rule(card: RuleCard, want: Want) -> FunctionRule:
    """The rule that asks every language of a project for one thing."""
    conductor = Conductor(card, VERSIONS)

    async def apply(parameters: Mapping[str, Any], setting: Setting) -> Outcome:
        try:
            site, plan = await asyncio.to_thread(planned, want, parameters, setting)
        except PathRefused as error:
            return Outcome(findings=(not_done(card.name, str(error), "name something in the project"),))
        return await conductor.conduct(plan, site, parameters, setting)

    async def reads(parameters: Mapping[str, Any], setting: Setting) -> str:
        return await depends_on(want, parameters, setting)

    return FunctionRule(card, apply, reads)


def planned(want: Want, parameters: Mapping[str, Any], setting: Setting) -> tuple[Site, Sequence[Task | Lack]]:
    """The site that a check names, and what to run there; PathRefused if it names something else. Reads files."""
    site = site_at(project_of(setting), parameters.get("path", "."))
    if "command" in parameters:
        return site, [command_task(site, parameters["command"], parameters.get("env", {}), is_test=want is Want.TEST)]
    asked = Asked(
        paths=tuple(site.inside(path) for path in parameters.get("paths", ())),
        args=tuple(parameters.get("args", ())),
    )
    plan = _by_language(want, site, asked, parameters.get("language", ""))
    return site, [_with(one, parameters.get("env", {})) for one in plan]


def _by_language(want: Want, site: Site, asked: Asked, name: str) -> Sequence[Task | Lack]:
    languages = (LANGUAGES[name],) if name else detected(site)
    if not languages:
        fix = f"set `language` ({', '.join(sorted(LANGUAGES))}), `path` or `command`"
        return [Lack(message="no language that is known here was found in the project", fix=fix)]
    return [one for language in languages for one in language.plans[want](site, asked)]


def command_task(site: Site, argv: Sequence[str], env: Mapping[str, str], *, is_test: bool) -> Task | Lack:
    """A command of the author's, whose program is looked for as the tool chains' own are."""
    name = argv[0]
    program = Program(name, site.folder / name) if "/" in name else find(site, name)
    if program is None:
        return Lack(message=f"there is no program {name} here", fix=f"install {name}, so that it is on PATH")
    fix = "make the code right, or the test if that is wrong" if is_test else "mend it"
    words = (str(program.path) if "/" not in name else name, *argv[1:])
    return Task(argv=words, read=said, programs=(program,), fix=fix, env=env, writable=True)


def _with(one: Task | Lack, env: Mapping[str, str]) -> Task | Lack:
    if isinstance(one, Lack) or not env:
        return one
    return replace(one, env={**one.env, **env})


async def depends_on(want: Want, parameters: Mapping[str, Any], setting: Setting) -> str:
    """The digest of all that an outcome depends on: the project's files, what is installed, and the programs."""
    tree = await tree_digest(setting.project, private=setting.private)
    if not tree:
        return ""
    return await asyncio.to_thread(_identified, tree, want, parameters, setting)


def _identified(tree: str, want: Want, parameters: Mapping[str, Any], setting: Setting) -> str:
    try:
        site, plan = planned(want, parameters, setting)
    except PathRefused:
        return ""
    if any(isinstance(one, Lack) for one in plan):
        return ""  # what is missing can be had the next moment
    programs = [program for one in plan if isinstance(one, Task) for program in one.programs]
    return f"{tree}\n{identities([*programs, *_installed(site)])}"


def _installed(site: Site) -> list[Program]:
    places = [folder / name for folder in site.above() for name in INSTALLED]
    deeper = [path for folder in site.above() for path in _site_packages(folder)]
    return [Program(path.name, path) for path in (*places, *deeper) if path.exists()]


def _site_packages(folder: Path) -> list[Path]:
    return [*folder.glob(".venv/lib/*/site-packages"), *folder.glob("venv/lib/*/site-packages")]
