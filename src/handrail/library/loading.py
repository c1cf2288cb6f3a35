"""Loading: the way of a text to a definition, with all findings at once, sorted by where they stand.

read -> structure -> extends -> structure of the whole -> definition -> pins -> analysis. A later station is left out
only where it can't be done; parts whose structure is wrong are cut off first, where that changes nothing else
(pruning.py). A document of another format is converted before all that (importers.py). What was loaded is kept for the
next time, as long as nothing it depends on has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from msgspec.structs import replace

from handrail.domain.analysis.check_findings import rules_in
from handrail.domain.analysis.local import NOWHERE, Local, Survey
from handrail.domain.analysis.whole import analyse
from handrail.domain.authoring import content_hash, definition_from
from handrail.domain.check import Finding, Flaw, Severity, blocks
from handrail.domain.definition import Definition
from handrail.domain.errors import Invalid
from handrail.domain.json import Json, canonical_bytes
from handrail.domain.works import tools_in
from handrail.foundation.locked_cache import LockedCache
from handrail.library.catalog import EMPTY, Candidate, Catalog, FolderCatalog, Source
from handrail.library.document import Document, document_of, finding_of, read_document
from handrail.library.importers import Imported, convert
from handrail.library.inputs import check_inputs, default_flaws, given_flaws
from handrail.library.pruning import pruned
from handrail.library.resolve import Loaded, Trail, extend, pin
from handrail.library.structure import check_structure, placed, structure_flaws

__all__ = [
    "EMPTY",
    "Catalog",
    "FolderCatalog",
    "Loaded",
    "check_inputs",
    "load_data",
    "load_definition",
    "load_imported",
    "unsurveyed",
    "valid",
]

KEPT_BYTES_MAX: Final = 4_000_000
"""How much text the kept definitions may have had together."""


def unsurveyed(_tools: Collection[str], _rules: Collection[str]) -> Local:
    """Nothing is known of where a definition is to be run: its tools and rules are not checked."""
    return NOWHERE


def load_definition(text: str | bytes, *, name: str, catalog: Catalog = EMPTY, survey: Survey = unsurveyed) -> Loaded:
    """The definition in a text and all that was found; the same text is read once, while what it names is the same.

    `survey` tells what is known of the tools and rules that it names."""
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return _kept_or_loaded(content, lambda: read_document(text, name=name), _Setting(name, catalog, survey))


def load_data(data: Json, *, name: str = "<plan>", catalog: Catalog = EMPTY, survey: Survey = unsurveyed) -> Loaded:
    """The definition in data that came without a text, and all that was found."""
    try:
        document = document_of(data, name=name)
    except Invalid as error:
        return Loaded(definition=None, findings=error.findings)
    # A text never starts with a zero byte: data without a text has no positions to share with it.
    content = b"\0" + canonical_bytes(document.value)
    return _kept_or_loaded(content, lambda: document, _Setting(name, catalog, survey))


def load_imported(document: Document, imported: Imported, *, catalog: Catalog = EMPTY) -> Loaded:
    """The definition in a document that importers have seen already, and everything that was found."""
    return _Loading(catalog, unsurveyed).load_imported(document, imported)


def valid(loaded: Loaded, name: str) -> Definition:
    """The definition that was loaded; Invalid with all findings if it is not fit to be used."""
    if loaded.definition is None or not loaded.is_valid:
        blocking = sum(finding.severity is not Severity.MINOR for finding in loaded.findings)
        raise Invalid(f"{name} has {blocking} error{'s' * (blocking != 1)}", findings=loaded.findings)
    return loaded.definition


class _Setting(NamedTuple):
    """What the answer depends on beside the text."""

    name: str
    catalog: Catalog
    survey: Survey


class _Kept(NamedTuple):
    """What was loaded, and the state of the catalog that it depends on, if it does."""

    loaded: Loaded
    stamp: str | None
    local: Local
    """What was known of its tools and rules then."""


_recent: Final[LockedCache[Hashable, _Kept]] = LockedCache(KEPT_BYTES_MAX)


def _kept_or_loaded(content: bytes, read: Callable[[], Document], setting: _Setting) -> Loaded:
    key = (hashlib.sha256(content).digest(), setting.name, setting.survey is unsurveyed)
    kept = _recent.get(key)
    if kept is not None and _is_current(kept, setting):
        return kept.loaded
    try:
        document = read()
    except Invalid as error:
        return Loaded(definition=None, findings=error.findings)
    watched = _Watched(setting.catalog)
    loaded = _Loading(watched, setting.survey).load(document)
    local = _surveyed(loaded.definition, setting.survey)
    _recent.put(key, _Kept(loaded, watched.stamp, local), weight=len(content))
    return loaded


def _is_current(kept: _Kept, setting: _Setting) -> bool:
    if kept.stamp is not None and kept.stamp != setting.catalog.fingerprint():
        return False
    return kept.local == _surveyed(kept.loaded.definition, setting.survey)


def _surveyed(definition: Definition | None, survey: Survey) -> Local:
    """What is known of all that a definition names, also in the workflows that it inlines."""
    return survey(tools_in(definition), rules_in(definition)) if definition is not None else NOWHERE


class _Watched:
    """A catalog that remembers its state as of the first question, so that an outdated answer is noticed."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.stamp: str | None = None

    def find(self, name: str) -> Sequence[Candidate]:
        if self.stamp is None:
            self.stamp = self.catalog.fingerprint()
        return self.catalog.find(name)

    def ids(self) -> Sequence[str]:
        return self.catalog.ids()


class _Loading:
    """One load with all the workflows that it calls, each loaded once."""

    def __init__(self, source: Source, survey: Survey) -> None:
        self.source = source
        self.survey = survey
        self.called: dict[Hashable, Loaded] = {}

    def load(self, document: Document, trail: Trail = ()) -> Loaded:
        return self.load_imported(document, convert(document), trail)

    def load_imported(self, document: Document, imported: Imported, trail: Trail = ()) -> Loaded:
        """What a document is once importers have seen it, with what they reported about it."""
        reported = [finding_of(flaw, document) for flaw in imported.flaws]
        if imported.importer and imported.document is None:
            return _loaded(None, reported, document)
        # Not `load`: an importer that recognises its own results would never come to an end.
        loaded = self._load_own(imported.document or document, trail)
        return _loaded(loaded.definition, [*reported, *loaded.findings], document) if reported else loaded

    def _load_own(self, document: Document, trail: Trail) -> Loaded:
        flaws = structure_flaws(document)
        findings = placed(flaws, document)
        usable = _usable_part(document, flaws)
        if usable is None:
            return _loaded(None, findings, document)
        extended = extend(usable, self.source)
        findings += extended.findings
        whole = extended.document
        if whole is None or blocks(extended.findings):
            return _loaded(None, findings, document)
        if whole is not usable and (wrong := check_structure(whole, merged=True)):
            return _loaded(None, [*findings, *wrong], document)
        return self._understood(whole, findings, trail)

    def _understood(self, document: Document, findings: list[Finding], trail: Trail) -> Loaded:
        written = definition_from(cast("Mapping[str, Any]", document.value))
        pinned = pin(written, trail or (written.id,), self.source, self._load_called)
        definition = pinned.definition
        schematic = (*default_flaws(definition), *given_flaws(definition))
        flaws = (*pinned.flaws, *schematic, *analyse(definition, _surveyed(definition, self.survey)))
        own = [finding_of(_as_written(flaw, document), document) for flaw in flaws]
        return _loaded(definition, [*findings, *own, *pinned.findings], document)

    def _load_called(self, document: Document, trail: Trail) -> Loaded:
        version = cast("Mapping[str, Any]", document.value).get("version")
        key = (document.name, trail[-1], version)
        if key not in self.called:
            self.called[key] = self.load(document, trail)
        return self.called[key]


def _usable_part(document: Document, flaws: Sequence[Flaw]) -> Document | None:
    """The document, without the parts whose structure is wrong; None if the rest can't be judged without them."""
    if not flaws:
        return document
    rest = pruned(document, flaws)
    return None if rest is None or structure_flaws(rest) else rest


def _loaded(definition: Definition | None, findings: Iterable[Finding], document: Document) -> Loaded:
    """The findings in the order of the text: the document's own first, then those of other files."""

    def place(finding: Finding) -> tuple[Any, ...]:
        at = finding.at
        return (at.file != document.name, at.file, at.line, at.column) if at else (False, document.name, 0, 0)

    ordered = tuple(sorted(dict.fromkeys(findings), key=place))
    return Loaded(definition=definition, findings=ordered, hash=content_hash(definition) if definition else "")


def _as_written(flaw: Flaw, document: Document) -> Flaw:
    """The flaw with its path in the text: the prompt of a step that is a plain text is the step itself."""
    above = flaw.path[:-1]
    if flaw.path[-1:] == ("prompt",) and flaw.path not in document.positions and above in document.positions:
        return replace(flaw, path=above)
    return flaw
