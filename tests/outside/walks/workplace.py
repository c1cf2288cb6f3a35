"""Workplaces: a real package in a real repository with an environment of its own, and a worker's hands in it.

The environment is made once for all tests of a process and linked into each workplace; everything else is made anew."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from interfaces.mcp.surface.agent import Place
from outside.debian import bubblewrap
from rules.on_project import committed, git, write
from rules.toolchain.environments import COVERAGE, PYTEST, environment

ENVIRONMENT = ".venv"
COMMAND_S_MAX = 120
IGNORED = f"{ENVIRONMENT}/\n__pycache__/\n.coverage\n.handrail/\n"


class Workplace(Place):
    """A home folder, a project with a history, and what a worker does in it."""

    def __init__(self, folder: Path, files: Mapping[str, str], *, has_sandbox: bool = True) -> None:
        super().__init__(folder)
        # As a person does who has it elsewhere, or where it can't be had.
        own = f"[shell]\nbubblewrap = {str(bubblewrap())!r}\n" if has_sandbox else '[checks]\nsandbox = "off"\n'
        self.home_config(own)
        shutil.copytree(_environment(), self.project / ENVIRONMENT, symlinks=True, copy_function=os.link)
        committed(self.project, {".gitignore": IGNORED, **files})

    def settings(self, **chosen: str) -> Any:
        """The default settings: checks look at the world, and the built-in workflows are there."""
        return super().settings(**{"built_in": "true", "checks": "run", **chosen})

    # --- a worker's hands ---------------------------------------------------------------------------

    def read(self, path: str) -> str:
        return (self.project / path).read_text(encoding="utf-8")

    def write(self, path: str, text: str) -> None:
        write(self.project, {path: text})

    def append(self, path: str, text: str) -> None:
        self.write(path, self.read(path) + text)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that is there exactly once."""
        text = self.read(path)
        assert text.count(old) == 1, (path, old)
        self.write(path, text.replace(old, new))

    def delete(self, path: str) -> None:
        (self.project / path).unlink()

    def git(self, *words: str) -> str:
        return git(self.project, *words)

    def commit(self, message: str) -> str:
        """Commit everything; the commit's hash."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def run(self, *words: str, code: int | None = 0) -> str:
        """What a command says, with the project's own environment; it must end with this code, unless that is None."""
        own = self.project / ENVIRONMENT
        env = {**os.environ, "PATH": f"{own / 'bin'}:{os.environ['PATH']}", "VIRTUAL_ENV": str(own)}
        env = {key: value for key, value in env.items() if not key.startswith(("PYTEST_", "COVERAGE_", "PYTHONPATH"))}
        done = subprocess.run(
            words, cwd=self.project, env=env, capture_output=True, text=True, timeout=COMMAND_S_MAX, check=False
        )
        said = done.stdout + done.stderr
        assert code is None or done.returncode == code, (words, done.returncode, said)
        return said

    def pytest(self, *words: str, code: int | None = 0) -> str:
        return self.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, code=code)

    # --- what a lie leaves behind is undone -----------------------------------------------------------

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is done to the project inside is undone at the end, in its history too."""
        kept = Path(mkdtemp(dir=self.folder))
        leave: Callable[..., Any] = partial(shutil.copytree, symlinks=True, ignore=_only_at(self.project, ENVIRONMENT))
        leave(self.project, kept / "project")
        try:
            yield
        finally:
            for path in self.project.iterdir():
                if path.name != ENVIRONMENT:
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            shutil.copytree(kept / "project", self.project, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(kept)


def _only_at(folder: Path, name: str) -> Callable[[str, list[str]], list[str]]:
    return lambda where, _: [name] if Path(where) == folder else []


@cache
def _environment() -> Path:
    """An environment with pytest, coverage and a linter, as a developer has it; made once in a process."""
    made = environment(Path(_kept().name) / ENVIRONMENT, (*PYTEST, *COVERAGE))
    shutil.copy2(Path(sys.executable).parent / "ruff", made / "bin")
    return made


@cache
def _kept() -> TemporaryDirectory[str]:
    """A folder that is removed when the process ends."""
    return TemporaryDirectory(prefix="handrail-walks-")
