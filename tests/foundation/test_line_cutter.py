"""Lines are cut at line ends only, and none is held beyond its limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from handrail.foundation.line_cutter import EDGE_BYTES, LineCutter, Overlong


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 50))
def test_lines_do_not_depend_on_how_the_bytes_come(lines: list[bytes], size: int) -> None:
    data = b"\n".join(lines)
    cutter = LineCutter(1_000)
    found = [line for at in range(0, len(data), size) for line in cutter.feed(data[at : at + size])]
    assert [*found, cutter.rest()] == data.split(b"\n")


def test_a_line_of_just_the_limit_is_kept() -> None:
    assert list(LineCutter(10).feed(b"0123456789\n")) == [b"0123456789"]


def test_a_longer_line_is_skipped_to_its_end_and_only_its_ends_are_kept() -> None:
    cutter = LineCutter(3_000)
    found = [line for part in (b"head" + b"x" * 5_000, b"y" * 90_000, b"tail\nnext\n") for line in cutter.feed(part)]
    news, skipped, following = found
    assert isinstance(skipped, Overlong)
    assert skipped.is_whole
    assert skipped.head.startswith(b"head")
    assert skipped.tail.endswith(b"ytail")
    assert len(skipped.head) == len(skipped.tail) == EDGE_BYTES
    assert news == Overlong(skipped.head, b"", is_whole=False)
    assert following == b"next"


def test_a_line_that_is_too_long_is_reported_at_once_and_at_its_end_and_is_not_held() -> None:
    cutter = LineCutter(5_000)
    news = [item for _ in range(10) for item in cutter.feed(b"x" * 1_000)]
    assert news == [Overlong(b"x" * 1_024, b"", is_whole=False)]
    assert cutter.size == 10_000
    assert sum(len(piece) for piece in cutter._pieces) == 0
    end, after = cutter.feed(b"tail\nshort\n")
    assert end == Overlong(b"x" * 1_024, b"x" * 1_020 + b"tail", is_whole=True)
    assert after == b"short"
    assert list(cutter.feed(b"y" * 6_000 + b"\n"))[1:] == [Overlong(b"y" * 1_024, b"y" * 1_024, is_whole=True)]


def test_what_is_left_when_the_stream_ends_is_a_line_of_its_own() -> None:
    cutter = LineCutter(4)
    assert list(cutter.feed(b"one\ntoo long")) == [b"one", Overlong(b"too long", b"", is_whole=False)]
    assert cutter.rest() == Overlong(b"too long", b"too long", is_whole=True)
    assert (cutter.rest(), cutter.size) == (b"", 0)
