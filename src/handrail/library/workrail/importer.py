"""The importer of WorkRail's format: recognises its files quickly, and converts them.

whole.py does the conversion; it is imported late, because its modules add up to 20 ms to a cold start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from handrail.library.documents.document import Document
from handrail.library.importer import Conversion, Importer
from handrail.library.workrail.recognising import looks_like_workrail


class WorkRail(Struct, frozen=True):
    """Knows workflow files of schema v0.0.1 to v0.3.0."""

    name: str = "workrail"
    originals: Callable[[Sequence[str]], Sequence[Document]] = lambda _: ()
    """Finds the routines that a workflow calls: the documents with one of these ids, as they were written."""

    def recognises(self, document: Document) -> bool:
        """Whether the document has keys that only WorkRail has."""
        return looks_like_workrail(document.value)

    def convert(self, document: Document) -> Conversion:
        """The document in our format."""
        from handrail.library.workrail.whole import convert

        return convert(document, self.originals)


WORKRAIL: Final[Importer] = WorkRail()


def called_here(name: str) -> str:
    """The id that a workflow has here: `ns.name` becomes `ns/name`."""
    if "." not in name and "_" not in name and name == name.lower():
        return name
    from handrail.library.workrail.naming import workflow_id

    return workflow_id(name)
