"""Scrubbing: removes known secret values from a tool's output, in all common encodings.

Pure. The known values come from tools/vault.py. Unknown secrets are found by their shape when something is journaled
(redaction.py)."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, quote_plus

from handrail.domain.secrets.redaction import KNOWN_LENGTH_MIN, REDACTED

DEPTH_MAX: Final = 300
CORE_LENGTH_MIN: Final = 8
NUMBER_BITS_MAX: Final = 128

_PERCENT: Final = re.compile(r"%[0-9A-F]{2}")


def is_scrubbed(value: str) -> bool:
    """Whether a value is long enough: a shorter one would match ordinary words."""
    return len(value) >= KNOWN_LENGTH_MIN


def forms_of(value: str) -> tuple[str, ...]:
    """All encodings of a value: as it is, in JSON, in URLs and in base64; none if it is too short."""
    if not is_scrubbed(value):
        return ()
    encoded = value.encode(errors="surrogatepass")
    in_json = [json.dumps(value, ensure_ascii=is_plain)[1:-1] for is_plain in (True, False)]
    in_urls = [quote(encoded, safe=""), quote(encoded), quote_plus(encoded)]
    in_urls += [_PERCENT.sub(lambda found: found[0].lower(), text) for text in in_urls]
    spelled = [value, *in_json, *in_urls, *_base64(encoded)]
    return tuple(dict.fromkeys(spelled))


def scrubbed(value: Any, forms: Sequence[str]) -> Any:
    """A JSON value without these texts, which are given longest first; the same object if it has none of them."""
    return _scrubbed(value, forms, 0) if forms else value


def _base64(encoded: bytes) -> list[str]:
    """The value alone, and the part that is the same at any offset inside a longer text."""
    whole = b64encode(encoded).decode()
    standard = [whole, whole.rstrip("=")]
    for before in range(3):
        first = -(-before * 8 // 6)  # the first character that does not depend on the bytes before
        after = (before + len(encoded)) * 8 // 6
        core = b64encode(bytes(before) + encoded).decode()[first:after]
        if len(core) >= CORE_LENGTH_MIN:
            standard.append(core)
    return [*standard, *(text.replace("+", "-").replace("/", "_") for text in standard)]


def _scrubbed(value: Any, forms: Sequence[str], depth: int) -> Any:
    if depth > DEPTH_MAX:
        return REDACTED  # too deep to check, so it is not shown
    match value:
        case str():
            return _text(value, forms)
        case bool() | None:
            return value
        case int() | float():
            return _number(value, forms)
        case Mapping():
            return _mapping(value, forms, depth)
        case list() | tuple():
            items = [_scrubbed(item, forms, depth + 1) for item in value]
            return value if all(map(_is_same, items, value)) else items
        case _:
            return value


def _text(text: str, forms: Sequence[str]) -> str:
    for form in forms:
        if form in text:
            text = text.replace(form, REDACTED)
    return text


def _number(number: float, forms: Sequence[str]) -> Any:
    if isinstance(number, int) and number.bit_length() > NUMBER_BITS_MAX:
        return number  # converting it to text would be slow, and no secret is such a number
    return REDACTED if str(number) in forms else number


def _mapping(mapping: Mapping[Any, Any], forms: Sequence[str], depth: int) -> Mapping[Any, Any]:
    items = {_scrubbed(key, forms, depth + 1): _scrubbed(item, forms, depth + 1) for key, item in mapping.items()}
    is_same = len(items) == len(mapping) and all(
        new_key is key and new is item
        for (new_key, new), (key, item) in zip(items.items(), mapping.items(), strict=True)
    )
    return mapping if is_same else items


def _is_same(one: Any, other: Any) -> bool:
    return one is other
