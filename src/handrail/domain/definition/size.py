"""Sizes as people write them: `512MiB`, `1GB`. Pure."""

from __future__ import annotations

import re
from typing import Final

from handrail.domain.errors import Invalid

SIZE_PATTERN: Final = r"^[1-9][0-9]{0,8}(B|KB|MB|GB|KiB|MiB|GiB)$"
UNIT_BYTES: Final = {
    "B": 1,
    "KB": 1_000,
    "MB": 1_000_000,
    "GB": 1_000_000_000,
    "KiB": 1_024,
    "MiB": 1_048_576,
    "GiB": 1_073_741_824,
}

_size = re.compile(SIZE_PATTERN)


def size_bytes(text: str) -> int:
    """A size such as `512MiB` or `1GB` in bytes."""
    found = _size.match(text)
    if found is None:
        raise Invalid(f"{text!r} is not a size", hint="write a whole number and a unit: 512MiB, 1GB")
    return int(text.removesuffix(found[1])) * UNIT_BYTES[found[1]]
