"""A catalog for tests: workflows as texts, kept in memory. Not a test file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from textwrap import dedent

from handrail.library.documents.document import Document, read_document
from handrail.library.shelf.catalog import Candidate


class Shelf:
    """Workflows by id; each file is named by its id and, if it has one, its version."""

    def __init__(self, *texts: str) -> None:
        self.texts = [dedent(text) for text in texts]
        self.asked: list[str] = []

    def find(self, name: str) -> Sequence[Candidate]:
        self.asked.append(name)
        found = [self._candidate(text) for text in self.texts]
        return [candidate for candidate, identity in found if identity == name]

    def originals(self, names: Sequence[str]) -> Sequence[Document]:
        return [one.document for name in names for one in self.find(name)]

    def ids(self) -> Sequence[str]:
        return [identity for _, identity in map(self._candidate, self.texts)]

    def fingerprint(self) -> str:
        return hashlib.sha256(repr(self.texts).encode()).hexdigest()

    def _candidate(self, text: str) -> tuple[Candidate, str]:
        value = read_document(text, name="?").value
        assert isinstance(value, dict)
        version = str(value.get("version", ""))
        document: Document = read_document(text, name=f"{value['id']}{version and '@' + version}.yaml")
        return Candidate(version, document), str(value["id"])
