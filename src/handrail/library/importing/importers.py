"""Finds importers and converts documents with them. Their contract is in importer.py.

The one for WorkRail is built in. Others are entry points of installed packages, and are looked up only for a document
that is not in our format. Their results are not trusted: they are limited and checked like a document that was read.
An importer that fails is a finding with its name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.finding import Flaw, Path, Severity
from handrail.domain.errors import Invalid, NotFound
from handrail.domain.json import Json
from handrail.domain.suggestion import did_you_mean
from handrail.foundation.strangers_code import StrangersFailure, strangers
from handrail.library.documents.document import FINDINGS_MAX, Document, ValuePosition, document_of, read_document
from handrail.library.documents.document_tree import shown
from handrail.library.importer import Conversion, Importer
from handrail.library.schemas.structure import schema_text
from handrail.library.workrail.importer import WORKRAIL, WorkRail, called_here
from handrail.library.workrail.recognising import looks_like_workrail

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "handrail.importers"
IMPORTERS_MAX: Final = 100
FLAWS_MAX: Final = 2 * (FINDINGS_MAX + 1)
"""As many notes as errors, each with one more that says how many were left out."""
MESSAGE_MAX: Final = 2_000
METHODS: Final = ("recognises", "convert")

_name = re.compile(r"[a-z][a-z0-9-]{0,49}")


class Imported(Struct, frozen=True, kw_only=True):
    """The result of importing a document."""

    importer: str = ""
    """The name of the one that recognised it; empty if none did."""
    document: Document | None = None
    """The document in our format; None if it was not recognised, or can't be converted."""
    flaws: tuple[Flaw, ...] = ()


class Installed(Struct, frozen=True):
    """The importers of installed packages, and what is wrong with those that can't be used."""

    importers: tuple[Importer, ...]
    flaws: tuple[Flaw, ...]


Originals: TypeAlias = Callable[[Sequence[str]], Sequence[Document]]
"""Finds the documents with one of these ids, as they were written."""


def convert(document: Document, *, only: str = "", originals: Originals | None = None) -> Imported:
    """The document in our format, by the first importer that recognises it, or by one that is named.

    `originals` finds the files that it refers to."""
    if only in {"", WORKRAIL.name} and WORKRAIL.recognises(document):
        imported = _converted(WorkRail(originals=originals) if originals else WORKRAIL, document)
        return replace(imported, flaws=(*_twice(document), *imported.flaws))
    if only == WORKRAIL.name or not (only or is_foreign(document.value)):
        return Imported()
    found = installed()
    flaws = list(found.flaws)
    for importer in found.importers:
        if only and importer.name != only:
            continue
        try:
            is_recognised = strangers(partial(_recognises, importer, document))
        except StrangersFailure as failed:
            flaws.append(_failure(importer.name, failed.error, Severity.MINOR))
            continue
        if is_recognised:
            return _converted(importer, document)
    return Imported(flaws=tuple(flaws))


def read_any(text: str | bytes, *, name: str) -> Document:
    """The document in a string of any format; in those of WorkRail, a key may be given twice, as its reader allows."""
    return read_document(text, name=name, allows_twice=looks_like_workrail)


def as_ours(document: Document, originals: Originals | None = None) -> Document:
    """The document, converted if it has another format; for folders that hold files of several formats."""
    imported = convert(document, originals=originals)
    if imported.document is not None or not imported.importer:
        return imported.document or document
    identity = document.value.get("id") if isinstance(document.value, Mapping) else None
    if not isinstance(identity, str) or not isinstance(document.value, Mapping):
        raise Invalid(f"{document.name} can't be converted: {imported.flaws[0].message}")
    # Loading it will report the errors; until then it is listed under the id that it would have.
    return replace(document, value={**document.value, "id": called_here(identity)})


def require_importer(name: str) -> None:
    """Raise NotFound, with the names that there are, if there is no importer of this name."""
    if name == WORKRAIL.name:
        return
    found = installed()
    names = [WORKRAIL.name, *(importer.name for importer in found.importers)]
    if name not in names:
        broken = "".join(f"; {flaw.message}" for flaw in found.flaws[:3])
        hint = did_you_mean(name, names) or f"choose {', '.join(names)}"
        raise NotFound(f"there is no importer {shown(name)!r}", hint=hint + broken)


def is_foreign(value: Json) -> bool:
    """Whether data does not look like our format: it has other keys, or no steps. A typo is enough."""
    if not isinstance(value, Mapping):
        return False
    of_workflow, of_step = _own_keys()
    steps = value.get("steps")
    if not of_workflow.issuperset(value) or not isinstance(steps, list | None) or not {"steps", "extends"} & set(value):
        return True
    return any(isinstance(step, Mapping) and not of_step.issuperset(step) for step in steps or ())


@lru_cache(maxsize=1)
def installed() -> Installed:
    """The importers that packages offer; looked up once a process."""
    # Imported late: looking through everything that is installed takes 70 ms, which only other formats should cost.
    from importlib.metadata import entry_points

    importers: dict[str, Importer] = {}
    flaws: list[Flaw] = []
    points = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    for point in points[:IMPORTERS_MAX]:
        if point.name == WORKRAIL.name:  # built in: it works without any metadata, too
            continue
        try:
            importer = strangers(partial(_importer, point, taken=importers))
            importers[importer.name] = importer
        except StrangersFailure as failed:
            flaws.append(_failure(point.name, failed.error, Severity.MINOR))
    return Installed(tuple(importers.values()), tuple(flaws))


@lru_cache(maxsize=1)
def _own_keys() -> tuple[frozenset[str], frozenset[str]]:
    schema = json.loads(schema_text())
    return frozenset(schema["properties"]), frozenset(schema["definitions"]["step_keys"]["properties"])


def _importer(point: EntryPoint, *, taken: Collection[str]) -> Importer:
    """The importer of an entry point; raises an exception if it breaks the contract."""
    value: Any = point.load()
    value = value() if isinstance(value, type) else value
    missing = [method for method in METHODS if not callable(getattr(value, method, None))]
    if missing:
        raise TypeError(f"{point.value} is not an importer: it has no method `{missing[0]}`")
    if not _name.fullmatch(value.name):
        raise ValueError(f"{value.name!r} can't be its name: use lower-case letters, digits and hyphens")
    if value.name == WORKRAIL.name or value.name in taken:
        raise ValueError(f"there is an importer `{value.name}` already: give this one another name")
    importer: Importer = value
    return importer


def _converted(importer: Importer, document: Document) -> Imported:
    try:
        return strangers(lambda: _checked(importer.name, importer.convert(document), document))
    except StrangersFailure as failed:
        return Imported(importer=importer.name, flaws=(_failure(importer.name, failed.error, Severity.CRITICAL),))


def _recognises(importer: Importer, document: Document) -> bool:
    return bool(importer.recognises(document))


def _checked(name: str, conversion: object, document: Document) -> Imported:
    """The checked result of an importer; raises an exception if it breaks the contract."""
    if not isinstance(conversion, Conversion):
        raise TypeError(f"it returned {type(conversion).__name__}, not a Conversion")
    flaws = tuple(_flaw(name, flaw) for flaw in islice(conversion.flaws, FLAWS_MAX))
    if any(flaw.severity is not Severity.MINOR for flaw in flaws):
        return Imported(importer=name, flaws=flaws)
    # The same limits as for a document that was read.
    checked = document_of(conversion.value, name=document.name)
    positions = dict(_positions(document, {(): (), **conversion.origins}))
    return Imported(importer=name, document=replace(checked, positions=positions), flaws=flaws)


def _positions(document: Document, origins: Mapping[Path, Path]) -> Iterator[tuple[Path, ValuePosition]]:
    for path, origin in origins.items():
        if origin in document.positions:
            # The string has changed: only its start is still right.
            yield path, replace(document.positions[origin], text=None)


def _flaw(name: str, flaw: object) -> Flaw:
    """A flaw as an importer gave it, under its name and with limited texts."""
    if not isinstance(flaw, Flaw) or not isinstance(flaw.path, Sequence):
        raise TypeError(f"it returned {type(flaw).__name__} as a flaw")
    return Flaw(
        rule=name,
        severity=Severity.MINOR if flaw.severity is Severity.MINOR else Severity.CRITICAL,
        path=tuple(part if isinstance(part, int) else str(part) for part in flaw.path),
        message=shown(str(flaw.message), most=MESSAGE_MAX),
        fix=shown(str(flaw.fix), most=MESSAGE_MAX),
    )


def _twice(document: Document) -> Iterator[Flaw]:
    for path, message in document.twice:
        yield Flaw(
            rule=WORKRAIL.name,
            severity=Severity.MINOR,
            path=path,
            message=f"{message}; the last one counts, as in WorkRail",
            fix="keep one of the two",
            on_key=True,
        )


def _failure(name: str, error: BaseException, severity: Severity) -> Flaw:
    reason = shown(f"{type(error).__name__}: {error}", most=MESSAGE_MAX)
    message = f"the importer `{shown(name)}` failed: {reason}"
    return Flaw(rule=shown(name), severity=severity, path=(), message=message, fix="report it to the importer's author")
