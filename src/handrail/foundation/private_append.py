"""Files that grow by whole lines and that only their owner can read, whatever the umask is: logs.

Imports only `os`. Which files there are and when the next one starts is decided by who writes them."""

from __future__ import annotations

import os
import sys

from handrail.foundation.atomic_file import PRIVATE_FILE, AnyPath
from handrail.foundation.open_flags import BINARY, NO_BLOCK, NO_FOLLOW


def open_to_append(path: AnyPath) -> int:
    """Open a file to append to it; created, or tightened if an earlier version left it open to others.

    A link or a pipe in its place is refused with OSError: it would send the lines elsewhere."""
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | BINARY | NO_FOLLOW | NO_BLOCK
    file = os.open(path, flags, PRIVATE_FILE)
    try:
        if sys.platform != "win32":  # Windows has no such mode: files in a user's folder are private there
            os.fchmod(file, PRIVATE_FILE)
    except BaseException:
        os.close(file)
        raise
    return file
