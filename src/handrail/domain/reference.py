"""References: `${secret:NAME}` and `${env:NAME}`, what they look like and where they count.

Pure. A reference counts only where an author wrote it, or where the inputs of the run brought it: the same words in
the result of a tool are data. Who keeps the values, and who may get them, is told in tools/vault.py."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from handrail.domain.check import Path
from handrail.domain.language.shape import ANY
from handrail.domain.language.template import VALUE_DEPTH_MAX, TemplateError, compile_template

OPENING: Final = "${"
NAME_PATTERN: Final = r"[A-Za-z_][A-Za-z0-9_.-]{0,99}"

_NAME: Final = re.compile(NAME_PATTERN)
_REFERENCE: Final = re.compile(rf"\$\{{(env|secret):({NAME_PATTERN})\}}")
_NOTHING: Final = object()


class ReferenceSource(StrEnum):
    """Where the value behind a reference comes from."""

    ENV = "env"
    SECRET = "secret"  # noqa: S105 - the word that authors write, and no secret


class Reference(Struct, frozen=True):
    """The words of an author that stand for a value which nobody writes down."""

    source: ReferenceSource
    name: str

    def __str__(self) -> str:
        return f"${{{self.source.value}:{self.name}}}"


def is_name(text: str) -> bool:
    """Whether a secret can have this name."""
    return _NAME.fullmatch(text) is not None


def references_in(text: str) -> list[Reference]:
    """All references in a text, in their order, each as often as it is there."""
    if OPENING not in text:
        return []
    return [_reference(found) for found in _REFERENCE.finditer(text)]


def filled(text: str, value_of: Callable[[Reference], str]) -> str:
    """The text with a value in place of each reference; what looks like one in a value is left alone."""
    return _REFERENCE.sub(lambda found: value_of(_reference(found)), text)


def reference_places(written: Any, rendered: Any, *, is_top: bool) -> tuple[Path, ...]:
    """Where in a step's rendered arguments references stand that may be filled in.

    `written` is what the definition says. A text of it counts if it has no templates, or if these speak of `inputs`
    alone and the step is of the run's own list (`is_top`): inputs of an inlined workflow may be results of tools."""
    if not _holds_opening(rendered):
        return ()
    return tuple(_trusted(written, rendered, (), is_top=is_top))


def _reference(found: re.Match[str]) -> Reference:
    return Reference(ReferenceSource(found[1]), found[2])


def _holds_opening(value: Any) -> bool:
    """The quick look, at which nearly all arguments end."""
    if isinstance(value, str):
        return OPENING in value
    if isinstance(value, dict):  # as nearly all are; whether something else is a mapping takes longer to tell
        return any(map(_holds_opening, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_opening, value))
    return isinstance(value, Mapping) and any(map(_holds_opening, value.values()))


def _trusted(written: Any, rendered: Any, path: Path, *, is_top: bool) -> Iterator[Path]:
    if len(path) > VALUE_DEPTH_MAX:
        return
    if isinstance(written, str):
        if _holds_opening(rendered) and _is_authors(written, is_top=is_top):
            yield from _leaves(rendered, path)
        return
    # Rendering keeps the shape of what was written; where it did not, nobody vouches for what is there.
    items = dict(_items(written))
    for key, item in _items(rendered):
        if (source := items.get(key, _NOTHING)) is not _NOTHING:
            yield from _trusted(source, item, (*path, key), is_top=is_top)


def _is_authors(written: str, *, is_top: bool) -> bool:
    """Whether all words that this text can become are an author's, or of who started the run."""
    try:
        # A template that needs any other name can't be compiled with these alone.
        compile_template(written, {"inputs": ANY} if is_top else {})
    except TemplateError:
        return False
    return True


def _leaves(value: Any, path: Path) -> Iterator[Path]:
    """The texts with a reference in what one text of the definition became: it may be a whole object."""
    if isinstance(value, str):
        if references_in(value):
            yield path
        return
    if len(path) <= VALUE_DEPTH_MAX:
        for key, item in _items(value):
            yield from _leaves(item, (*path, key))


def _items(value: Any) -> Iterator[tuple[str | int, Any]]:
    match value:
        case Mapping():
            yield from value.items()
        case list() | tuple():
            yield from enumerate(value)
