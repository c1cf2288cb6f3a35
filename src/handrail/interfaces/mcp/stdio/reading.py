"""The reader's thread: hears the client from the first moment on, whatever the main thread is busy with."""

from __future__ import annotations

import os
import threading
from typing import Final

from handrail.foundation.line_cutter import LineCutter, Overlong
from handrail.interfaces.mcp.stdio.envelope import LINE_BYTES_MAX
from handrail.interfaces.mcp.stdio.front import Ending, Front

READ_BYTES: Final = 65_536


def start_reading(descriptor: int, front: Front) -> None:
    """Read lines for the front until the client ends them. A daemon: nobody waits for a read that never returns."""
    threading.Thread(target=_read, args=(descriptor, front), name="reader", daemon=True).start()


def _read(descriptor: int, front: Front) -> None:
    cutter = LineCutter(LINE_BYTES_MAX)
    try:
        while data := _next(descriptor):
            for line in cutter.feed(data):
                if not isinstance(line, Overlong) or line.is_whole:  # only its end may name the request to answer
                    front.receive(line)
        front.receive(cutter.rest())
    finally:
        front.end(Ending.CLIENT_IS_DONE)


def _next(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, READ_BYTES)
    except OSError:  # a pipe that was torn down has ended too
        return b""
