"""Environments as developers have them, made quickly: real interpreters, and packages copied from these tests' own."""

from __future__ import annotations

import base64
import hashlib
import shutil
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from handrail.engine.checking.rule import Setting
from handrail.tools.sandbox.bubblewrap import Bubblewrap
from outside.debian import bubblewrap
from rules.on_project import setting_of

PACKAGES = Path(sysconfig.get_paths()["purelib"])
PYTEST = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py.py", "pytest-*.dist-info")
COVERAGE = ("coverage", "coverage-*.dist-info")
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
BASE = Path(sys.base_prefix)
"""The installation that the tests' own environment was made with: in a home folder, if pyenv made it."""


def environment(folder: Path, packages: Sequence[str] = (), *, python: Path | None = None) -> Path:
    """A virtual environment with these packages; `python` is what its interpreter is a link to."""
    venv.create(folder, symlinks=True)
    if python is not None:
        for link in (folder / "bin").glob("python*"):
            link.unlink()
        for name in ("python", "python3"):
            (folder / "bin" / name).symlink_to(python)
        config = folder / "pyvenv.cfg"
        config.write_text(f"home = {python.parent}\ninclude-system-site-packages = false\n")
    install(folder / "lib" / VERSION / "site-packages", packages)
    return folder


def install(folder: Path, packages: Sequence[str]) -> None:
    """Copy packages of our own environment."""
    folder.mkdir(parents=True, exist_ok=True)
    for pattern in packages:
        for package in PACKAGES.glob(pattern):
            if package.is_dir():
                shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(package, folder)


def mark(path: Path) -> str:
    """How poetry and hatch name the environments of a folder."""
    return base64.urlsafe_b64encode(hashlib.sha256(str(path).encode()).digest()).decode()[:8]


def by_default(project: Path, *private: Path) -> Setting:
    """A setting as everyone has it: the real sandbox, and no further folder is named."""
    sandbox = Bubblewrap(project, program=str(bubblewrap()), private=private)
    return replace(setting_of(project), sandbox=sandbox)
