"""A Python interpreter of this machine: its environment, the packages it can import, and why it was chosen."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from handrail.rules.toolchain.installed.installation import interpreter_of, needs_of, prefix_of, text_of

_numbered = re.compile(r"(?:python|pypy)(\d+\.\d+)")
_system_packages = re.compile(r"^include-system-site-packages\s*=\s*true\s*$", re.MULTILINE | re.IGNORECASE)


class Python(Struct, frozen=True, kw_only=True):
    """An interpreter."""

    path: Path
    """As it is called: links are not resolved, because an environment is found by them."""
    why: str
    """Why it would be used for the project."""
    is_own: bool = True
    """Whether it was made or named for this project; not if it is only the machine's."""

    @property
    def is_environment(self) -> bool:
        """Whether it is a virtual environment."""
        return (prefix_of(self.path) / "pyvenv.cfg").is_file()

    def packages(self) -> tuple[Path, ...]:
        """The folders that it imports installed packages from."""
        own = prefix_of(self.path)
        if not self.is_environment:
            return tuple(self._of_base(prefix_of(self.path.resolve())))
        found = [*own.glob("lib/*/site-packages"), *own.glob("Lib/site-packages")]
        if _system_packages.search(text_of(own / "pyvenv.cfg")):
            found += self._of_base(prefix_of(self.path.resolve()))
        return tuple(found)

    def user_packages(self) -> Path | None:
        """The folder of packages that the user installed for every environment of this version, if it is used."""
        version = self._version()
        is_apart = self.is_environment and not _system_packages.search(text_of(prefix_of(self.path) / "pyvenv.cfg"))
        folder = user_base() / "lib" / f"python{version}" / "site-packages"
        return folder if version and not is_apart and folder.is_dir() else None

    def has(self, module: str) -> bool:
        """Whether it can import a package of that name."""
        files = (folder / name for folder in self.packages() for name in (f"{module}/__init__.py", f"{module}.py"))
        if any(file.is_file() for file in files):
            return True
        script = self.path.parent / module
        interpreter = interpreter_of(script)
        return interpreter is not None and interpreter.parent == self.path.parent

    def version_of(self, package: str) -> str:
        """The version of an installed package, from the name of its record; empty if it has none."""
        for folder in self.packages():
            for kind in ("dist-info", "egg-info"):
                if record := next(iter(sorted(folder.glob(f"{package}-[0-9]*.{kind}"))), None):
                    return record.name.removeprefix(f"{package}-").removesuffix(f".{kind}").split("-")[0]
        return ""

    def shows(self) -> tuple[Path, ...]:
        """Every place that it needs to run."""
        user = self.user_packages()
        return (*needs_of(self.path), *([user] if user else []))

    def _of_base(self, prefix: Path) -> Iterator[Path]:
        version = self._version()
        places = (prefix, Path("/usr/local")) if prefix == Path("/usr") else (prefix,)
        names = (f"python{version}/site-packages", f"python{version}/dist-packages", f"pypy{version}/site-packages")
        found = [place / "lib" / name for place in places for name in (*names, "python3/dist-packages")]
        user = self.user_packages()
        yield from (folder for folder in (*found, *([user] if user else [])) if folder.is_dir())

    def _version(self) -> str:
        """Such as 3.12: from its name, or from its library."""
        real = self.path.resolve()
        if named := _numbered.match(real.name):
            return named[1]
        libraries = [_numbered.match(path.parent.name) for path in prefix_of(real).glob("lib/p*3*/os.py")]
        versions = sorted({found[1] for found in libraries if found})
        return versions[0] if len(versions) == 1 else ""


def user_base() -> Path:
    """Where the user installs packages for all projects."""
    return Path(os.environ.get("PYTHONUSERBASE") or Path.home() / ".local")
