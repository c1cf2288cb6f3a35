"""References: `${secret:NAME}` and `${env:NAME}`, their syntax and where they are filled in.

Pure. A reference is filled in only where an author wrote it, or where it came with the run's inputs: the same text in
a tool's result is data. tools/vault.py has the values and decides which tool may get them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from handrail.domain.checks.finding import Path
from handrail.domain.language.shape import ANY
from handrail.domain.language.template import VALUE_DEPTH_MAX, TemplateError, compile_template
from handrail.domain.secrets.secret_forms import names_secret

OPENING: Final = "${"
NAME_PATTERN: Final = r"[A-Za-z_][A-Za-z0-9_.-]{0,99}"

_NAME: Final = re.compile(NAME_PATTERN)
_REFERENCE: Final = re.compile(rf"\$\{{(env|secret):({NAME_PATTERN})\}}")
_NOTHING: Final = object()


class ReferenceSource(StrEnum):
    """Where the value behind a reference comes from."""

    ENV = "env"
    SECRET = "secret"  # noqa: S105 - the keyword that authors write, not a secret


class Reference(Struct, frozen=True):
    """A placeholder that an author writes for a value that is never written down."""

    source: ReferenceSource
    name: str

    def __str__(self) -> str:
        return f"${{{self.source.value}:{self.name}}}"


def is_name(text: str) -> bool:
    """Whether a secret can have this name."""
    return _NAME.fullmatch(text) is not None


def references_in(text: str) -> list[Reference]:
    """All references in a string, in order, with repetitions."""
    if OPENING not in text:
        return []
    return [_reference(found) for found in _REFERENCE.finditer(text)]


def filled(text: str, value_of: Callable[[Reference], str]) -> str:
    """The text with each reference replaced by its value; references inside values are not replaced."""
    return _REFERENCE.sub(lambda found: value_of(_reference(found)), text)


def names_value(reference: Reference) -> bool:
    """Whether a secret is behind a reference: always, or by the name of the variable."""
    return reference.source is ReferenceSource.SECRET or names_secret(reference.name)


def visible_words(place: str) -> str:
    """Why a secret is refused in the arguments of a process, and where it goes instead."""
    return (
        f"can't be in `{place}`: other users of the machine can see it there; pass it in `env`, or by stdin or a file"
    )


def reference_places(written: Any, rendered: Any, *, is_top: bool) -> tuple[Path, ...]:
    """Where in a step's rendered arguments there are references that may be filled in.

    `written` is what the definition says. A string is trusted if it has no templates, or if these use only `inputs`
    and the step is in the run's top list (`is_top`): inputs of an inlined workflow may be results of tools."""
    if not _holds_opening(rendered):
        return ()
    return tuple(_trusted(written, rendered, (), is_top=is_top))


def _reference(found: re.Match[str]) -> Reference:
    return Reference(ReferenceSource(found[1]), found[2])


def _holds_opening(value: Any) -> bool:
    """The quick check; nearly all arguments have no reference."""
    if isinstance(value, str):
        return OPENING in value
    if isinstance(value, dict):  # before Mapping: isinstance() with an abstract class is slow
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
    # Rendering keeps the shape of the written value; where the shapes differ, the content is not the author's.
    items = dict(_items(written))
    for key, item in _items(rendered):
        if (source := items.get(key, _NOTHING)) is not _NOTHING:
            yield from _trusted(source, item, (*path, key), is_top=is_top)


def _is_authors(written: str, *, is_top: bool) -> bool:
    """Whether everything in this text comes from an author, or from the caller who started the run."""
    try:
        # A template that uses any other name does not compile with these names alone.
        compile_template(written, {"inputs": ANY} if is_top else {})
    except TemplateError:
        return False
    return True


def _leaves(value: Any, path: Path) -> Iterator[Path]:
    """The texts with a reference in the rendered value of one text, which may be a whole object."""
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
