"""Checks the references in a JSON Schema that an author wrote: they must stay in the schema, resolve, and not multiply.

A few lines of references to references can keep a validator busy forever, or use all memory. So the schema is walked
here as a validator would do it, following references up to a limit and detecting cycles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from msgspec import Struct

from handrail.domain.checks.finding import Flaw, Path, Severity
from handrail.domain.json import Json
from handrail.library.documents.document_tree import shown

FOLLOWED_MAX: Final = 5_000
FOLLOWED_FREE: Final = 50
REFERENCES_DEEP_MAX: Final = 100

# The schemas under these keywords apply to different values ...
APART: Final = ("properties", "items", "additionalProperties", "additionalItems", "definitions")
# ... under these, several may apply to the same value: with cycles, the work grows exponentially.
TOGETHER: Final = (
    *("allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
    *("dependencies", "contains", "patternProperties", "propertyNames"),
)
KEYED: Final = frozenset({"properties", "definitions", "patternProperties", "dependencies"})


class _Reference(Struct, eq=False, frozen=True):
    """A reference that is being followed, and the paths on which its target refers back to itself."""

    target: Path
    choices_before: int
    ways_back: set[tuple[Path, ...]]


class _Stop(Struct, frozen=True):
    """A part of the schema, and the path to it: references, and choices among alternatives."""

    path: Path
    part: Any
    references: tuple[_Reference, ...] = ()
    choices: tuple[Path, ...] = ()


def reference_flaws(schema: Json, *, characters: int) -> list[Flaw]:
    """What is wrong with the references of a schema; the paths are relative to it.

    The limit grows with the length of the schema, so that a document full of schemas is checked in reasonable time."""
    flaws: list[Flaw] = []
    waiting = [_Stop((), schema)]
    for _ in range(min(FOLLOWED_MAX, FOLLOWED_FREE + characters // 2)):
        if not waiting:
            return flaws
        stop = waiting.pop()
        match stop.part:
            case {"$ref": str(reference)}:
                _follow(stop, reference, schema, waiting, flaws)
            case {"$id": str()} if stop.path:
                flaws.append(_flaw((*stop.path, "$id"), "a part of a schema can't have an `$id`", "remove it"))
            case Mapping():
                waiting.extend(_parts(stop))
    return [*flaws, _flaw((), "the schema is too large, with its references followed", "refer to less")]


def _follow(stop: _Stop, reference: str, schema: Json, waiting: list[_Stop], flaws: list[Flaw]) -> None:
    here = (*stop.path, "$ref")
    target = _resolve(schema, reference)
    if target is None:
        flaws.append(_unresolved(here, reference))
        return
    comes_back = next((one for one in stop.references if one.target == target.path), None)
    if comes_back is not None:
        comes_back.ways_back.add(stop.choices[comes_back.choices_before :])
        if len(comes_back.ways_back) > 1:
            fix = "refer to the whole once, or leave the inner levels open"
            flaws.append(_flaw(here, "the schema refers to itself in several alternatives", fix))
    elif len(stop.references) >= REFERENCES_DEEP_MAX:
        flaws.append(_flaw(here, "the references lead too deep", "refer to less"))
    else:
        followed = _Reference(target.path, len(stop.choices), set())
        waiting.append(_Stop(target.path, target.part, (*stop.references, followed), stop.choices))


def _unresolved(here: Path, reference: str) -> Flaw:
    if reference.startswith("#/"):
        return _flaw(here, f"`{shown(reference)}` leads to nothing", "refer to a part of this schema")
    fix = "copy what it refers to under `definitions`, and write #/definitions/..."
    return _flaw(here, f"`{shown(reference)}` leads out of the schema", fix)


def _parts(stop: _Stop) -> Iterator[_Stop]:
    """The direct sub-schemas of a schema."""
    for keyword in (*APART, *TOGETHER):
        if keyword in stop.part:
            for key, part in _members(keyword, stop.part[keyword]):
                path = (*stop.path, keyword, *key)
                choices = (*stop.choices, path) if keyword in TOGETHER else stop.choices
                yield _Stop(path, part, stop.references, choices)


def _members(keyword: str, held: Json) -> list[tuple[Path, Json]]:
    """The schemas under a keyword, each with the rest of its path."""
    if isinstance(held, list):
        return [((index,), part) for index, part in enumerate(held)]
    if keyword in KEYED and isinstance(held, Mapping):
        return [((key,), part) for key, part in held.items()]
    return [((), held)]


def _resolve(schema: Json, reference: str) -> _Stop | None:
    """The part that a reference leads to, if it is one of this schema."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    path: list[str | int] = []
    part: Any = schema
    for word in unquote(reference).split("/")[1:]:
        key = word.replace("~1", "/").replace("~0", "~")
        if isinstance(part, Mapping) and key in part:
            path.append(key)
        elif isinstance(part, list) and len(key) < 10 and key.isdecimal() and int(key) < len(part):
            path.append(int(key))
        else:
            return None
        part = part[path[-1]]
    return _Stop(tuple(path), part)


def _flaw(path: Path, message: str, fix: str) -> Flaw:
    return Flaw(rule="schema", severity=Severity.CRITICAL, path=path, message=message, fix=fix)
