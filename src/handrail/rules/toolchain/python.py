"""Python: files compiled by its own compiler, tests by pytest or unittest, lint by ruff or flake8."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Final

from msgspec.structs import replace

from handrail.domain.checks.finding import FixedBy
from handrail.rules.toolchain.installed.own_copies import own_copies
from handrail.rules.toolchain.installed.python_environment import Python, user_base
from handrail.rules.toolchain.installed.pythons import pythons
from handrail.rules.toolchain.linters.of_python import python_lint
from handrail.rules.toolchain.probe import SEAL, assignment, flaws, json_text, probe, results
from handrail.rules.toolchain.program import FoundProgram, find
from handrail.rules.toolchain.python_projects.django import Django, django_at
from handrail.rules.toolchain.python_projects.own_command import OwnCommand, own_command
from handrail.rules.toolchain.python_projects.own_script import OwnScript, own_script
from handrail.rules.toolchain.reading import generic_result
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import (
    GOOD,
    Canary,
    CannotRun,
    Language,
    Task,
    TaskKind,
    TaskOptions,
)

QUIET: Final = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1", "PY_COLORS": "0", "NO_COLOR": "1"}
ALONE: Final = {"pytest_cov": "--no-cov", "xdist": "-n0"}
"""By plugin: what keeps it from measuring in our place, or from running tests where we can't measure."""
KEPT_VARIABLES: Final = frozenset({"PATH", "HOME", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", *QUIET})
"""Variables that are ours to set, whatever the project's command says."""
LOOKED_AT_MAX: Final = 6
TEST_FOLDERS: Final = ("tests", "test")
LOOKED_INTO_MAX: Final = 50
"""How many test files are read to find out how they are run."""
NO_PYTHON: Final = CannotRun(message="there is no Python here", fix="install Python, or make a .venv in the project")

OWN_MAX: Final = 20
TOKEN: Final = f"c{token_hex(6)}"
"""In the names of tests whose outcome is known: a test can not know it beforehand."""
CANARY: Final = f"""import unittest


def test_{TOKEN}():
    assert [1] == [2]


def test_{TOKEN}_{GOOD}():
    assert [1] == [1]


class {TOKEN.title()}(unittest.TestCase):
    def test_{TOKEN}(self):
        self.assertEqual(1, 2)

    def test_{TOKEN}_too(self):
        self.assertTrue(False)

    def test_{TOKEN}_{GOOD}(self):
        self.assertEqual(1, 1)
"""

_imported = re.compile(r"^(?:import|from)[ ]+([A-Za-z_][\w.]{0,100})", re.MULTILINE)
_test_file = re.compile(r"(?:^|/)(?:test_?[^/]*|[^/]*_test)\.py$")
_of_pytest = re.compile(r"^\s*(?:import|from) pytest\b|^def test", re.MULTILINE)


def _build(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    python = next(pythons(site), None)
    if python is None:
        return [NO_PYTHON]
    files = site.chosen(site.sources(".py", ".pyi"), asked.paths)
    if not files:
        return [
            CannotRun(message="there are no Python files", fix="name the folder with `path`", fixed_by=FixedBy.AGENT)
        ]
    script = assignment("FILES", files) + probe("compile.py")
    # Isolated: neither the folder nor the environment of the project may put code in place of our own probe's imports.
    argv = (str(python.path), "-I", "-B", "-", *asked.args)
    programs = (_program(python),)
    return [Task(argv=argv, read=flaws, programs=programs, fix="fix the syntax", env=QUIET, stdin=script)]


def _test(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    return _tested(site, asked, "")


def _coverage(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    return _tested(site, asked, "coverage")


def _tested(site: Site, asked: TaskOptions, also: str) -> Sequence[Task | CannotRun]:
    """The tests by the project's own runner; `also` is a package that must be there, too."""
    found = list(_interpreters(site))
    usable = [one for one in found if not also or one.has(also)]
    task = _planned(site, asked, usable, own_command(site) or OwnCommand(""), cover=bool(also))
    if task:
        return [task]
    return [_missing(found, _lacking(site, found, also)) if found else NO_PYTHON]


def _planned(site: Site, asked: TaskOptions, usable: Sequence[Python], own: OwnCommand, *, cover: bool) -> Task | None:
    by_script = None if own.runner or cover else _by_script(site, asked, usable)
    return by_script or (
        _by_command(site, asked, usable, own, cover=cover) or _by_kind(site, asked, usable, own, cover=cover)
    )


def _interpreters(site: Site) -> Iterator[Python]:
    """Those of the folder with manage.py first: a repository may have its server in one, with its environment."""
    django = django_at(site)
    if django and django.folder:
        yield from (one for one in pythons(site.below(django.folder)) if one.is_own)
    yield from pythons(site)


def _by_command(
    site: Site, asked: TaskOptions, usable: Sequence[Python], own: OwnCommand, *, cover: bool
) -> Task | None:
    """As manage.py or the project's own command runs them, unless it has settings for pytest."""
    if not usable or _has_pytest_settings(site):
        return None
    django = django_at(site)
    if django and usable[0].has("django"):
        return _by_django(site, asked, usable[0], django, cover=cover)
    return _by_unittest(site, asked, usable[0], own, cover=cover) if own.runner == "unittest" else None


def _by_script(site: Site, asked: TaskOptions, usable: Sequence[Python]) -> Task | None:
    """As the project's own command does, if there are no tests that a runner would find."""
    if not usable or asked.paths or _has_pytest_settings(site) or any(map(_test_file.search, site.sources(".py"))):
        return None
    script = own_script(site)
    return _by_lines(site, asked, usable[0], script) if script else None


def _by_lines(site: Site, asked: TaskOptions, python: Python, script: OwnScript) -> Task | None:
    make = find(site, "make", "gmake") if script.make else None
    if script.make and make is None:
        return None
    argv = (str(make.path), script.make) if make else ("/bin/sh", "-c", " && ".join(script.lines))
    programs = (_program(python), *filter(None, [make]))
    env = {**QUIET, "PYTHONUSERBASE": str(user_base()), **_own_env(site, script.env)}
    fix = "fix the code, or the test if that is wrong"
    return Task(argv=(*argv, *asked.args), read=generic_result, programs=programs, fix=fix, env=env, writable=True)


def _by_kind(site: Site, asked: TaskOptions, usable: Sequence[Python], own: OwnCommand, *, cover: bool) -> Task | None:
    """By pytest if the project's own interpreter has it, else by unittest if they are written for it, else by any
    interpreter that has pytest."""
    with_pytest = next((one for one in usable if one.has("pytest")), None)
    if _prefers_unittest(site, usable) and not (with_pytest and with_pytest.is_own):
        return _by_unittest(site, asked, usable[0], own, cover=cover)
    return _by_pytest(site, asked, with_pytest, own, cover=cover) if with_pytest else None


def _has_pytest_settings(site: Site) -> bool:
    return site.has("pytest.ini") or "[tool.pytest" in site.text("pyproject.toml")


def _lacking(site: Site, found: Sequence[Python], also: str) -> str:
    """What is to be installed: that what runs the tests, or what is needed besides."""
    can_run = any(one.has("pytest") for one in found) or _is_unittest(site)
    return also if also and can_run else "pytest"


def _prefers_unittest(site: Site, usable: Sequence[Python]) -> bool:
    """Whether the best interpreter runs the tests without pytest: that of the project, or one that has no pytest."""
    return bool(usable) and (usable[0].is_own or not usable[0].has("pytest")) and _is_unittest(site)


def _missing(found: Sequence[Python], module: str) -> CannotRun:
    """Which interpreters were looked at, and what none of them has."""
    looked = "\n".join(f"{one.path}: {one.why}; it has no {module}" for one in found[:LOOKED_AT_MAX])
    where = found[0].path.parent.parent
    fix = f"install {module} into the project's environment: {found[0].path} -m pip install {module}"
    if not found[0].is_own:
        fix = f"make an environment .venv in the project and install {module} into it; {where} is the machine's"
    return CannotRun(message=f"there is no {module} here", fix=fix, excerpt=looked)


def _by_pytest(site: Site, asked: TaskOptions, python: Python, own: OwnCommand, *, cover: bool) -> Task:
    # Workers of xdist would run the tests in processes that are not measured, and pytest-cov would measure instead of
    # us.
    alone = [option for plugin, option in ALONE.items() if cover and python.has(plugin)]
    cache = ("-o", "cache_dir=/tmp/handrail-pytest-cache")  # not switched off: options of the project may need it
    options, paths = (own.options, own.paths) if own.runner == "pytest" else ((), ())
    words = (str(python.path), "-B", "-", "-q", *cache, *alone, *options, *asked.args)
    programs = (_program(python), _package(python, "pytest"), *([_package(python, "coverage")] if cover else []))
    task = _tests(site, python, (*words, *(asked.paths or paths)), programs, _script("pytest.py", cover=cover))
    return replace(_in_env(site, task, own), lists=("--collect-only",), canary=_canary(site, words))


def _by_unittest(site: Site, asked: TaskOptions, python: Python, own: OwnCommand, *, cover: bool) -> Task:
    words = (str(python.path), "-B", "-")
    named = own.options if own.runner == "unittest" and own.options else _start(site)
    argv = (*words, *(asked.paths or named), *asked.args)
    programs = (_program(python), *([_package(python, "coverage")] if cover else []))
    src = [site.folder / "src"] if (site.folder / "src").is_dir() else []  # nothing else puts it on the path
    task = _tests(site, python, argv, programs, _script("unittest.py", cover=cover), *src)
    return replace(_in_env(site, task, own), canary=_canary(site, words, *asked.args))


def _by_django(site: Site, asked: TaskOptions, python: Python, django: Django, *, cover: bool) -> Task:
    words = (str(python.path), "-B", "-")
    programs = (_program(python), _package(python, "django"), *([_package(python, "coverage")] if cover else []))
    script = _script("unittest.py", cover=cover, django=django.settings)
    task = _tests(site, python, (*words, *asked.paths, *asked.args), programs, script)
    # Where manage.py is: that folder is what the modules of the project are found in.
    return replace(task, folder=django.folder, canary=_canary(site.below(django.folder), words, *asked.args))


def _script(name: str, *, cover: bool, django: str = "") -> str:
    """A probe in a namespace of its own: in `__main__`, any test could take what seals its results by its name."""
    names = {"__name__": "handrail_probe", "COVER": int(cover), "DJANGO": django, "SEAL": SEAL}
    # Nor a file that is none: processes that a test spawns would try to run it again.
    head = "globals().pop('__file__', None)\n"
    return f"{head}exec(compile({json_text(probe(name))}, '<handrail>', 'exec'), {json_text(names)})\n"


def _canary(site: Site, words: tuple[str, ...], *more: str) -> Canary | None:
    """Tests whose outcome is known, beside the project's own, and the command that runs them."""
    names = [name for name in site.sources(".py") if _test_file.search(name)][:LOOKED_INTO_MAX]
    beside = next((name for name in names if "def test" in site.text(name)), "")
    folder, _, file = beside.rpartition("/")
    name = f"test_{TOKEN}.py" if file.startswith("test") else f"{TOKEN}_test.py"
    # What the tests import may replace their assertions.
    modules = dict.fromkeys(found[1] for found in _imported.finditer(site.text(beside)))
    lines = "".join(f"try:\n    import {module}\nexcept Exception:\n    pass\n" for module in list(modules)[:OWN_MAX])
    path = f"{folder}/{name}".lstrip("/")
    return Canary(token=TOKEN, path=path, text=lines + CANARY, argv=(*words, f"./{path}", *more)) if beside else None


def _start(site: Site) -> tuple[str, ...]:
    """Where unittest finds the tests: it looks into folders only if they are packages, and imports every `test*.py`."""
    names = [name for name in site.sources(".py") if name.rsplit("/", 1)[-1].startswith("test")]
    here = [name for name in names if "/" not in name]
    tops = sorted({name.split("/")[0] for name in names if "/" in name}, key=lambda top: (top not in TEST_FOLDERS, top))
    is_package = bool(tops) and (site.folder / tops[0] / "__init__.py").is_file()
    if not tops or any("unittest" in site.text(name) for name in here) or (is_package and not here):
        return ()
    # A script at the top may be called test..., and be none.
    return ("discover", "-s", tops[0], *(("-t", ".") if is_package else ()))


def _program(python: Python) -> FoundProgram:
    needs = tuple(dict.fromkeys((*python.shows(), *python.packages())))
    return FoundProgram(python.path.name, python.path, python.why, needs=needs)


def _package(python: Python, name: str) -> FoundProgram:
    """A package of an interpreter, for the evidence."""
    # For the evidence only; the package is always imported by the interpreter itself.
    script = python.path.parent / name
    version = python.version_of(name)
    return FoundProgram(name, script if script.is_file() else python.path, f"of {python.path}", version)


def _tests(
    site: Site, python: Python, argv: tuple[str, ...], programs: tuple[FoundProgram, ...], script: str, *more: Path
) -> Task:
    fix = "fix the code, or the test if that is wrong"
    copies = own_copies(python, site)
    env = {**QUIET, "PYTHONUSERBASE": str(user_base()), **_own_path(site, (*(one.source for one in copies), *more))}
    own = assignment("OWN", {one.name: [str(one.source), str(one.installed)] for one in copies}) + probe("own.py")
    read = partial(results, seal=SEAL)
    return Task(argv=argv, read=read, programs=programs, fix=fix, env=env, stdin=f"{own}\n{script}", writable=True)


def _in_env(site: Site, task: Task, own: OwnCommand) -> Task:
    """The task with the variables that the project's command sets."""
    return replace(task, env={**task.env, **_own_env(site, own.env, task.env.get("PYTHONPATH", ""))})


def _own_env(site: Site, given: Mapping[str, str], known: str = "") -> dict[str, str]:
    """Variables of the project's command, those of its folders after what is known; none that say what Python is."""
    env = {name: value for name, value in given.items() if name not in KEPT_VARIABLES}
    entries = [site.folder / one for one in given.get("PYTHONPATH", "").split(os.pathsep) if one]
    inside = [str(one) for one in entries if one.resolve().is_relative_to(site.project.root)]
    path = os.pathsep.join(dict.fromkeys([*filter(None, known.split(os.pathsep)), *inside]))
    return {**env, "PYTHONPATH": path} if path else env


def _own_path(site: Site, more: Sequence[Path]) -> dict[str, str]:
    """The folders of the project that the developer's PYTHONPATH names; no others, which may be handrail's."""
    root = site.project.root
    # handrail may run from an environment of its own: its packages must not become importable for the project.
    given = [root / entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    inside = [str(entry) for entry in (*more, *given) if entry.resolve().is_relative_to(root)]
    return {"PYTHONPATH": os.pathsep.join(dict.fromkeys(inside))} if inside else {}


def _is_unittest(site: Site) -> bool:
    """Whether the tests are written for unittest, and need nothing of pytest."""
    names = [name for name in site.sources(".py") if name.rsplit("/", 1)[-1].startswith("test")]
    steered = {name.removesuffix("conftest.py") for name in site.sources("conftest.py")}
    if any(name.startswith(tuple(steered)) for name in names if steered):  # not by one beside benchmarks or examples
        return False
    text = "\n".join(map(site.text, names[:LOOKED_INTO_MAX]))
    return "unittest" in text and not _of_pytest.search(text)


def _lint(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    return python_lint(site, asked, [one.path.parent for one in pythons(site) if one.is_own])


PYTHON: Final = Language(
    name="python",
    markers=("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "tox.ini", "Pipfile"),
    suffixes=(".py",),
    plans={TaskKind.BUILD: _build, TaskKind.TEST: _test, TaskKind.LINT: _lint, TaskKind.COVERAGE: _coverage},
)
