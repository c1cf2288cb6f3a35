"""Installations: the folders that a program of this machine needs to run, recognised by what every such folder has.

A project's files say where its tools are, and a stranger may have written them: a folder is shown to commands only if
it has the marks of an installation. The sandbox has the last word (tools/sandbox/shown_places.py)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from handrail.foundation.plain_file import NotPlain, read_start

HOPS_MAX: Final = 10
"""How many links, and how many interpreters of scripts, are followed."""
HEAD_BYTES: Final = 4_096
BINS: Final = frozenset({"bin", "Scripts"})
MARKS: Final = (
    ("pyvenv.cfg",),
    ("conda-meta",),
    ("lib/rustlib",),
    ("bin/node", "include/node"),
    ("bin/node", "lib/node_modules/npm"),
    ("src/runtime", "pkg/tool"),
    ("release", "lib/modules"),
    ("bin/m2.conf", "boot"),
    ("lib/plugins", "bin/gradle"),
)
"""Files and folders that an installation of each kind has: all of one line."""
LIBRARIES: Final = ("lib/python3*/os.py", "lib64/python3*/os.py", "lib/pypy3*/os.py", "lib/python2*/os.py")

_shebang = re.compile(r"^#!\s*(/[^\s]+)")
_long_shebang = re.compile(r"^'''exec' \"?(/[^\"\n]+?)\"? \"\$0\"", re.MULTILINE)
_home = re.compile(r"^home\s*=\s*(\S[^\n]*)$", re.MULTILINE)


def is_installation(folder: Path) -> bool:
    """Whether a folder has the marks of an interpreter, an environment, or a tool chain."""
    if any(all((folder / name).exists() for name in names) for names in MARKS):
        return True
    return any(next(folder.glob(pattern), None) is not None for pattern in LIBRARIES)


def needs_of(program: Path) -> tuple[Path, ...]:
    """Every place that a program needs to run: its installation, that of its interpreter, and the links between."""
    found: dict[Path, None] = {}
    todo, seen = [program], set[Path]()
    while todo and len(seen) < HOPS_MAX:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for hop in _hops(path):
            found |= dict.fromkeys(_around(hop))
        todo += _interpreters(path)
    return tuple(found)


def text_of(path: Path, bytes_max: int = 65_536) -> str:
    """The start of a small file; empty if it can't be read, or is a pipe or a device."""
    try:
        return read_start(path, bytes_max=bytes_max).decode(errors="replace")
    except (NotPlain, OSError):
        return ""


def interpreter_of(script: Path) -> Path | None:
    """The interpreter that a script names in its first lines, if it is an absolute path."""
    head = text_of(script, HEAD_BYTES)
    named = _long_shebang.search(head) or _shebang.match(head)
    return Path(named[1]) if named and named[1] != "/usr/bin/env" else None


def prefix_of(program: Path) -> Path:
    """The folder that a program is installed in."""
    return program.parent.parent if program.parent.name in BINS else program.parent


def _hops(path: Path) -> Iterator[Path]:
    """A path, and what each link on the way leads to."""
    for _ in range(HOPS_MAX):
        yield path
        if not path.is_symlink():
            break
        path = Path(os.path.normpath(path.parent / path.readlink()))
    yield path.resolve()


def _around(path: Path) -> Iterator[Path]:
    """The installation that a file belongs to, else only the file itself."""
    prefix = prefix_of(path)
    if not is_installation(prefix):
        yield path
        return
    yield from _parts(prefix)
    if home := _home.search(text_of(prefix / "pyvenv.cfg")):
        base = Path(home[1].strip()).parent
        if base.is_absolute() and is_installation(base):
            yield from _parts(base)


def _parts(prefix: Path) -> Iterator[Path]:
    """The installation; only its programs and libraries if people keep other things there, too. Where `/bin` is a link
    to `/usr/bin`, the whole machine looks like one: what a program needs of that is seen anyway."""
    if prefix == prefix.parent:
        return
    if prefix in {Path.home() / ".local", Path.home()}:
        yield from (prefix / name for name in ("bin", "lib", "lib64") if (prefix / name).is_dir())
    else:
        yield prefix


def _interpreters(path: Path) -> list[Path]:
    found = interpreter_of(path)
    return [found] if found is not None else []
