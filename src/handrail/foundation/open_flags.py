"""Flags for `os.open` that not every system has: 0 where they are missing, so that they can always be given."""

from __future__ import annotations

import os
from typing import Final

BINARY: Final[int] = getattr(os, "O_BINARY", 0)
"""Without it, Windows changes line ends."""
NO_FOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
"""Do not follow a link in the last place of a path."""
NO_BLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)
"""Without it, opening a pipe waits for its other end."""
FOLDER_ONLY: Final[int] = getattr(os, "O_DIRECTORY", 0)
