"""The clock and chance, as protocols: the engine never reads either by itself, so tests can pass them in."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeAlias

Clock: TypeAlias = Callable[[], int]
"""Now, as milliseconds since 1970 in UTC."""

Entropy: TypeAlias = Callable[[int], bytes]
"""That many bytes nobody can foresee."""

ID_ALPHABET: Final = "23456789abcdefghjkmnpqrstuvwxyz"  # no 0/o, 1/l/i: an agent retypes it
ID_LENGTH: Final = 8


def system_clock() -> int:
    """The machine's time."""
    return time.time_ns() // 1_000_000


system_entropy: Entropy = secrets.token_bytes


def new_id(prefix: str, entropy: Entropy) -> str:
    """A fresh id that is short enough to retype: `run_7k3m9q2x`."""
    digits = int.from_bytes(entropy(2 * ID_LENGTH), "big")
    letters = []
    for _ in range(ID_LENGTH):
        digits, letter = divmod(digits, len(ID_ALPHABET))
        letters.append(ID_ALPHABET[letter])
    return prefix + "".join(letters)


def instant_text(milliseconds: int) -> str:
    """An instant as RFC 3339 in UTC: `2026-11-15T18:04:11.250Z`."""
    instant = datetime.fromtimestamp(milliseconds // 1_000, UTC)
    fraction = f".{milliseconds % 1_000:03d}" if milliseconds % 1_000 else ""
    return f"{instant:%Y-%m-%dT%H:%M:%S}{fraction}Z"
