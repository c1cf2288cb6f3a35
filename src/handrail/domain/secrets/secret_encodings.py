"""The encodings of a secret value that are searched for as they are: hex, base64 and base32, and the value itself.

Also as dumps of bytes and as UTF-16, unless it is very long.

Pure. All forms are UTF-8, one character for each byte. Escapes (JSON, percent, HTML) are read by escaped_text.py."""

from __future__ import annotations

import json
from base64 import b32encode, b64encode
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from handrail.domain.secrets.escaped_text import as_bytes_text, readings

KNOWN_LENGTH_MIN: Final = 6
"""Shorter values look like ordinary words, and are not searched for."""
CORE_LENGTH_MIN: Final = 8
RARE_LENGTH_MAX: Final = 2_000
"""Longer values are not searched for in rare encodings: each is several times as long as the value."""
HEX_SEPARATORS: Final = (":", " ", "-", " 0x", ", 0x", ",0x")


def plain_forms(value: str) -> tuple[str, ...]:
    """The value as it is written without an encoding; none if it is too short."""
    if len(value) < KNOWN_LENGTH_MIN:
        return ()
    text = as_bytes_text(value)
    spelled = [text, text.strip(), text.replace(" ", "+"), _in_json(value)]
    # What looks like an escape in the value is read along with the escapes around it.
    spelled += readings(text)
    return tuple(dict.fromkeys(form for form in spelled if len(form) >= KNOWN_LENGTH_MIN))


def encoded_forms(value: str) -> tuple[str, ...]:
    """The value in hex, base64 and base32, alone and at any place inside longer data; none if it is too short."""
    if len(value) < KNOWN_LENGTH_MIN:
        return ()
    content = value.encode(errors="surrogatepass")
    forms = [*_hex(content), *_base64(content), *_base32(content)]
    if len(value) <= RARE_LENGTH_MAX:
        forms += _rare_forms(value, content)
    return tuple(dict.fromkeys(forms))


def _rare_forms(value: str, content: bytes) -> Iterator[str]:
    """Dumps of bytes, UTF-16 as PowerShell and Windows encode it, and base64 of the value as it is in JSON."""
    for separator in HEX_SEPARATORS:
        dump = content.hex("|").replace("|", separator)
        yield from (dump, content.hex("|").upper().replace("|", separator))
    for wide in ("utf-16-le", "utf-16-be"):
        units = value.encode(wide, errors="surrogatepass")
        yield from (*_hex(units), *_base64(units))
    for spelled in {_in_json(value).encode("latin-1"), json.dumps(value)[1:-1].encode()} - {content}:
        yield from _base64(spelled)


def _in_json(value: str) -> str:
    try:
        return msgspec.json.encode(value)[1:-1].decode("latin-1")
    except UnicodeEncodeError:  # a lone surrogate: it can't be in a body either
        return as_bytes_text(value)


def _hex(content: bytes) -> tuple[str, str]:
    return content.hex(), content.hex().upper()


def _base64(content: bytes) -> Iterator[str]:
    for form in _placed(content, b64encode, bits=6, group=3):
        yield from (form, form.replace("+", "-").replace("/", "_"))


def _base32(content: bytes) -> Iterator[str]:
    for form in _placed(content, b32encode, bits=5, group=5):
        yield from (form, form.lower())


def _placed(content: bytes, encode: Callable[[bytes], bytes], *, bits: int, group: int) -> Iterator[str]:
    """The content alone, and the part that is the same whatever stands before and after it."""
    whole = encode(content).decode()
    yield from (whole, whole.rstrip("="))
    for before in range(group):
        first = -(-before * 8 // bits)  # the first character that does not depend on the bytes before
        after = (before + len(content)) * 8 // bits
        core = encode(bytes(before) + content).decode()[first:after]
        if len(core) >= CORE_LENGTH_MIN:
            yield core
