"""Flags for `os.open` that not every system has: 0 where they are missing, so that callers can always pass them."""

from __future__ import annotations

import os
from typing import Final

BINARY: Final[int] = getattr(os, "O_BINARY", 0)
"""Without it, Windows changes line endings."""
NO_FOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
"""Don't follow a link in the last part of a path."""
NO_BLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)
"""Without it, opening a pipe blocks until its other end is opened."""
FOLDER_ONLY: Final[int] = getattr(os, "O_DIRECTORY", 0)
