"""Packages that run tests and are not as they were installed: somebody has edited them since. Reads files."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.rules.toolchain.installed.installation import text_of

RUNNERS: Final = ("pytest", "pluggy")
RECORD_BYTES_MAX: Final = 1_000_000
FILES_MAX: Final = 1_000
FILE_BYTES_MAX: Final = 2_000_000
HASHED: Final = "sha256="


def altered(folders: Iterable[Path]) -> Path | None:
    """The first file of a runner in these folders that differs from what its installer recorded; None if none does, or
    nothing was recorded."""
    return next((file for folder in folders for name in RUNNERS for file in _altered(folder, name)), None)


def _altered(folder: Path, name: str) -> Iterator[Path]:
    for record in sorted(folder.glob(f"{name}-[0-9]*.dist-info/RECORD"))[:1]:
        for line in text_of(record, RECORD_BYTES_MAX).splitlines()[:FILES_MAX]:
            path, _, rest = line.partition(",")
            if path.endswith(".py") and rest.startswith(HASHED) and _digest(folder / path) != rest.partition(",")[0]:
                yield folder / path


def _digest(file: Path) -> str:
    try:
        # The environment is the project's: a link to a device, or a pipe, would never end.
        content = read_plain(file, bytes_max=FILE_BYTES_MAX)
    except (OSError, NotPlain):
        return ""
    return HASHED + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
