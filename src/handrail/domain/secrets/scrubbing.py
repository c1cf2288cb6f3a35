"""Scrubbing: removes known secret values from anything that is about to be written, in all common encodings.

Pure. Which values are known is decided in engine/known_secrets.py. Unknown secrets are found by their shape when
something is journaled (redaction.py). Nearly every text holds none, so one search over it has to say so quickly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from handrail.domain.secrets.escaped_text import (
    as_bytes_text,
    from_bytes_text,
    joined,
    may_go_on,
    may_hide,
    readings,
    views,
)
from handrail.domain.secrets.secret_encodings import KNOWN_LENGTH_MIN, encoded_forms, plain_forms

REDACTED: Final = "[redacted]"
DEPTH_MAX: Final = 300
NUMBER_BITS_MAX: Final = 128
NEEDLE_LENGTH: Final = 4
LONG_FORM, LONG_NEEDLE = 24, 8
"""A longer piece of a long form: four characters of a dump of bytes are in every other dump."""
END: Final = ""
NEEDLE_WITHIN: Final = 64
COMMON_FIRST: Final = ' etaoinsr"ld:,cupmhfgybvw_.-10/k{}[]2358674xT9SqjIzAECPORDNLMUHFGBWVYKJQXZ+=\\%&'
"""Characters by how often they occur in bodies of events, roughly: only the speed depends on it."""
_RARITY: Final = {character: rank for rank, character in enumerate(COMMON_FIRST)}


def holds_mark(value: Any) -> bool:
    """Whether a secret was removed from a value."""
    match value:
        case str():
            return REDACTED in value
        case Mapping():
            return any(map(holds_mark, value.values()))
        case list() | tuple():
            return any(map(holds_mark, value))
        case _:
            return False


def is_scrubbed(value: str) -> bool:
    """Whether a value is long enough: a shorter one would match ordinary words."""
    return len(value) >= KNOWN_LENGTH_MIN


class SecretScrubber:
    """Finds these values, each with what refers to it (`${secret:NAME}`, or nothing), however they are spelled."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values: Mapping[str, str] = dict(values)
        self._plain = _by_length({form: name for value, name in values.items() for form in plain_forms(value)})
        self._encoded = _by_length({form: name for value, name in values.items() for form in encoded_forms(value)})
        self._search = _needle_search([*self._plain, *self._encoded])

    def __bool__(self) -> bool:
        """Whether there is anything to find."""
        return self._search is not None

    def __repr__(self) -> str:
        return f"SecretScrubber({len(self.values)} values)"

    def may_find(self, text: str) -> bool:
        """Whether a string (its UTF-8, one character for each byte) may hold a value; wrong only towards yes."""
        search = self._search
        if search is None:
            return False
        if search(text):
            return True
        if may_hide(text):
            return any(search(read) or search(joined(read)) for read in readings(text))
        return may_go_on(text) and search(joined(text)) is not None

    def text(self, text: str) -> str:
        """A string without the values; the same object if it has none."""
        if self._search is None:
            return text
        plain = as_bytes_text(text)
        clean = self._clean(plain)
        return text if clean is plain else from_bytes_text(clean)

    def content(self, content: bytes) -> bytes:
        """Any bytes without the values; the same object if they have none."""
        if self._search is None:
            return content
        text = content.decode("latin-1")
        clean = self._clean(text)
        return content if clean is text else clean.encode("latin-1")

    def value(self, value: Any) -> Any:
        """A JSON value without the values; the same object if it has none."""
        return self._value(value, 0) if self._search is not None else value

    def number(self, number: float) -> Any:
        """A number, or the mark if its digits are a value."""
        if isinstance(number, int) and number.bit_length() > NUMBER_BITS_MAX:
            return number  # converting it to text would be slow, and no secret is such a number
        return REDACTED if self._search is not None and str(number) in self._plain else number

    def finds(self, content: bytes) -> bool:
        """Whether a content holds a value."""
        text = content.decode("latin-1")
        return self.may_find(text) and any(True for _ in self._found(text))

    def names_in(self, content: bytes) -> Sequence[str]:
        """What refers to the values that a content holds, in order."""
        text = content.decode("latin-1")
        if not self.may_find(text):
            return ()
        return tuple(dict.fromkeys(name for _, _, name in sorted(self._found(text))))

    def _clean(self, text: str) -> str:
        if not self.may_find(text):
            return text
        parts: list[str] = []
        done = 0
        for start, end, _ in sorted(self._found(text), key=lambda one: (one[0], -one[1])):
            if end <= done:
                continue
            if start >= done:  # else it overlaps the one before, which has left a mark already
                parts += (text[done:start], REDACTED)
            done = end
        return "".join([*parts, text[done:]]) if parts else text

    def _found(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where the values are in a string, from and to, and what refers to each."""
        for view in views(text):
            for forms in (self._encoded,) if view.is_joined else (self._plain, self._encoded):
                for form, name in forms.items():
                    at = view.text.find(form)
                    while at >= 0:
                        end = at + len(form)
                        yield view.starts[at], view.ends[end - 1], name
                        at = view.text.find(form, end)

    def _value(self, value: Any, depth: int) -> Any:
        if depth > DEPTH_MAX:
            return REDACTED  # too deep to check, so it is not shown
        match value:
            case str():
                return self.text(value)
            case bool() | None:
                return value
            case int() | float():
                return self.number(value)
            case Mapping():
                return self._mapping(value, depth)
            case list() | tuple():
                items = [self._value(item, depth + 1) for item in value]
                return value if all(map(_is_same, items, value)) else items
            case _:
                return value

    def _mapping(self, mapping: Mapping[Any, Any], depth: int) -> Mapping[Any, Any]:
        items = {self._value(key, depth + 1): self._value(item, depth + 1) for key, item in mapping.items()}
        is_same = len(items) == len(mapping) and all(
            new_key is key and new is item
            for (new_key, new), (key, item) in zip(items.items(), mapping.items(), strict=True)
        )
        return mapping if is_same else items


def _by_length(forms: Mapping[str, str]) -> Mapping[str, str]:
    """Longest first: a value may be a part of another."""
    return dict(sorted(forms.items(), key=lambda one: (-len(one[0]), one[0])))


def _needle_search(forms: Sequence[str]) -> Any:
    """One compiled search for a piece of every form; None if there are none.

    The piece starts with the form's rarest character: at most places of a string, the search looks at one character."""
    if not forms:
        return None
    trie: dict[str, Any] = {}
    for form in forms:
        node = trie
        for character in _needle(form):
            node = node.setdefault(character, {})
        node[END] = {}
    return re.compile(_pattern(trie), re.DOTALL).search


def _needle(form: str) -> str:
    length = NEEDLE_LENGTH if len(form) < LONG_FORM else LONG_NEEDLE
    last = min(len(form) - length, NEEDLE_WITHIN)
    at = max(range(last + 1), key=lambda place: _RARITY.get(form[place], len(COMMON_FIRST)))
    return form[at : at + length]


def _pattern(node: Mapping[str, Any]) -> str:
    if END in node:  # a longer piece that starts like this one need not be kept apart from it
        return ""
    branches = [re.escape(character) + _pattern(below) for character, below in sorted(node.items())]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})" if branches else ""


def _is_same(one: Any, other: Any) -> bool:
    return one is other


NOTHING_KNOWN: Final = SecretScrubber({})


def nothing_known() -> SecretScrubber:
    """The scrubber where no secret is known."""
    return NOTHING_KNOWN
