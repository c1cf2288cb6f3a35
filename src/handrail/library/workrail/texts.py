"""Converts texts to templates: placeholders become expressions, all other braces stay as they are.

Also prints values that have no counterpart as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from handrail.domain.json import Json
from handrail.library.documents.printing import yaml_text
from handrail.library.workrail.literals import text_literal
from handrail.library.workrail.naming import Names

SENTENCE_MAX: Final = 2_000
SENTENCES_MAX: Final = 100
THEIR_OWN: Final = "wr"
"""The prefix of placeholders that WorkRail itself fills in."""

_OPENING: Final = re.compile(r"\{[{%#]")
_PLACEHOLDER: Final = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*)\s*\}\}|\{[{%#]")


def verbatim(text: str) -> str:
    """A template that gives exactly this text: its braces have no meaning."""
    return _OPENING.sub(lambda found: f'{{{{ "{found[0]}" }}}}', text)


def verbatim_value(value: Json) -> Any:
    """A value whose strings are all verbatim."""
    match value:
        case str():
            return verbatim(value)
        case Mapping():
            return {key: verbatim_value(item) for key, item in value.items()}
        case list() | tuple():
            return [verbatim_value(item) for item in value]
        case _:
            return value


def filled(text: str, names: Names) -> str:
    """A string with expressions for its placeholders; a variable that is not set shows as its name."""

    def replaced(found: re.Match[str]) -> str:
        name = found[1]
        if name is None or _is_their_own(name):
            return verbatim(found[0])
        counter = names.counter(name)
        if counter is not None:
            return "{{ index }} (counted from 0)" if counter.ahead else "{{ index }}"
        return f"{{{{ default({names.path(name)}, {text_literal(f'<{name}>')}) }}}}"

    return _PLACEHOLDER.sub(replaced, text)


def placeholders(text: str) -> list[str]:
    """The names of a string's placeholders, without those that WorkRail itself fills in."""
    return [found for found in _PLACEHOLDER.findall(text) if found and not _is_their_own(found)]


def own_placeholders(text: str) -> list[str]:
    """The placeholders that only WorkRail itself could fill in."""
    return [found for found in _PLACEHOLDER.findall(text) if found and _is_their_own(found)]


def sentences(texts: Iterable[str]) -> list[str]:
    """Texts as a list of sentences of limited length; a long one continues in the next."""
    return [piece for text in texts if text.strip() for piece in _pieces(text.strip())]


def bullets(texts: Iterable[str]) -> str:
    """One line for each."""
    return "\n".join(f"- {text}" for text in texts)


def section(title: str, text: str) -> str:
    """A part of a prompt under its heading; nothing if it is empty."""
    return f"## {title}\n{text}" if text else ""


def plain(value: Json) -> str:
    """A value of any kind as lines that people can read."""
    return value.strip() if isinstance(value, str) else yaml_text(value).removesuffix("...\n").strip()


def _is_their_own(name: str) -> bool:
    return name.partition(".")[0] == THEIR_OWN


def _pieces(text: str) -> Iterator[str]:
    while len(text) > SENTENCE_MAX:
        end = text.rfind(" ", 0, SENTENCE_MAX)
        end = SENTENCE_MAX if end <= 0 else end
        yield text[:end]
        text = text[end:].lstrip()
    if text:
        yield text
