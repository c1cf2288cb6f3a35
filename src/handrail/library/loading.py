"""Loads a definition from a string, with all findings at once, in the order of the text.

read -> structure -> extends -> structure of the whole -> definition -> pins -> analysis. A later stage is left out only
if it is impossible; parts with a wrong structure are removed first, if that changes nothing else (pruning.py). Other
formats are converted before all that (importers.py). The result is cached as long as nothing it depends on changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from msgspec.structs import replace

from handrail.domain.analysis.check_findings import rules_in
from handrail.domain.analysis.local import NOWHERE, Local, Survey
from handrail.domain.analysis.whole import analyse
from handrail.domain.checks.finding import Finding, Flaw, Severity, blocks
from handrail.domain.definition.authoring import content_hash, definition_from
from handrail.domain.definition.model import Definition
from handrail.domain.definition.work_items import tools_in
from handrail.domain.errors import Invalid
from handrail.domain.json import Json, canonical_bytes
from handrail.domain.metrics.cache_catalog import LOADED
from handrail.foundation.cache_use import use_of
from handrail.foundation.locked_cache import LockedCache
from handrail.library.documents.document import FINDINGS_MAX, Document, document_of, finding_of
from handrail.library.documents.pruning import pruned
from handrail.library.importing.importers import Imported, convert, read_any
from handrail.library.inputs import check_inputs, default_flaws, given_flaws
from handrail.library.resolve import Loaded, Trail, extend, pin
from handrail.library.schemas.structure import check_structure, placed, structure_flaws
from handrail.library.shelf.catalog import EMPTY, Candidate, Catalog, FolderCatalog, WorkflowLookup

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

CACHE_BYTES_MAX: Final = 4_000_000
"""The total length of the texts of all cached definitions."""


def unsurveyed(_tools: Collection[str], _rules: Collection[str]) -> Local:
    """A survey that knows no tools and rules: they are not checked."""
    return NOWHERE


def load_definition(text: str | bytes, *, name: str, catalog: Catalog = EMPTY, survey: Survey = unsurveyed) -> Loaded:
    """The definition in a string, and all findings. A string is loaded once, as long as what it refers to is the same.

    `survey` gives what is known about the tools and rules in it."""
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return _cached_or_loaded(content, lambda: read_any(text, name=name), _Setting(name, catalog, survey))


def load_data(data: Json, *, name: str = "<plan>", catalog: Catalog = EMPTY, survey: Survey = unsurveyed) -> Loaded:
    """The definition in data that came without text, and all findings."""
    try:
        document = document_of(data, name=name)
    except Invalid as error:
        return Loaded(definition=None, findings=error.findings)
    # No text starts with a zero byte, so data never shares a cache entry with text, which has positions.
    content = b"\0" + canonical_bytes(document.value)
    return _cached_or_loaded(content, lambda: document, _Setting(name, catalog, survey))


def load_imported(document: Document, imported: Imported, *, catalog: Catalog = EMPTY) -> Loaded:
    """The definition in a document that was passed to importers already, and all findings."""
    return _Loading(catalog, unsurveyed).load_imported(document, imported)


def valid(loaded: Loaded, name: str) -> Definition:
    """The loaded definition; Invalid with all findings if it has errors."""
    if loaded.definition is None or not loaded.is_valid:
        blocking = sum(finding.severity is not Severity.MINOR for finding in loaded.findings)
        raise Invalid(f"{name} has {blocking} error{'s' * (blocking != 1)}", findings=loaded.findings)
    return loaded.definition


class _Setting(NamedTuple):
    """What the result depends on besides the text."""

    name: str
    catalog: Catalog
    survey: Survey


class _CachedLoad(NamedTuple):
    """A loaded definition, and the fingerprint of the catalog, if it depends on that."""

    loaded: Loaded
    stamp: str | None
    local: Local
    """What was known about its tools and rules."""


_use: Final = use_of(LOADED)
_recent: Final[LockedCache[Hashable, _CachedLoad]] = _use.keeps(LockedCache(CACHE_BYTES_MAX))


def _cached_or_loaded(content: bytes, read: Callable[[], Document], setting: _Setting) -> Loaded:
    key = (hashlib.sha256(content).digest(), setting.name, setting.survey is unsurveyed)
    cached = _recent.get(key)
    if cached is not None and _is_current(cached, setting):
        _use.hit()
        return cached.loaded
    with _use.making():
        try:
            document = read()
        except Invalid as error:
            return Loaded(definition=None, findings=error.findings)
        watched = _Watched(setting.catalog)
        loaded = _Loading(watched, setting.survey).load(document)
        local = _surveyed(loaded.definition, setting.survey)
    _recent.put(key, _CachedLoad(loaded, watched.stamp, local), weight=len(content))
    return loaded


def _is_current(cached: _CachedLoad, setting: _Setting) -> bool:
    if cached.stamp is not None and cached.stamp != setting.catalog.fingerprint():
        return False
    return cached.local == _surveyed(cached.loaded.definition, setting.survey)


def _surveyed(definition: Definition | None, survey: Survey) -> Local:
    """What is known about the tools and rules of a definition and of the workflows that it inlines."""
    return survey(tools_in(definition), rules_in(definition)) if definition is not None else NOWHERE


class _Watched:
    """A catalog that remembers its fingerprint from before the first lookup, so that later changes are noticed."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.stamp: str | None = None

    def find(self, name: str) -> Sequence[Candidate]:
        if self.stamp is None:
            self.stamp = self.catalog.fingerprint()
        return self.catalog.find(name)

    def originals(self, names: Sequence[str]) -> Sequence[Document]:
        if self.stamp is None:
            self.stamp = self.catalog.fingerprint()
        return self.catalog.originals(names)

    def ids(self) -> Sequence[str]:
        return self.catalog.ids()


class _Loading:
    """One load of a definition and of all workflows that it calls, each once."""

    def __init__(self, source: WorkflowLookup, survey: Survey) -> None:
        self.source = source
        self.survey = survey
        self.called: dict[Hashable, Loaded] = {}

    def load(self, document: Document, trail: Trail = ()) -> Loaded:
        return self.load_imported(document, convert(document, originals=self.source.originals), trail)

    def load_imported(self, document: Document, imported: Imported, trail: Trail = ()) -> Loaded:
        """Load a document that was passed to importers, with the findings of these."""
        reported = [finding_of(flaw, document) for flaw in imported.flaws]
        if imported.importer and imported.document is None:
            return _loaded(None, reported, document)
        # Not `load`: an importer that recognises its own results would cause an endless loop.
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
        return self._load_whole(whole, findings, trail)

    def _load_whole(self, document: Document, findings: list[Finding], trail: Trail) -> Loaded:
        written = definition_from(cast("Mapping[str, Any]", document.value))
        pinned = pin(written, trail or (written.id,), self.source, self._load_called)
        definition = pinned.definition
        by_schema = (*default_flaws(definition), *given_flaws(definition))
        flaws = (*pinned.flaws, *by_schema, *analyse(definition, _surveyed(definition, self.survey)))
        own = [finding_of(_as_written(flaw, document), document) for flaw in flaws]
        return _loaded(definition, [*findings, *own, *pinned.findings], document)

    def _load_called(self, document: Document, trail: Trail) -> Loaded:
        version = cast("Mapping[str, Any]", document.value).get("version")
        key = (document.name, trail[-1], version)
        if key not in self.called:
            self.called[key] = self.load(document, trail)
        return self.called[key]


def _usable_part(document: Document, flaws: Sequence[Flaw]) -> Document | None:
    """The document without the parts that have a wrong structure; None if the rest can't be checked without them."""
    if not flaws:
        return document
    if len(flaws) > FINDINGS_MAX:  # more than are listed: what is left says nothing, and each is a cut
        return None
    rest = pruned(document, flaws)
    return None if rest is None or structure_flaws(rest) else rest


def _loaded(definition: Definition | None, findings: Iterable[Finding], document: Document) -> Loaded:
    """The result, with findings in the order of the text: the document's own first, then those of other files."""

    def place(finding: Finding) -> tuple[Any, ...]:
        at = finding.at
        return (at.file != document.name, at.file, at.line, at.column) if at else (False, document.name, 0, 0)

    ordered = tuple(sorted(dict.fromkeys(findings), key=place))
    return Loaded(definition=definition, findings=ordered, hash=content_hash(definition) if definition else "")


def _as_written(flaw: Flaw, document: Document) -> Flaw:
    """The flaw with its path in the text: for a step that is a plain string, the prompt is the step itself."""
    above = flaw.path[:-1]
    if flaw.path[-1:] == ("prompt",) and flaw.path not in document.positions and above in document.positions:
        return replace(flaw, path=above)
    return flaw
