"""Why the server can't start, as one sentence for the client's error message.

Imported only after a failure, so that a normal start doesn't import `traceback`."""

from __future__ import annotations

import sys
import traceback


def report(error: BaseException) -> str:
    """The reason in one sentence; it is also written to stderr."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    hint = getattr(error, "hint", "")
    message = str(error) or type(error).__name__
    reason = f"handrail can't serve: {message}" + (f"; {hint}" if hint else "")
    if not hint:  # our own errors have a hint; anything else is a bug, and needs its traceback
        traceback.print_exception(error, file=sys.stderr)
    sys.stderr.write(f"error: {reason}\n")
    return reason
