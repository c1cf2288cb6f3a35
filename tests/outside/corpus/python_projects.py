"""Nine real Python packages, each in another kind of environment, as developers have them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from outside.corpus.packages import packages
from outside.corpus.yard import Yard, clean_shell
from rules.toolchain.environments import BASE, COVERAGE, PACKAGES, PYTEST, VERSION, environment, install, mark
from rules.toolchain.workshop import program

XDIST = ("xdist", "pytest_xdist-*.dist-info", "execnet", "execnet-*.dist-info")
HYPOTHESIS = ("typing_extensions.py", "hypothesis", "_hypothesis_*", "hypothesis-*.dist-info", "sortedcontainers")
PLUGINS = ("pytest_cov", "pytest_cov-*.dist-info", "pytest_asyncio", "pytest_asyncio-*.dist-info")
USUAL = (*PYTEST, "pluggy-*.dist-info", *COVERAGE)


@dataclass(frozen=True)
class Python:
    """A package: where its code and its tests are, and a line that breaks it."""

    name: str
    source: str
    """Name and version, as its sources are called."""
    kind: str
    """The kind of its environment."""
    code: str
    breaking: str
    """What to add to the code so that a test fails."""
    tests: str
    """The file with the test that then fails."""
    test: str
    """The name of that test."""
    packages: tuple[str, ...] = USUAL
    without: tuple[str, ...] = ()
    """Packages that are installed from the project itself."""
    inside: str = ""
    """The folder of the project in its repository."""


PYTHONS = {
    one.name: one
    for one in (
        Python(
            "inflection",
            "inflection-0.5.1",
            "venv",
            "inflection/__init__.py",
            "\n\ndef camelize(string, uppercase_first_letter=True):\n    return string\n",
            "test_inflection.py",
            "test_camelize",
            packages=(*USUAL, "ruff", "ruff-*.dist-info"),
        ),
        Python(
            "iniconfig",
            "iniconfig-2.3.1",
            "uv",
            "src/iniconfig/__init__.py",
            "\n\nSectionWrapper.lineof = lambda self, name: None\n",
            "testing/test_iniconfig.py",
            "test_iniconfig_lineof",
            without=("iniconfig",),
        ),
        Python(
            "h11",
            "h11-0.16.0",
            "VIRTUAL_ENV",
            "h11/_receivebuffer.py",
            "\n\nReceiveBuffer.is_next_line_obviously_invalid_request_line = lambda self: False\n",
            "h11/tests/test_connection.py",
            "test_early_detection",
        ),
        Python(
            "six",
            "six-1.17.0",
            "pyenv",
            "six.py",
            "\n\ndef add_metaclass(metaclass):\n    return lambda cls: cls\n",
            "test_six.py",
            "test_add_metaclass",
            packages=(*USUAL, *XDIST, *HYPOTHESIS, "pytest_asyncio", "pytest_asyncio-*.dist-info"),
        ),
        Python(
            "parse",
            "parse-1.22.4",
            "poetry",
            "parse/__init__.py",
            "\n\nResult.__contains__ = lambda self, name: False\n",
            "tests/test_result.py",
            "test_contains",
            packages=(*USUAL, "pytest_cov", "pytest_cov-*.dist-info"),
        ),
        Python(
            "pluggy",
            "pluggy-1.7.0",
            "hatch",
            "src/pluggy/_tracing.py",
            "\n\nTagTracer.setprocessor = lambda self, tags, processor: None\n",
            "testing/test_tracer.py",
            "test_setprocessor",
            without=("pluggy",),
        ),
        Python(
            "isodate",
            "isodate-0.7.2",
            "conda",
            "src/isodate/isodates.py",
            "\n\ndef date_isoformat(*words, **more):\n    return ''\n",
            "tests/test_date.py",
            "test_format",
        ),
        Python(
            "text-unidecode",
            "text-unidecode-1.3",
            "--user",
            "src/text_unidecode/__init__.py",
            "\n\n_right = unidecode\n\n\ndef unidecode(txt):\n    return _right(txt).replace('Bei', 'Pei')\n",
            "test_unidecode.py",
            "test_transliterate",
        ),
        Python(
            "pathspec",
            "pathspec-1.1.1",
            "unittest",
            "pathspec/util.py",
            "\n\ndef normalize_file(file, separators=None):\n    return ''\n",
            "tests/test_01_util.py",
            "",
            packages=(),
        ),
        Python(
            "part",
            "inflection-0.5.1",
            "workspace",
            "inflection/__init__.py",
            "\n\ndef camelize(string, uppercase_first_letter=True):\n    return string\n",
            "test_inflection.py",
            "test_camelize",
            inside="packages/inflection",
        ),
    )
}


def laid(project: Python, home: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """The project with its environment, and the shell of its developer."""
    clean_shell(monkeypatch, home)
    yard = Yard(home, f"{project.name}/{project.inside}".rstrip("/"))
    if project.inside:
        yard.top = home / "work" / project.name
    found = packages() / "sources" / project.source
    for path in found.iterdir():
        if path.is_dir() and not path.name.endswith(".egg-info"):
            shutil.copytree(path, yard.root / path.name)
        elif path.is_file():
            shutil.copy2(path, yard.root)
    folder = KINDS[project.kind](home, yard.root, project, monkeypatch)
    names = [one for one in project.packages if one not in project.without]
    install(folder, names)
    for name in PLUGINS:
        if name in project.packages:
            for path in (packages() / "site").glob(name):
                shutil.copytree(path, folder / path.name, dirs_exist_ok=True)
    if "ruff" in project.packages:
        shutil.copy2(PACKAGES.parents[2] / "bin" / "ruff", folder.parents[2] / "bin" / "ruff")
    src = yard.root / "src"
    (folder / "project.pth").write_text(f"{src if src.is_dir() else yard.root}\n", encoding="utf-8")
    return yard


Kind = Callable[[Path, Path, Python, pytest.MonkeyPatch], Path]


def _site(folder: Path) -> Path:
    return folder / "lib" / VERSION / "site-packages"


def _venv(home: Path, root: Path, project: Python, monkeypatch: pytest.MonkeyPatch) -> Path:
    return _site(environment(root / "venv"))


def _plain(home: Path, root: Path, project: Python, monkeypatch: pytest.MonkeyPatch) -> Path:
    return _site(environment(root / ".venv"))


def _uv(home: Path, root: Path, project: Python, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The interpreter is reached by a link to a folder with the whole version."""
    store = home / ".local" / "share" / "uv" / "python"
    store.mkdir(parents=True)
    (store / "cpython-3-linux").symlink_to(BASE)
    return _site(environment(root / ".venv", python=store / "cpython-3-linux" / "bin" / "python3"))


def _active(home: Path, root: Path, project: Python, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VIRTUAL_ENV", str(home / "envs" / project.name))
    return _site(environment(home / "envs" / project.name))


def _pyenv(home: Path, root: Path, project: Python, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that pyenv keeps under the name in .python-version; PATH has only its shim."""
    shim = program(home / ".pyenv" / "shims", "python3")
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    (root / ".python-version").write_text("kept\n", encoding="utf-8")
    return _site(environment(home / ".pyenv" / "versions" / "kept"))


def _poetry(home: Path, root: Path, project: Python, monkeypatch: pytest.MonkeyPatch) -> Path:
    (root / "poetry.lock").write_text("", encoding="utf-8")
    folder = home / ".cache" / "pypoetry" / "virtualenvs"
    return _site(environment(folder / f"{project.name}-{mark(root)}-py3.11"))


def _hatch(home: Path, root: Path, project: Python, monkeypatch: pytest.MonkeyPatch) -> Path:
    (root / "hatch.toml").write_text("", encoding="utf-8")
    folder = home / ".local" / "share" / "hatch" / "env" / "virtual" / project.name / mark(root)
    return _site(environment(folder / project.name))


def _conda(home: Path, root: Path, project: Python, monkeypatch: pytest.MonkeyPatch) -> Path:
    (root / "environment.yml").write_text(f"name: {project.name}\n", encoding="utf-8")
    folder = environment(home / "miniconda3" / "envs" / project.name)
    (folder / "conda-meta").mkdir()
    return _site(folder)


def _user(home: Path, root: Path, project: Python, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Packages that the user installed for the machine's own interpreter."""
    monkeypatch.setenv("PATH", f"{BASE / 'bin'}:{os.environ['PATH']}")
    return home / ".local" / "lib" / VERSION / "site-packages"


def _workspace(home: Path, root: Path, project: Python, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One environment for all parts of a repository, beside them."""
    return _site(environment(root.parents[1] / ".venv"))


KINDS: dict[str, Kind] = {
    "venv": _venv,
    "uv": _uv,
    "VIRTUAL_ENV": _active,
    "pyenv": _pyenv,
    "poetry": _poetry,
    "hatch": _hatch,
    "conda": _conda,
    "--user": _user,
    "unittest": _plain,
    "workspace": _workspace,
}
