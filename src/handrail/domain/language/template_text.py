"""Splits the text of a template into plain text, `{{ outputs }}` and `{% blocks %}`.

Pure. The content of the tags is compiled in template_blocks.py. Each character is read a fixed number of times, even
in a string full of openings that are never closed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple, cast

from handrail.domain.language.expression_value import ExpressionRefused

SOURCE_LENGTH_MAX: Final = 20_000

_OPENING: Final = re.compile(r"\{[{%#]")
_STRING: Final = r""""(?>(?:[^"\\\n]|\\.)*)"|'(?>(?:[^'\\\n]|\\.)*)'"""
_INSIDE: Final = {  # up to the closing, or to an unclosed quote
    "{{": (re.compile(rf"""(?>(?:{_STRING}|[^"'}}]++|}}(?!}}))*)"""), "}}"),
    "{%": (re.compile(rf"""(?>(?:{_STRING}|[^"'%]++|%(?!}}))*)"""), "%}"),
    "{#": (re.compile(r"(?>(?:[^#]++|#(?!\}))*)"), "#}"),
}
_RAW_END: Final = re.compile(r"\{%(-?)\s*+endraw\s*+(-?)%\}")


class Part(Enum):
    """What a piece of a template is."""

    TEXT = "text"
    OUTPUT = "output"
    BLOCK = "block"


class Tag(NamedTuple):
    """A piece of a template: plain text, or the text between the braces; `offset` counts from 0."""

    part: Part
    text: str
    offset: int


class _Cut(NamedTuple):
    """One tag with its braces: its start and end, which dashes it has, and its content."""

    start: int
    end: int
    trims_before: bool
    trims_after: bool
    tag: Tag | None


def has_tags(source: str) -> bool:
    """Whether there is anything to render at all."""
    return _OPENING.search(source) is not None


def cut(source: str) -> list[Tag]:
    """The pieces of a template in order; white space next to a tag with a dash is removed."""
    if len(source) > SOURCE_LENGTH_MAX:
        raise ExpressionRefused(
            f"the template has {len(source):,} characters; at most {SOURCE_LENGTH_MAX:,} are allowed", 1
        )
    tags: list[Tag] = []
    position, trims = 0, False
    for found in _cuts(source):
        tags += _text(source, position, found.start, trims_start=trims, trims_end=found.trims_before)
        tags += [found.tag] if found.tag else []
        position, trims = found.end, found.trims_after
    return tags + _text(source, position, len(source), trims_start=trims, trims_end=False)


def _cuts(source: str) -> Iterator[_Cut]:
    position = 0
    while opening := _OPENING.search(source, position):
        found = _cut_at(source, opening.start())
        if found.tag and found.tag.part is Part.BLOCK and found.tag.text.strip() == "raw":
            found = _raw(source, found)
        yield found
        position = found.end


def _cut_at(source: str, start: int) -> _Cut:
    """The tag that opens here; its dashes are not part of its text."""
    brace = source[start : start + 2]
    inside, closing = _INSIDE[brace]
    end = cast("re.Match[str]", inside.match(source, start + 2)).end()  # never None: it also matches the empty text
    if not source.startswith(closing, end):
        if end < len(source):
            raise ExpressionRefused("the string is never closed", end + 1)
        raise ExpressionRefused(f"'{brace}' is never closed", start + 1)
    begin = start + 3 if source.startswith("-", start + 2) else start + 2
    finish = end - 1 if end > begin and source[end - 1] == "-" else end
    part = Part.OUTPUT if brace == "{{" else Part.BLOCK
    tag = None if brace == "{#" else Tag(part, source[begin:finish], begin)
    return _Cut(start, end + 2, begin > start + 2, finish < end, tag)


def _raw(source: str, opening: _Cut) -> _Cut:
    """From {% raw %} to {% endraw %}: what is between is text, braces and all."""
    closing = _RAW_END.search(source, opening.end)
    if closing is None:
        raise ExpressionRefused("{% raw %} is never closed", opening.start + 1)
    text = source[opening.end : closing.start()]
    text = text.lstrip() if opening.trims_after else text
    text = text.rstrip() if closing[1] else text
    tag = Tag(Part.TEXT, text, opening.end)
    return _Cut(opening.start, closing.end(), opening.trims_before, bool(closing[2]), tag)


def _text(source: str, start: int, end: int, *, trims_start: bool, trims_end: bool) -> list[Tag]:
    text = source[start:end]
    text = text.lstrip() if trims_start else text
    text = text.rstrip() if trims_end else text
    return [Tag(Part.TEXT, text, start)] if text else []
