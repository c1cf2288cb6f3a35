"""Decoding within limits: no body grows beyond what was agreed, not even for a moment."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Iterable

import pytest

from handrail.tools.web.content_decoding import RATIO_FROM_BYTES, Undecodable, decoder_of

MAX = 1_000_000


def decoded(blocks: Iterable[bytes], *encodings: str, bytes_max: int = MAX) -> bytes:
    decoder = decoder_of(encodings, bytes_max=bytes_max)
    content = b"".join(map(decoder.decoded, blocks))
    decoder.finish()
    return content


def raw(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0)),
        ("x-gzip", gzip.compress(b"hello", mtime=0)),
        (" GZip ", gzip.compress(b"hello", mtime=0)),
        ("identity, gzip", gzip.compress(b"hello", mtime=0)),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", raw(b"hello")),
        ("identity", b"hello"),
        ("", b"hello"),
    ],
)
def test_known_encodings_are_decoded_whole(encoding: str, packed: bytes) -> None:
    assert decoded([packed], encoding) == b"hello"
    if "deflate" not in encoding:
        assert decoded((packed[at : at + 1] for at in range(len(packed))), encoding) == b"hello"


@pytest.mark.parametrize(
    ("encodings", "words"),
    [
        (("gzip, gzip",), "is encoded 2 times (gzip, gzip)"),
        (("gzip", "gzip"), "is encoded 2 times"),
        (("deflate, gzip, br",), "is encoded 3 times"),
        (("br",), "is encoded as 'br', which is not known here"),
        (("zstd",), "which is not known here"),
    ],
)
def test_stacked_and_unknown_encodings_are_refused(encodings: tuple[str, ...], words: str) -> None:
    with pytest.raises(Undecodable) as refused:
        decoder_of(encodings, bytes_max=MAX)
    assert words in str(refused.value)


def test_a_bomb_is_refused_without_ever_being_in_memory() -> None:
    bomb = zlib.compress(bytes(100_000_000), 9)
    tracemalloc.start()
    try:
        with pytest.raises(Undecodable, match="larger than 1,000,000 bytes when decoded"):
            decoded([bomb], "deflate")
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_what_grows_too_much_is_refused_also_below_the_size_limit() -> None:
    with pytest.raises(Undecodable, match="200 times larger"):
        decoded([zlib.compress(bytes(RATIO_FROM_BYTES * 5), 9)], "deflate")
    assert len(decoded([zlib.compress(bytes(RATIO_FROM_BYTES), 9)], "deflate")) == RATIO_FROM_BYTES


def test_a_stream_that_decodes_to_nothing_for_ever_is_cut_off() -> None:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    nothing = packer.flush(zlib.Z_FULL_FLUSH) * 500
    with pytest.raises(Undecodable, match="larger than 10,000 bytes; request less"):
        decoded([nothing] * 100, "deflate", bytes_max=10_000)
    with pytest.raises(Undecodable, match="larger than 10 bytes; request less"):
        decoded([b"x" * 11], bytes_max=10)


def test_what_is_damaged_or_cut_off_is_said() -> None:
    whole = gzip.compress(b"hello" * 100)
    for block in (b"not packed", whole[:10] + b"damaged" + whole[17:]):
        with pytest.raises(Undecodable, match="can't be decoded"):
            decoded([block], "gzip")
    with pytest.raises(Undecodable, match="its end is missing"):
        decoded([whole[:-9]], "gzip")
    with pytest.raises(Undecodable, match="can't be decoded"):
        decoded([b"\xff\xff not packed"], "deflate")
    assert decoded([], "gzip") == b"", "no body at all is no error"
