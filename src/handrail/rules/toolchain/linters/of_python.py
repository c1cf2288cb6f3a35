"""Which linter a Python project uses (ruff, flake8 or pylint), and how its output is read.

The one that the project's files configure, else one that is installed. They never fix anything: a linter that did would
report what is left, in a copy that is thrown away."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.installed.installation import text_of
from handrail.rules.toolchain.program import FoundProgram, find
from handrail.rules.toolchain.reading import diagnostics, json_of, maps, whole
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import MESSAGE_MAX, PROBLEMS_MAX, CannotRun, Problem, Result, Task, TaskOptions

QUIET: Final = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1", "NO_COLOR": "1", "PYLINTHOME": "/tmp"}  # noqa: S108 - the sandbox's own
SUFFIXES: Final = (".py", ".pyi")
FIXES: Final = {"ruff": "fix it; `ruff check --fix` fixes much by itself"}
PYLINT_FATAL: Final = 32
"""The exit code of pylint is a sum: below this, of the kinds of what it found."""
SETTINGS: Final = {
    "ruff": {"ruff.toml": "", ".ruff.toml": "", "pyproject.toml": r"^\[tool\.ruff[\].]"},
    "flake8": {".flake8": "", "setup.cfg": r"^\[flake8\]", "tox.ini": r"^\[flake8\]"},
    "pylint": {
        "pylintrc": "",
        ".pylintrc": "",
        ".pylintrc.toml": "",
        "pylintrc.toml": "",
        "pyproject.toml": r"^\[tool\.pylint[\].]",
        "setup.cfg": r"^\[pylint",
    },
}
"""By linter: the files that configure it, and what they have in them then."""
NO_LINTER: Final = CannotRun(
    message="there is no linter here: neither ruff nor flake8 nor pylint", fix="install ruff to have one", is_note=True
)


def python_lint(site: Site, asked: TaskOptions, bins: Sequence[Path]) -> Sequence[Task | CannotRun]:
    """What to run; `bins` are the folders with the programs of the project's own environments."""
    targets = asked.targets(*SUFFIXES)
    configured = [name for name in SETTINGS if any(_configures(site, name))]
    found = ((name, _tool(site, name, bins)) for name in configured or SETTINGS)
    name, program = next(((name, one) for name, one in found if one is not None), ("", None))
    if program is None and targets:
        return [_missing(site, configured) if configured else NO_LINTER]
    return [_task(name, program, asked, targets)] if program and targets else []


def _task(name: str, program: FoundProgram, asked: TaskOptions, targets: tuple[str, ...]) -> Task:
    options, read = COMMANDS[name]
    argv = (str(program.path), *options, *asked.args, *(["--"] if name == "ruff" else []), *targets)
    finds = tuple(range(1, PYLINT_FATAL)) if name == "pylint" else (1,)
    return Task(argv=argv, read=read, programs=(program,), fix=FIXES.get(name, "fix it"), env=QUIET, finds=finds)


def _missing(site: Site, configured: Sequence[str]) -> CannotRun:
    files = ", ".join(sorted({file for name in configured for file in _configures(site, name)}))
    message = f"the project configures {' and '.join(configured)} ({files}), but that is not installed here"
    return CannotRun(message=message, fix=f"install {configured[0]} into the project's environment")


def _configures(site: Site, linter: str) -> Iterator[str]:
    """The files of the project that configure a linter."""
    for folder in site.above():
        for name, pattern in SETTINGS[linter].items():
            path = folder / name
            if path.is_file() and (not pattern or re.search(pattern, text_of(path, 1_000_000), re.MULTILINE)):
                yield name


def _tool(site: Site, name: str, bins: Sequence[Path]) -> FoundProgram | None:
    """A program of the project's own environment, else one of the machine, else one that pre-commit has installed."""
    own = next((folder / name for folder in bins if os.access(folder / name, os.X_OK)), None)
    return FoundProgram(name, own) if own else find(site, name) or _of_pre_commit(site, name)


def _of_pre_commit(site: Site, name: str) -> FoundProgram | None:
    if not (site.project.root / ".pre-commit-config.yaml").is_file():
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = Path(os.environ.get("PRE_COMMIT_HOME") or cache / "pre-commit")
    found = sorted(home.glob(f"repo*/py_env-*/bin/{name}"), key=lambda path: path.stat().st_mtime, reverse=True)
    usable = (path for path in found if os.access(path, os.X_OK))
    return next((FoundProgram(name, path, "pre-commit has installed it") for path in usable), None)


def _ruff(ran: Ran) -> Result:
    said = json_of(ran.stdout)
    problems = tuple(map(_of_ruff, maps(said)[:PROBLEMS_MAX]))
    return Result(counts={"problems": len(problems)}, problems=problems, is_whole=isinstance(said, list))


def _of_ruff(one: Any) -> Problem:
    at = one.get("location") or {}
    return Problem(
        file=str(one.get("filename", "")),
        line=whole(at.get("row")),
        column=whole(at.get("column")),
        message=f"{one.get('code') or 'syntax'}: {one.get('message', '')}"[:MESSAGE_MAX],
    )


def _pylint(ran: Ran) -> Result:
    said = json_of(ran.stdout)
    problems = tuple(map(_of_pylint, maps(said)[:PROBLEMS_MAX]))
    return Result(counts={"problems": len(problems)}, problems=problems, is_whole=isinstance(said, list))


def _of_pylint(one: Any) -> Problem:
    return Problem(
        file=str(one.get("path", "")),
        line=whole(one.get("line")),
        column=whole(one.get("column")) + 1,
        message=f"{one.get('symbol') or one.get('message-id')}: {one.get('message', '')}"[:MESSAGE_MAX],
    )


COMMANDS: Final[dict[str, tuple[tuple[str, ...], Callable[[Ran], Result]]]] = {
    "ruff": (
        ("check", "--output-format=json", "--no-cache", "--no-fix", "--no-fix-only", "--force-exclude"),
        _ruff,
    ),
    "flake8": (("--format=default",), diagnostics),
    "pylint": (("--output-format=json", "--score=n", "--persistent=n"), _pylint),
}
"""By linter: its options, and how its output is read."""
