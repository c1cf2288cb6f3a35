"""Secrets in disguise: written in Base64 or hexadecimal, backwards, or in parts that are joined. Pure.

Only forms that nothing else looks like count here: a word that merely stands after `password =` does not."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Final

from handrail.domain.secrets.secret_forms import FORMS

CONTEXTUAL: Final = frozenset({"assigned secret", "password", "bearer token", "credentials"})
"""Forms that are recognised by the words around them."""
SHAPES: Final = tuple(form for form in FORMS if form.kind not in CONTEXTUAL)
CANDIDATES_MAX: Final = 20_000
LENGTH_MAX: Final = 8_000

_base64 = re.compile(rf"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{{20,{LENGTH_MAX}}}={{0,2}}")
_hex = re.compile(rf"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{{2}}){{16,{LENGTH_MAX // 2}}}(?![0-9A-Fa-f])")
_word = re.compile(r"[A-Za-z0-9_./+-]{20,300}")
_joined = re.compile(r"(?:[\"'`][^\"'`\n]{1,300}[\"'`]\s{0,40}[+,.&\\]?\s{0,40}){2,40}")
_quoted = re.compile(r"[\"'`]([^\"'`\n]{1,300})[\"'`]")


def disguised(text: str) -> Iterator[tuple[int, int, str]]:
    """Where secrets in disguise are: start, end, kind."""
    ways: tuple[tuple[re.Pattern[str], Callable[[str], str], str], ...] = (
        (_base64, _of_base64, "in Base64"),
        (_hex, _of_hex, "in hexadecimal"),
        (_word, lambda word: word[::-1], "backwards"),
        (_joined, lambda parts: "".join(_quoted.findall(parts)), "in parts"),
    )
    for pattern, reveal, how in ways:
        for _, found in zip(range(CANDIDATES_MAX), pattern.finditer(text), strict=False):
            if kind := _kind(reveal(found[0])):
                yield found.start(), found.end(), f"{kind}, {how}"


def _kind(text: str) -> str:
    lowered = text.lower()
    forms = (form for form in SHAPES if any(sign in lowered for sign in form.signs))
    return next((form.kind for form in forms if form.pattern.search(text)), "")


def _of_base64(word: str) -> str:
    bare = word.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return ""


def _of_hex(word: str) -> str:
    try:
        return bytes.fromhex(word).decode("ascii")
    except ValueError:
        return ""
