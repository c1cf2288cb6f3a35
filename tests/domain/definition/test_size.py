"""Sizes as people write them."""

from __future__ import annotations

import pytest

from handrail.domain.definition.size import size_bytes
from handrail.domain.errors import Invalid


def test_a_size_needs_its_unit() -> None:
    assert [size_bytes(text) for text in ("1B", "2KB", "1KiB", "3GB")] == [1, 2_000, 1_024, 3_000_000_000]
    with pytest.raises(Invalid):
        size_bytes("1000")
