"""Lines are cut at line ends only, and none is kept beyond its limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from handrail.interfaces.mcp.stdio.lines import EDGE_BYTES, LineCutter, TooLong


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 50))
def test_lines_do_not_depend_on_how_the_bytes_come(lines: list[bytes], size: int) -> None:
    data = b"\n".join(lines)
    cutter = LineCutter()
    found = [line for at in range(0, len(data), size) for line in cutter.feed(data[at : at + size])]
    assert [*found, cutter.rest()] == data.split(b"\n")


def test_a_line_of_just_the_limit_is_kept() -> None:
    assert list(LineCutter(limit=10).feed(b"0123456789\n")) == [b"0123456789"]


def test_a_longer_line_is_skipped_to_its_end_and_only_its_ends_are_kept() -> None:
    cutter = LineCutter(limit=3_000)
    found = [line for part in (b"head" + b"x" * 5_000, b"y" * 90_000, b"tail\nnext\n") for line in cutter.feed(part)]
    skipped, following = found
    assert isinstance(skipped, TooLong)
    assert skipped.head.startswith(b"head")
    assert skipped.tail.endswith(b"ytail")
    assert len(skipped.head) == len(skipped.tail) == EDGE_BYTES
    assert following == b"next"
