"""Content that the suite's scenarios expect, and that handrail never sends: pictures, sounds, embedded resources."""

from __future__ import annotations

import base64
import struct
import zlib

import mcp_types as mt


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _png() -> bytes:
    """One red pixel."""
    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def _wav() -> bytes:
    """Four samples of silence."""
    data = b"\0\0" * 4
    form = struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
    return (
        b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + form + b"data" + struct.pack("<I", len(data)) + data
    )


def embedded(uri: str, kind: str, text: str) -> mt.EmbeddedResource:
    """A resource that travels inside a message."""
    return mt.EmbeddedResource(resource=mt.TextResourceContents(uri=uri, mime_type=kind, text=text))


def said(text: str) -> mt.TextContent:
    """A text."""
    return mt.TextContent(text=text)


PIXEL = _png()
IMAGE = mt.ImageContent(data=base64.b64encode(PIXEL).decode(), mime_type="image/png")
AUDIO = mt.AudioContent(data=base64.b64encode(_wav()).decode(), mime_type="audio/wav")
MIXED: list[mt.ContentBlock] = [
    said("three blocks"),
    IMAGE,
    embedded("test://mixed-content-resource", "application/json", '{"n":1}'),
]
