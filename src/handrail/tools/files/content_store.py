"""Stored contents: what files contained before a run changed them, for the undo; and results of tools that are too
large for the journal.

Readable by the owner only, synced before the change is made, and separate from the journal, which stays small and free
of secrets. Kept until the run has ended permanently."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolFailed
from handrail.foundation.atomic_file import make_private_folder, write_whole

_run = re.compile(r"[A-Za-z0-9_-]{1,100}")
_name = re.compile(r"[0-9a-f]{64}-[0-9a-f]{32}")


class ContentStore:
    """A folder with a subfolder for each run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, run: str, step: str, content: bytes) -> str:
        """Store content for a step of a run; its name."""
        folder = self._of(run)
        name = f"{hashlib.sha256(step.encode()).hexdigest()}-{hashlib.sha256(content).hexdigest()[:32]}"
        if (folder / name).exists():
            return name  # named by its content: already stored, completely
        make_private_folder(folder)
        write_whole(folder / name, content, takes_turns=True)
        return name

    def get(self, run: str, name: str, *, sha256: str) -> bytes:
        """The content of that name; ToolFailed if it is missing or was changed."""
        hint = "restore the file from a backup, then record the compensation"
        file = self._of(run) / name
        if not _name.fullmatch(name) or not file.exists():
            raise ToolFailed(Category.NOT_FOUND, f"the content stored for this undo is missing; {hint}")
        content = file.read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise ToolFailed(Category.CONFLICT, f"the content stored for this undo was changed; {hint}")
        return content

    def find(self, run: str, name: str, *, sha256: str) -> bytes | None:
        """The content of that name and digest; None if the run has no such content."""
        try:
            return self.get(run, name, sha256=sha256)
        except (ToolFailed, OSError):
            return None

    def size(self, run: str) -> int:
        """How many bytes are stored for a run."""
        with suppress(FileNotFoundError), os.scandir(self._of(run)) as files:
            return sum(file.stat().st_size for file in files)
        return 0

    def has(self, run: str) -> bool:
        """Whether anything is stored for a run."""
        return self._of(run).exists()

    def forget(self, run: str) -> None:
        """Delete everything stored for a run."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self._of(run))

    def _of(self, run: str) -> Path:
        plain = run if _run.fullmatch(run) else hashlib.sha256(run.encode()).hexdigest()
        return self._folder / plain
