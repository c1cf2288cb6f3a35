"""Projects that are installed in an environment of Python as links to their sources: `pip install -e .` and the like.

Read from the files that installers write, without running anything: lines of `.pth` files, and the tables of the
finders that setuptools makes. Installers that build at import time (meson-python, scikit-build-core) are not seen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from handrail.rules.toolchain.installed.installation import text_of
from handrail.rules.toolchain.installed.python_environment import Python

FILES_MAX: Final = 500
LINES_MAX: Final = 1_000

_table = re.compile(r"^MAPPING[^=\n]{0,80}=\s*(\{[^\n]{0,100000}\})\s*$", re.MULTILINE)


def linked_sources(program: Path, root: Path) -> list[Path]:
    """The folders of a project that this interpreter imports from; none if it is no interpreter of Python."""
    if not program.name.startswith(("python", "pypy")):
        return []
    folders = Python(path=program, why="").packages()
    found = dict.fromkeys(place.resolve() for folder in folders for place in (*_lines(folder), *_finders(folder)))
    installed = [folder.resolve() for folder in folders]
    return [place for place in found if place.is_relative_to(root) and _is_source(place, installed)]


def _is_source(place: Path, installed: Sequence[Path]) -> bool:
    """Whether a place is a folder, and not one among the installed packages."""
    return place.is_dir() and not any(place.is_relative_to(folder) for folder in installed)


def _lines(folder: Path) -> Iterator[Path]:
    for file in islice(sorted(folder.glob("*.pth")), FILES_MAX):
        for line in text_of(file).splitlines()[:LINES_MAX]:
            if line.strip() and not line.startswith(("import ", "import\t", "#")):
                yield folder / line.strip()


def _finders(folder: Path) -> Iterator[Path]:
    """The folders around the packages that finders of setuptools know."""
    for file in islice(sorted(folder.glob("__editable__*_finder.py")), FILES_MAX):
        table = _table.search(text_of(file))
        try:
            known = ast.literal_eval(table[1]) if table else {}
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue  # not written by setuptools
        for name, place in known.items() if isinstance(known, dict) else ():
            if Path(str(place)).stem == str(name).rpartition(".")[2]:
                yield Path(str(place)).parents[str(name).count(".")]
