"""Decodes compressed response bodies block by block, within limits: a few kilobytes can decode to gigabytes.

Only one layer, and only gzip and deflate: encodings on top of each other multiply, and no API needs them. Nothing is
ever decoded beyond the limit, not even in memory. Connections are in http_client.py."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any, Final, Protocol

RATIO_MAX: Final = 200
"""How many times larger than what was received the decoded body may be; text rarely comes near this."""
RATIO_FROM_BYTES: Final = 100_000
"""Below this size the ratio does not matter: short repetitive answers are harmless."""
GZIP: Final = frozenset({"gzip", "x-gzip"})
KNOWN: Final = GZIP | {"deflate"}
GZIP_BITS: Final = 16 + zlib.MAX_WBITS
RAW_BITS: Final = -zlib.MAX_WBITS


class Undecodable(Exception):
    """The body can't or must not be decoded; the message says why, to follow "the response"."""


class Decoder(Protocol):
    """Decodes a body, block by block."""

    def decoded(self, block: bytes) -> bytes:
        """What a block decodes to; Undecodable at a limit."""
        ...

    def finish(self) -> None:
        """Undecodable if the body ended too early."""
        ...


def decoder_of(header_values: Iterable[str], *, bytes_max: int) -> Decoder:
    """The decoder for what the headers Content-Encoding say; Undecodable if there is none."""
    words = [word.strip().lower() for value in header_values for word in value.split(",")]
    encodings = [word for word in words if word not in {"", "identity"}]
    if not encodings:
        return Plain(bytes_max)
    if len(encodings) > 1:
        raise Undecodable(f"is encoded {len(encodings)} times ({', '.join(encodings)[:100]}): that is refused")
    if encodings[0] not in KNOWN:
        raise Undecodable(f"is encoded as {encodings[0][:50]!r}, which is not known here; ask for gzip or identity")
    return Inflating(is_gzip=encodings[0] in GZIP, bytes_max=bytes_max)


class Plain:
    """A body that is not encoded."""

    def __init__(self, bytes_max: int) -> None:
        self._left = self._bytes_max = bytes_max

    def decoded(self, block: bytes) -> bytes:
        """The block itself."""
        self._left -= len(block)
        if self._left < 0:
            raise Undecodable(f"is larger than {self._bytes_max:,} bytes; request less")
        return block

    def finish(self) -> None:
        """Nothing can be missing."""


class Inflating:
    """A body in gzip or deflate."""

    def __init__(self, *, is_gzip: bool, bytes_max: int) -> None:
        self._is_gzip = is_gzip
        self._bytes_max = bytes_max
        self._received = self._made = 0
        self._zlib: Any = zlib.decompressobj(GZIP_BITS if is_gzip else zlib.MAX_WBITS)

    def decoded(self, block: bytes) -> bytes:
        """What the block decodes to."""
        self._received += len(block)
        if self._received > self._bytes_max:  # a stream may go on without end and decode to nothing
            raise Undecodable(f"is larger than {self._bytes_max:,} bytes; request less")
        content = self._inflated(block)
        self._made += len(content)
        if self._made > self._bytes_max:
            raise Undecodable(f"is larger than {self._bytes_max:,} bytes when decoded; request less")
        if self._made > max(RATIO_FROM_BYTES, RATIO_MAX * self._received):
            raise Undecodable(f"is more than {RATIO_MAX} times larger when decoded: that is refused")
        return content

    def finish(self) -> None:
        """Undecodable if the end is missing."""
        if self._received and not self._zlib.eof:
            raise Undecodable("can't be decoded: its end is missing")

    def _inflated(self, block: bytes) -> bytes:
        """The block decoded, one byte beyond the limit at most."""
        room = self._bytes_max - self._made + 1
        try:
            return bytes(self._zlib.decompress(block, room))
        except zlib.error as error:
            if self._is_gzip or self._made or self._received != len(block):
                raise Undecodable("can't be decoded") from error
        # Some servers send deflate without its header; that shows in the first block.
        self._zlib = zlib.decompressobj(RAW_BITS)
        try:
            return bytes(self._zlib.decompress(block, room))
        except zlib.error as error:
            raise Undecodable("can't be decoded") from error
