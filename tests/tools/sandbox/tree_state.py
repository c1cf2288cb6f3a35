"""The state of a whole folder: every name with its kind, mode, content and time, nothing left out."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path


def tree_state(root: Path) -> dict[str, tuple[int, int, str]]:
    """By path: the mode, the time of the last change, and the digest of the content or the target of the link."""
    paths = [root, *(Path(folder, name) for folder, inner, names in os.walk(root) for name in (*inner, *names))]
    return {str(path.relative_to(root)): _state(path) for path in paths}


def _state(path: Path) -> tuple[int, int, str]:
    status = path.lstat()
    content = ""
    if stat.S_ISREG(status.st_mode):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    elif stat.S_ISLNK(status.st_mode):
        content = str(path.readlink())
    return status.st_mode, status.st_mtime_ns, content
