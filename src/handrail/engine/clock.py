"""The clock and the randomness of this machine, and ids that are drawn. Their types: passed_in.py."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable
from typing import Final

from handrail.engine.passed_in import Clock, Entropy

ID_ALPHABET: Final = "23456789abcdefghjkmnpqrstuvwxyz"  # no 0/o, 1/l/i: agents retype ids
ID_LENGTH: Final = 8
POOL_BYTES: Final = 4_096


def system_clock() -> int:
    """The machine's time."""
    return time.time_ns() // 1_000_000


def steady_clock(wall: Clock, seconds: Callable[[], float] | None = None) -> Clock:
    """The wall clock's time now, continued by a clock that can't be set: a jump of the wall clock changes nothing."""
    read = seconds or _seconds_since_boot
    start_ms, start_s = wall(), read()
    return lambda: start_ms + int((read() - start_s) * 1_000)


def _seconds_since_boot() -> float:
    # CLOCK_BOOTTIME also counts while the machine sleeps, so timers that became due then are not late.
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class _Pool:
    """Unpredictable bytes, fetched many at a time: each system call is expensive."""

    def __init__(self) -> None:
        self.bytes = b""
        self.used = 0

    def draw(self, size: int) -> bytes:
        if self.used + size > len(self.bytes):
            self.bytes, self.used = secrets.token_bytes(max(POOL_BYTES, size)), 0
        self.used += size
        return self.bytes[self.used - size : self.used]

    def forget(self) -> None:
        self.bytes, self.used = b"", 0


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)  # else parent and child would use the same bytes

system_entropy: Entropy = _pool.draw


def new_id(prefix: str, entropy: Entropy) -> str:
    """A new id that is short enough to retype: `w-7k3m9q2x`."""
    return prefix + _letters(int.from_bytes(entropy(2 * ID_LENGTH), "big"), ID_LENGTH)


def timed_id(prefix: str, now: int, entropy: Entropy) -> str:
    """A new id of the same form whose first half counts seconds: rows created together are stored close together.

    It may already be taken; then the first append under it fails."""
    half = ID_LENGTH // 2
    return prefix + _letters(now // 1_000, half) + _letters(int.from_bytes(entropy(ID_LENGTH), "big"), half)


def key_digest(key: str) -> str:
    """What is stored of a key: its digest, because a key may contain a secret."""
    return "sha256:" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def keyed_id(prefix: str, key: str, number: int = 0) -> str:
    """The id of the same form for a key; `number` gives another one if two keys have the same id."""
    known = hashlib.sha256(f"{number}:{key}".encode("utf-8", "surrogatepass")).digest()
    return prefix + _letters(int.from_bytes(known, "big"), ID_LENGTH)


def _letters(number: int, length: int) -> str:
    letters = []
    for _ in range(length):
        number, letter = divmod(number, len(ID_ALPHABET))
        letters.append(ID_ALPHABET[letter])
    return "".join(reversed(letters))
