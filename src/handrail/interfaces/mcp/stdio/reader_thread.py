"""The reader thread: reads the client's lines from the start, while the main thread still imports modules."""

from __future__ import annotations

import os
import threading
from typing import Final

from handrail.foundation.line_cutter import LineCutter, Overlong
from handrail.interfaces.mcp.stdio.envelope import LINE_BYTES_MAX
from handrail.interfaces.mcp.stdio.front import Ending, Front

READ_BYTES: Final = 65_536


def start_reading(descriptor: int, front: Front) -> None:
    """Read lines for the front until the input ends. A daemon thread: a blocked read must not delay the exit."""
    threading.Thread(target=_read, args=(descriptor, front), name="reader", daemon=True).start()


def _read(descriptor: int, front: Front) -> None:
    cutter = LineCutter(LINE_BYTES_MAX)
    try:
        while data := _next(descriptor):
            for line in cutter.feed(data):
                # An overlong line is reported twice. Answer it at its end: the id of the request may come last.
                if not isinstance(line, Overlong) or line.is_whole:
                    front.receive(line)
        front.receive(cutter.rest())
    finally:
        front.end(Ending.CLIENT_IS_DONE)


def _next(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, READ_BYTES)
    except OSError:  # a broken pipe is an end of input too
        return b""
