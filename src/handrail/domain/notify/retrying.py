"""When a notice that did not arrive is tried again, and when it is given up. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.notify.notice import Message, line

FIRST_MS: Final = 5_000
"""After the first failure; twice as long after each further one."""
MESSAGE_MS_MAX: Final = 3_600_000
CHANNEL_MS_MAX: Final = 300_000
"""A channel that fails is asked at least this often whether it works again, whatever waits for it."""


class DeliveryFailure(Struct, frozen=True):
    """Why a notice did not arrive."""

    reason: str
    retry_after_ms: int = 0
    """How long the receiver asks to be left alone."""
    is_final: bool = False
    """Whether trying again is of no use."""


def backoff_ms(failures: int, longest_ms: int) -> int:
    """How long to wait after so many failures in a row."""
    # The shift is bounded: a channel that fails for a year must not make a number of a million digits.
    return min(FIRST_MS << min(max(failures, 1) - 1, 30), longest_ms)


def after_failure(message: Message, failed: DeliveryFailure, *, now: int, give_up_ms: int) -> Message:
    """The message after a try that failed: tried again later, or dead."""
    # Counted from the first try, not from when it happened: what waited behind others has its days, too.
    tried, attempts = message.tried or now, message.attempts + 1
    wait_ms = max(backoff_ms(attempts, MESSAGE_MS_MAX), min(failed.retry_after_ms, MESSAGE_MS_MAX))
    return replace(
        message,
        attempts=attempts,
        tried=tried,
        due=now + wait_ms,
        error=line(failed.reason),
        is_dead=failed.is_final or now - tried >= give_up_ms,
    )
