"""Calling code of installed packages: whatever it raises is its own failure, and does not end handrail.

`except Exception` is not enough: `sys.exit()` raises SystemExit, and anybody can derive from BaseException."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class StrangersFailure(Exception):
    """What a package's code raised."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def strangers(work: Callable[[], T]) -> T:
    """The result of a package's code; StrangersFailure if it fails. A user who stops handrail still stops it."""
    try:
        return work()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise StrangersFailure(error) from error
