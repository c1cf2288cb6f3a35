"""Kept contents: what files held before a run changed them, so that the change can be taken back; and what tools
answered that is too large for the journal.

For the owner's eyes only, synced before the effect, and apart from the journal, which stays small and free of secrets.
Kept until the run has ended for good."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from handrail.domain.definition import Category
from handrail.engine.tool import ToolFailed

BINARY: Final = getattr(os, "O_BINARY", 0)

_run = re.compile(r"[A-Za-z0-9_-]{1,100}")
_name = re.compile(r"[0-9a-f]{64}-[0-9a-f]{32}")


class Kept:
    """One folder, with a folder for each run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, run: str, step: str, content: bytes) -> str:
        """Keep a content for a step of a run; its name."""
        folder = self._of(run)
        name = f"{hashlib.sha256(step.encode()).hexdigest()}-{hashlib.sha256(content).hexdigest()[:32]}"
        if (folder / name).exists():
            return name  # named by its content: it is there already, whole
        _private_folder(folder)
        part = folder / f"{name}.part"
        part.unlink(missing_ok=True)  # left behind by a crash
        file = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | BINARY, 0o600)
        with os.fdopen(file, "wb") as writer:
            writer.write(content)
            writer.flush()
            os.fsync(file)
        part.replace(folder / name)
        _sync(folder)
        return name

    def get(self, run: str, name: str, *, sha256: str) -> bytes:
        """What was kept under that name; ToolFailed if it is gone or is not what was kept."""
        hint = "restore the file from a copy of your own, then record the compensation"
        file = self._of(run) / name
        if not _name.fullmatch(name) or not file.exists():
            raise ToolFailed(Category.NOT_FOUND, f"what was kept for this undo is gone; {hint}")
        content = file.read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise ToolFailed(Category.CONFLICT, f"what was kept for this undo has been changed; {hint}")
        return content

    def find(self, run: str, name: str, *, sha256: str) -> bytes | None:
        """What was kept under that name with that digest; None if a run has no such thing."""
        try:
            return self.get(run, name, sha256=sha256)
        except (ToolFailed, OSError):
            return None

    def size(self, run: str) -> int:
        """How many bytes are kept for a run."""
        with suppress(FileNotFoundError), os.scandir(self._of(run)) as files:
            return sum(file.stat().st_size for file in files)
        return 0

    def has(self, run: str) -> bool:
        """Whether anything is kept for a run."""
        return self._of(run).exists()

    def forget(self, run: str) -> None:
        """Let go of all that was kept for a run."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self._of(run))

    def _of(self, run: str) -> Path:
        plain = run if _run.fullmatch(run) else hashlib.sha256(run.encode()).hexdigest()
        return self._folder / plain


def _private_folder(folder: Path) -> None:
    """Make a folder and those above it, where they are missing, for the owner only."""
    for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
        _sync(missing.parent)


def _sync(folder: Path) -> None:
    if sys.platform == "win32":  # folders can't be synced there, and need not be
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
