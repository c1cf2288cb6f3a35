"""Which Python a developer would use in a project, in order: its own environment, then those that tools keep for it
elsewhere, then the version that it names, then the machine's. Nothing is run, and a shim is never taken."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from handrail.rules.toolchain.installed.installation import interpreter_of, prefix_of, text_of
from handrail.rules.toolchain.installed.python_environment import Python
from handrail.rules.toolchain.installed.shims import machine_programs, version_folders
from handrail.rules.toolchain.site import Site

NAMES: Final = ("python3", "python")
FOLDERS: Final = (".venv", "venv", "env", ".env")
SPECIAL: Final = re.compile(r'[ $`!*@"\\\r\n\t]')
CONDAS: Final = (".conda", "miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba")
FILES: Final = {"poetry": "poetry.lock", "pipenv": "Pipfile", "hatch": "hatch.toml"}
"""By tool: the file by which a project shows that it uses it."""
ABOVE_MAX: Final = 6
"""How many folders above the project are searched for the environment of a workspace."""

_conda_name = re.compile(r"^name:\s*[\"']?([\w.-]{1,100})", re.MULTILINE)


def pythons(site: Site) -> Iterator[Python]:
    """All that could be used, the best first."""
    seen: set[Path] = set()
    for found in (*_own(site), *_of_machine(site)):
        if found.path not in seen and os.access(found.path, os.X_OK):
            seen.add(found.path)
            yield found


def _own(site: Site) -> Iterator[Python]:
    """Those that were made or named for the project."""
    for folder in site.above():
        for name in FOLDERS:
            yield from _in(folder / name, f"the environment {name} of the project", needs_mark=False)
    yield from _active(site)
    yield from _of_tools(site)
    for folder in _workspace(site):
        yield from _in(folder / ".venv", "the environment .venv of the workspace")
    yield from _of_test_runners(site)
    yield from _named(site)


def _active(site: Site) -> Iterator[Python]:
    """Those that the developer's shell names."""
    for variable in ("UV_PROJECT_ENVIRONMENT", "VIRTUAL_ENV", "CONDA_PREFIX"):
        if given := os.environ.get(variable):
            is_own = variable != "CONDA_PREFIX" or os.environ.get("CONDA_DEFAULT_ENV") != "base"
            yield from _in(site.project.root / given, f"{variable} names it", is_own=is_own)


def _of_test_runners(site: Site) -> Iterator[Python]:
    """Those that tox and nox have made, the ones for tests first."""
    root = site.project.root
    for made in sorted((*root.glob(".tox/*"), *root.glob(".nox/*")), key=lambda path: ("test" not in path.name, path)):
        yield from _in(made, f"the environment {made.relative_to(root)} of the project")


def _named(site: Site) -> Iterator[Python]:
    """Those of the version that the project names."""
    for folder in site.above():
        for version in text_of(folder / ".python-version").split()[:5]:
            for installed in version_folders("python", version):
                yield from _in(installed, f".python-version names {version}", needs_mark=False)


def _of_tools(site: Site) -> Iterator[Python]:
    """Those that tools keep for the project in the user's home folder."""
    root, settings = site.project.root, _settings(site)
    yield from _pdm(root)
    kept = {"poetry": _poetry(root, settings), "pipenv": _pipenv(root), "hatch": _hatch(root, settings)}
    # Their names have the digest of the folder: one that is there was made for it. What the project names comes first.
    for tool in sorted(kept, key=lambda tool: not _uses(root, settings, tool)):
        for folder in kept[tool]:
            yield from _in(folder, f"the environment that {tool} keeps for the project")
    for folder in _conda(root):
        yield from _in(folder, "the conda environment of environment.yml", needs_mark=False)


def _uses(root: Path, settings: dict[str, Any], tool: str) -> bool:
    build = settings.get("build-system")
    backend = str(build.get("build-backend", "")) if isinstance(build, dict) else ""
    return (root / FILES[tool]).is_file() or tool in _tools(settings) or backend.startswith(tool)


def _pdm(root: Path) -> Iterator[Python]:
    found = Path(text_of(root / ".pdm-python").strip())
    if found.is_absolute() and found.parent.name == "bin" and (prefix_of(found) / "pyvenv.cfg").is_file():
        yield Python(path=found, why=".pdm-python names it")


def _in(folder: Path, why: str, *, needs_mark: bool = True, is_own: bool = True) -> Iterator[Python]:
    """The interpreter of an environment."""
    if needs_mark and not ((folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()):
        return
    found = next((folder / "bin" / name for name in NAMES if os.access(folder / "bin" / name, os.X_OK)), None)
    if found is not None:
        yield Python(path=found, why=why, is_own=is_own)


def _of_machine(site: Site) -> Iterator[Python]:
    above = tuple(site.above())
    for name in NAMES:
        yield from (
            Python(path=one.path, why=one.why or f"the first {name} on PATH", is_own=False)
            for one in machine_programs(name, above)
        )
    for script in machine_programs("pytest", above):
        if (python := interpreter_of(script.path)) and "python" in python.name:
            yield Python(path=python, why=f"{script.path} on PATH is run by it", is_own=False)
    for folder, tool in _tool_environments():
        yield from _in(folder, f"{tool} keeps pytest in it", is_own=False)


def _tool_environments() -> Iterator[tuple[Path, str]]:
    """Where pipx and uv keep pytest if it is installed or run as a tool of its own; uv's cache has the newest last."""
    yield Path(os.environ.get("UV_TOOL_DIR") or _data() / "uv" / "tools") / "pytest", "uv"
    for home in (os.environ.get("PIPX_HOME") or _data() / "pipx", Path.home() / ".local" / "pipx"):
        yield Path(home) / "venvs" / "pytest", "pipx"
    cache = Path(os.environ.get("UV_CACHE_DIR") or _cache() / "uv")
    run = sorted(cache.glob("archive-v*/*/bin/pytest"), key=lambda path: path.lstat().st_mtime, reverse=True)
    yield from ((script.parent.parent, "uvx") for script in run[:1])


def _settings(site: Site) -> dict[str, Any]:
    try:
        return tomllib.loads(text_of(site.project.root / "pyproject.toml", 1_000_000))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _tools(settings: dict[str, Any]) -> dict[str, Any]:
    found = settings.get("tool")
    return found if isinstance(found, dict) else {}


def _name(settings: dict[str, Any], tool: str = "") -> str:
    """The name of the project, where tools look for it."""
    for table in (settings.get("project"), _tools(settings).get(tool)):
        if isinstance(table, dict) and isinstance(table.get("name"), str):
            return str(table["name"])
    return ""


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _data() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")


def _mark(path: Path) -> str:
    """The short digest by which poetry and hatch name the environments of a folder."""
    return base64.urlsafe_b64encode(hashlib.sha256(str(path).encode(errors="surrogateescape")).digest()).decode()[:8]


def _poetry(root: Path, settings: dict[str, Any]) -> list[Path]:
    cache = Path(os.environ.get("POETRY_CACHE_DIR") or _cache() / "pypoetry")
    folder = Path(os.environ.get("POETRY_VIRTUALENVS_PATH") or cache / "virtualenvs")
    name = SPECIAL.sub("_", _normal(_name(settings, "poetry") or "non-package-mode"))[:42]
    return sorted(folder.glob(f"{_literal(name)}-{_mark(root.resolve())}-py*"), reverse=True)


def _normal(name: str) -> str:
    """A package's name as tools compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _literal(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name.replace("/", "_"))


def _pipenv(root: Path) -> list[Path]:
    folder = Path(os.environ.get("WORKON_HOME") or _data() / "virtualenvs")
    marks = sorted(folder.glob("*/.project"))[:1_000]
    return [mark.parent for mark in marks if text_of(mark).strip() == str(root)]


def _hatch(root: Path, settings: dict[str, Any]) -> list[Path]:
    data = Path(os.environ.get("HATCH_DATA_DIR") or _data() / "hatch")
    folder = data / "env" / "virtual" / _normal(_name(settings)).replace("/", "_") / _mark(root)
    return sorted(folder.glob("*"), key=lambda path: (not path.name.startswith("hatch-test"), path.name))


def _conda(root: Path) -> Iterator[Path]:
    text = next(filter(None, (text_of(root / name) for name in ("environment.yml", "environment.yaml"))), "")
    named = _conda_name.search(text)
    if named is None:
        return
    homes = [Path.home() / name for name in CONDAS]
    bases = [os.environ.get("CONDA_ROOT"), os.environ.get("MAMBA_ROOT_PREFIX"), "/opt/conda"]
    for base in (*map(Path, filter(None, bases)), *homes):
        if (base / "envs" / named[1] / "conda-meta").is_dir():
            yield base / "envs" / named[1]


def _workspace(site: Site) -> Iterator[Path]:
    """The folders above the project, up to its repository: workspaces have one environment for all their parts."""
    root = site.project.root
    for folder in root.parents[:ABOVE_MAX]:
        if folder == Path.home() or (root / ".git").exists():
            return
        yield folder
        root = folder
