"""Failure: why the server can't serve, in words for whoever reads a client's error message.

Only when it has come to that; the error is told on stderr too, with its trace if it is a bug of ours."""

from __future__ import annotations

import sys
import traceback


def tell(error: BaseException) -> str:
    """The reason, in a sentence; it is also written to stderr."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    hint = getattr(error, "hint", "")
    words = str(error) or type(error).__name__
    reason = f"handrail can't serve: {words}" + (f"; {hint}" if hint else "")
    if not hint:
        traceback.print_exception(error, file=sys.stderr)
    sys.stderr.write(f"error: {reason}\n")
    return reason
