"""Python: files compiled by its own compiler, tests by pytest or unittest, lint by ruff or flake8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.probe import assignment, flaws, probe, results
from handrail.rules.toolchain.program import FoundProgram, beside, find
from handrail.rules.toolchain.reading import diagnostics, json_of, whole
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import (
    MESSAGE_MAX,
    PROBLEMS_MAX,
    CannotRun,
    Language,
    Problem,
    Result,
    Task,
    TaskKind,
    TaskOptions,
)

PYTHONS: Final = ("python3", "python")
QUIET: Final = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1", "PY_COLORS": "0", "NO_COLOR": "1"}
LOOKED_INTO_MAX: Final = 50
"""How many test files are read to find out how they are run."""
NO_PYTHON: Final = CannotRun(message="there is no Python here", fix="install Python, or make a .venv in the project")


def _build(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    python = find(site, *PYTHONS)
    if python is None:
        return [NO_PYTHON]
    files = [name for name in site.sources(".py", ".pyi") if _is_chosen(name, asked.paths)]
    if not files:
        return [CannotRun(message="there are no Python files", fix="name the folder with `path`")]
    script = assignment("FILES", files) + probe("compile.py")
    argv = (str(python.path), "-I", "-B", "-", *asked.args)
    return [Task(argv=argv, read=flaws, programs=(python,), fix="fix the syntax", env=QUIET, stdin=script)]


def _is_chosen(name: str, paths: Sequence[str]) -> bool:
    bare = [path.removeprefix("./") for path in paths]
    return not bare or any(name == path or path == "." or name.startswith(f"{path}/") for path in bare)


def _test(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    pytest = find(site, "pytest")
    if pytest is not None:
        return _by_pytest(site, asked, pytest, cover=False)
    python = find(site, *PYTHONS)
    if python is None:
        return [NO_PYTHON]
    if not _speaks_unittest(site):
        return [CannotRun(message="there is no pytest here", fix="install pytest into the project's .venv")]
    argv = (str(python.path), "-B", "-", *asked.paths, *asked.args)
    return [_tests(argv, (python,), probe("unittest.py"))]


def _by_pytest(site: Site, asked: TaskOptions, pytest: FoundProgram, *, cover: bool) -> Sequence[Task | CannotRun]:
    python = beside(pytest, *PYTHONS) or find(site, *PYTHONS)
    if python is None:
        return [NO_PYTHON]
    argv = (str(python.path), "-B", "-", "-q", "-p", "no:cacheprovider", *asked.args, *asked.paths)
    return [_tests(argv, (python, pytest), assignment("COVER", int(cover)) + probe("pytest.py"))]


def _tests(argv: tuple[str, ...], programs: tuple[FoundProgram, ...], script: str) -> Task:
    fix = "fix the code, or the test if that is wrong"
    return Task(argv=argv, read=results, programs=programs, fix=fix, env=QUIET, stdin=script, writable=True)


def _speaks_unittest(site: Site) -> bool:
    tests = [name for name in site.sources(".py") if "test" in name.rsplit("/", 1)[-1]]
    return any("unittest" in site.text(name) for name in tests[:LOOKED_INTO_MAX])


def _lint(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    fix = "fix it; `ruff check --fix` fixes much by itself"
    if ruff := find(site, "ruff"):
        argv = (
            str(ruff.path),
            "check",
            "--output-format=json",
            "--no-cache",
            *asked.args,
            "--",
            *(asked.paths or ["."]),
        )
        return [Task(argv=argv, read=_ruff, programs=(ruff,), fix=fix, env=QUIET)]
    if flake8 := find(site, "flake8"):
        argv = (str(flake8.path), "--format=default", *asked.args, *(asked.paths or ["."]))
        return [Task(argv=argv, read=diagnostics, programs=(flake8,), fix="fix it", env=QUIET)]
    return [CannotRun(message="there is no ruff and no flake8 here", fix="install ruff into the project's .venv")]


def _ruff(ran: Ran) -> Result:
    said = json_of(ran.stdout)
    problems = [_of_ruff(one) for one in said[:PROBLEMS_MAX] if isinstance(one, dict)] if isinstance(said, list) else []
    return Result(counts={"problems": len(problems)}, problems=tuple(problems), is_whole=isinstance(said, list))


def _of_ruff(one: dict[str, Any]) -> Problem:
    at = one.get("location") or {}
    return Problem(
        file=str(one.get("filename", "")),
        line=whole(at.get("row")),
        column=whole(at.get("column")),
        message=f"{one.get('code') or 'syntax'}: {one.get('message', '')}"[:MESSAGE_MAX],
    )


def _coverage(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    pytest, coverage = find(site, "pytest"), find(site, "coverage")
    if pytest is None or coverage is None:
        missing = "pytest" if pytest is None else "coverage"
        return [CannotRun(message=f"there is no {missing} here", fix=f"install {missing} into the project's .venv")]
    return _by_pytest(site, asked, pytest, cover=True)


PYTHON: Final = Language(
    name="python",
    markers=("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "tox.ini", "Pipfile"),
    suffixes=(".py",),
    plans={TaskKind.BUILD: _build, TaskKind.TEST: _test, TaskKind.LINT: _lint, TaskKind.COVERAGE: _coverage},
)
