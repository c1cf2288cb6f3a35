"""The names of queues: one for each project, and one more for each thing that its runs may need of a node.

Pure. A project has its own, because only some nodes serve it: work must never be placed on another node."""

from __future__ import annotations

import hashlib
import re
from typing import Final

PREFIX: Final = "handrail"
LENGTH_MAX: Final = 57
"""The shortest limit of all hosts."""


def queue_name(project: str, needs: str = "") -> str:
    """The queue of a project for nodes that have what is needed; another one for every other project or need."""
    parts = [PREFIX, project or "none", *([needs] if needs else [])]
    plain = "_".join(re.sub(r"[^a-z0-9]", "-", part.lower()) for part in parts)
    if "_".join(parts) == plain and len(plain) <= LENGTH_MAX:
        return plain
    mark = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return f"{plain[: LENGTH_MAX - len(mark) - 1]}.{mark}"
