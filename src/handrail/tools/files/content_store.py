"""Stored contents: what files contained before a run changed them, for the undo; and results of tools that are too
large for the journal.

Readable by the owner only, synced before the change is made, and separate from the journal, which stays small and free
of secrets. Kept until the run has ended permanently. An undo needs a content as it was: one with a known secret in it
is encrypted."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from handrail.domain.definition.model import Category
from handrail.engine.known_secrets import NO_SECRETS, KnownSecrets
from handrail.engine.tool import ToolFailed
from handrail.foundation.atomic_file import make_private_folder, write_whole

_run = re.compile(r"[A-Za-z0-9_-]{1,100}")
_name = re.compile(r"[0-9a-f]{64}-[0-9a-f]{32}(\.sealed)?")

SEALED: Final = ".sealed"
NONCE_BYTES: Final = 12


class ContentStore:
    """A folder with a subfolder for each run."""

    def __init__(
        self, folder: Path, *, secrets: KnownSecrets = NO_SECRETS, key: Callable[[], bytes] | None = None
    ) -> None:
        """`key` opens what has one of the `secrets` in it; without it, such a content is refused."""
        self.folder = folder
        self._secrets = secrets
        self._key = key

    def put(self, run: str, step: str, content: bytes) -> str:
        """Store content for a step of a run; its name."""
        folder = self._of(run)
        name = f"{hashlib.sha256(step.encode()).hexdigest()}-{hashlib.sha256(content).hexdigest()[:32]}"
        if (folder / name).exists():
            return name  # named by its content: already stored, completely
        if self._secrets.scrubber().finds(content):
            name += SEALED
            content = self._sealed(content, name)
        make_private_folder(folder)
        write_whole(folder / name, content, takes_turns=True)
        return name

    def get(self, run: str, name: str, *, sha256: str) -> bytes:
        """The content of that name; ToolFailed if it is missing or was changed."""
        hint = "restore the file from a backup, then record the compensation"
        file = self._of(run) / name
        if not _name.fullmatch(name) or not file.exists():
            raise ToolFailed(Category.NOT_FOUND, f"the content stored for this undo is missing; {hint}")
        content = self._opened(file.read_bytes(), name)
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

    def _sealed(self, content: bytes, name: str) -> bytes:
        if self._key is None:
            message = "the content to keep for the undo has a secret in it; do this by hand"
            raise ToolFailed(Category.PERMISSION, message)
        # Imported late: the library takes longer than most commands, and few contents have a secret in them.
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        nonce = os.urandom(NONCE_BYTES)
        return nonce + ChaCha20Poly1305(self._key()).encrypt(nonce, content, name.encode())

    def _opened(self, content: bytes, name: str) -> bytes:
        """A stored content as it was; empty if it was changed, so that its digest does not fit."""
        if not name.endswith(SEALED) or self._key is None:
            return content
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        try:
            nonce, rest = content[:NONCE_BYTES], content[NONCE_BYTES:]
            return ChaCha20Poly1305(self._key()).decrypt(nonce, rest, name.encode())
        except (InvalidTag, ValueError):
            return b""

    def _of(self, run: str) -> Path:
        plain = run if _run.fullmatch(run) else hashlib.sha256(run.encode()).hexdigest()
        return self.folder / plain
