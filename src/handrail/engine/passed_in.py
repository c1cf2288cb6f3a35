"""The clock and randomness, as types: the engine gets both passed in, so that tests can control them. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], int]
"""Now, as milliseconds since 1970 in UTC."""

Entropy: TypeAlias = Callable[[int], bytes]
"""Returns that many unpredictable bytes."""
