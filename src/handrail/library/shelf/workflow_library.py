"""The workflow library: all workflows in some folders, by id or by search.

Finds and lists; loading.py decides whether a workflow is valid. A file is read again when it has changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.analysis.local import Survey
from handrail.domain.definition.semver import best
from handrail.domain.errors import Invalid, NotFound, Unavailable
from handrail.domain.suggestion import did_you_mean
from handrail.foundation.plain_file import NotPlain
from handrail.library.loading import Loaded, load_data, load_definition, unsurveyed
from handrail.library.shelf.catalog import FolderCatalog, chosen
from handrail.library.shelf.entry_index import EntryIndex
from handrail.library.shelf.search_words import WordIndex, split
from handrail.library.shelf.workflow_entry import Broken, WorkflowEntry, WorkflowSource

ANY_VERSION: Final = "*"
NAMED_MAX: Final = 5
"""How many unreadable files are named when a workflow is not found."""


class WorkflowLibrary:
    """The workflows of some folders; earlier folders shadow later ones."""

    def __init__(
        self,
        folders: Sequence[str | os.PathLike[str] | WorkflowSource],
        *,
        cache_file: Path | None = None,
        survey: Survey = unsurveyed,
    ) -> None:
        """`cache_file` keeps the index for the next process; `survey` gives the known tools and rules, unless a call
        has its own."""
        self.survey = survey
        sources = [one if isinstance(one, WorkflowSource) else WorkflowSource("", os.fspath(one)) for one in folders]
        within = {source.folder: source.within for source in sources if source.within}
        self.catalog = FolderCatalog([source.folder for source in sources], within=within)
        self.sources = tuple(
            next(source for source in sources if source.folder == folder) for folder in self.catalog.folders
        )
        self._index = EntryIndex(cache_file)
        self._entries: tuple[WorkflowEntry, ...] = ()
        self._words = WordIndex(())
        self._stamp: str | None = None

    def entries(self) -> Sequence[WorkflowEntry]:
        """Every workflow in its best version, by id."""
        stamp = self.catalog.fingerprint()
        if stamp != self._stamp:
            self._entries, self._stamp = tuple(self._read()), stamp
            self._words = WordIndex(self._entries)
        return self._entries

    def broken(self) -> Sequence[Broken]:
        """The files that can't be read, and the folders that have too many; they do not hide others."""
        self.entries()
        return [
            Broken(path, message) for path, message in sorted({**self._index.broken, **self.catalog.left_out}.items())
        ]

    def fingerprint(self) -> str:
        """A string that changes when anything in the folders does."""
        return self.catalog.fingerprint()

    def search(self, query: str = "", *, category: str = "", tags: Iterable[str] = ()) -> list[WorkflowEntry]:
        """The matching workflows, best match first; without a query by id."""
        wanted = {tag.lower() for tag in tags}
        fitting = [
            entry
            for entry in self.entries()
            if (not category or entry.category.lower() == category.lower())
            and (not wanted or wanted <= {tag.lower() for tag in entry.tags})
        ]
        words = split(query)
        if not words:
            return fitting
        points = self._words.scores(words)
        found = [entry for entry in fitting if entry.id in points]
        return sorted(found, key=lambda entry: (-points[entry.id], entry.id))

    def load(self, name: str, *, survey: Survey | None = None) -> Loaded:
        """The workflow with this `id` or `id@range` in its best version, with all findings."""
        wanted, _, versions = name.partition("@")
        found = self.catalog.find(wanted)
        if not found:
            return self._load_unlisted(wanted, survey)
        best_one = chosen(found, versions or ANY_VERSION, takes_any=True)
        if best_one is None:
            known_versions = ", ".join(dict.fromkeys(one.version for one in found if one.version))
            raise NotFound(
                f"workflow {wanted!r} has no version {versions}",
                hint=f"it has {known_versions or 'no version at all: name it without one'}",
            )
        return self._loaded(best_one.document.name, survey)

    def load_plan(self, data: Any, *, survey: Survey | None = None) -> Loaded:
        """The definition in data; what it extends or inlines is looked up here."""
        return load_data(data, catalog=self.catalog, survey=survey or self.survey)

    def _load_unlisted(self, wanted: str, survey: Survey | None) -> Loaded:
        """A workflow that the catalog does not find, because its id is invalid; NotFound if there is none."""
        entries = {entry.id: entry for entry in self.entries()}
        if wanted in entries:
            return self._loaded(entries[wanted].file, survey)
        broken = self.broken()
        for one in broken:
            if Path(one.file).stem == wanted:
                raise NotFound(f"the workflow {wanted!r} can't be read: {one.message}", hint=f"fix {one.file}")
        hint = did_you_mean(wanted, entries) or "there is no workflow yet: put one into .handrail/workflows/"
        names = ", ".join(Path(one.file).name for one in broken[:NAMED_MAX])
        unread = f"; {len(broken)} file{'s' * (len(broken) != 1)} can't be read: {names}" if broken else ""
        raise NotFound(f"there is no workflow {wanted!r}", hint=hint + unread)

    def _loaded(self, file: str, survey: Survey | None) -> Loaded:
        try:
            content = self.catalog.content(file)
        except OSError as error:  # it was deleted just now
            raise Unavailable(f"{file} can't be read: {error.strerror}") from error
        except NotPlain as error:
            raise Invalid(str(error), hint="make it a regular file inside the project, or remove it") from error
        return load_definition(content, name=file, catalog=self.catalog, survey=survey or self.survey)

    def _read(self) -> Iterable[WorkflowEntry]:
        seen: dict[str, dict[int, dict[str, WorkflowEntry]]] = {}
        for entry, folder in self._index.entries(self.catalog):
            seen.setdefault(entry.id, {}).setdefault(folder, {}).setdefault(entry.version, entry)
        for known in sorted(seen):
            nearest, *others = sorted(seen[known])
            versions = seen[known][nearest]
            names = [self.sources[folder].name or self.sources[folder].folder for folder in (nearest, *others)]
            entry = versions[best(versions, ANY_VERSION) or next(iter(versions))]
            yield replace(entry, source=self.sources[nearest].name, shadows=tuple(names[1:]))
