"""Escaped text: what a string means once its escapes are read, and where each character of that came from.

Pure. Knows JSON, `\\x`, octal, percent and HTML escapes, mixed and several times over. A string here is UTF-8, one
character for each byte, so that escapes of bytes and of characters give the same. scrubbing.py looks for secrets in
these views."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from msgspec import Struct

DEPTH_MAX: Final = 4
"""How many times a string is read: JSON in JSON in JSON is escaped three times."""
ROW_LENGTH_MIN: Final = 32

_SURROGATES: Final = range(0xD800, 0xE000)
_CODE_MAX: Final = 0x10FFFF
_SIMPLE: Final[Mapping[str, str]] = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE: Final = re.compile(
    r"\\u(?P<high>[dD][89abAB][0-9A-Fa-f]{2})\\u(?P<low>[dD][c-fC-F][0-9A-Fa-f]{2})"
    r"|\\[ux]\{(?P<braced>[0-9A-Fa-f]{1,8})\}|\\U(?P<wide>[0-9A-Fa-f]{8})|\\0?(?P<octal>[0-3][0-7]{2})"
    r"|\\u(?P<unit>[0-9A-Fa-f]{4})|\\x(?P<byte>[0-9A-Fa-f]{2})|\\(?P<simple>[\"'\\/bfnrt])"
    r"|%(?P<percent>[0-9A-Fa-f]{2})"
    r"|&(?:\#[xX](?P<hex>[0-9A-Fa-f]{1,8})|\#(?P<decimal>[0-9]{1,8})|(?P<name>[A-Za-z][A-Za-z0-9]{1,31}));"
)
_SPACE: Final = re.compile(r"\s+")
# Escapes beyond the simple ones of JSON, which every body has.
_may_hide: Final = re.compile(r"\\[uxU0-3/\\']|%[0-9A-Fa-f]{2}|&[#A-Za-z][0-9A-Za-z]{1,32};").search


class TextView(Struct, frozen=True):
    """A string as it can be read."""

    text: str
    starts: Sequence[int]
    """Where each of its characters starts in the original."""
    ends: Sequence[int]
    is_joined: bool = False
    """Whether white space was left out, as it breaks the lines of encoded data."""


def as_bytes_text(text: str) -> str:
    """A string as its UTF-8, one character for each byte."""
    return text if text.isascii() else text.encode(errors="surrogatepass").decode("latin-1")


def from_bytes_text(text: str) -> str:
    """The text behind its UTF-8."""
    return text if text.isascii() else text.encode("latin-1").decode(errors="replace")


def may_hide(text: str) -> bool:
    """Whether a string has escapes that its other views read."""
    return ("\\" in text or "%" in text or "&" in text) and _may_hide(text) is not None


def may_go_on(text: str) -> bool:
    """Whether a string may have encoded data that was broken into lines: one ends with a long row without a space."""
    return any(
        len(line) >= ROW_LENGTH_MIN and " " not in line[-ROW_LENGTH_MIN:]
        for end in ("\\n", "\n")
        if end in text
        for line in text.split(end)
    )


def readings(text: str) -> Iterator[str]:
    """The text and everything that it says with its escapes read, once and more often."""
    for _ in range(DEPTH_MAX):
        yield text
        read = _ESCAPE.sub(_meaning, text)
        if read == text:
            return
        text = read
    yield text


def joined(text: str) -> str:
    """A string without white space, also where it is escaped as in JSON."""
    for space in ("\\n", "\\r", "\\t", "\n", "\r", "\t", " "):
        text = text.replace(space, "")
    return text


def views(text: str) -> Iterator[TextView]:
    """All views of a string: read up to four times, each also without white space."""
    view: TextView | None = TextView(text, range(len(text)), range(1, len(text) + 1))
    for _ in range(DEPTH_MAX + 1):
        if view is None:
            return
        yield view
        if _SPACE.search(view.text):
            yield _rewritten(view, _SPACE, lambda _: "", is_joined=True)
        view = _rewritten(view, _ESCAPE, _meaning) if _ESCAPE.search(view.text) else None


def _rewritten(
    view: TextView, pattern: re.Pattern[str], meaning: Callable[[re.Match[str]], str], *, is_joined: bool = False
) -> TextView:
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    done = 0
    for found in pattern.finditer(view.text):
        start, end = found.span()
        said = meaning(found)
        parts += (view.text[done:start], said)
        starts += view.starts[done:start]
        starts += [view.starts[start]] * len(said)
        ends += view.ends[done:start]
        ends += [view.ends[end - 1]] * len(said)
        done = end
    parts.append(view.text[done:])
    starts += view.starts[done:]
    ends += view.ends[done:]
    return TextView("".join(parts), starts, ends, is_joined)


def _meaning(found: re.Match[str]) -> str:
    """What an escape stands for; itself if for nothing."""
    kind = found.lastgroup
    word = found[kind or 0]
    match kind:
        case "simple":
            return _SIMPLE.get(word, word)
        case "percent" | "byte":
            return chr(int(word, 16))
        case "low":
            return _character(0x10000 + ((int(found["high"], 16) - 0xD800) << 10) + int(word, 16) - 0xDC00, found)
        case "octal":
            return chr(int(word, 8))
        case "unit" | "hex" | "braced" | "wide":
            return _character(int(word, 16), found)
        case "decimal":
            return _character(int(word), found)
        case _:
            said = _entities().get(f"{word};")
            return found[0] if said is None else as_bytes_text(said)


def _character(code: int, found: re.Match[str]) -> str:
    return found[0] if code > _CODE_MAX or code in _SURROGATES else as_bytes_text(chr(code))


@cache
def _entities() -> Mapping[str, str]:
    # Imported late: the table takes a millisecond, and few texts need it.
    from html.entities import html5

    return html5
