"""Shelving: WorkRail's files among ours, under the names that they have here.

The conversion is imported when there is something to convert: its modules cost a cold start up to 20 ms."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from handrail.library.document import Document
from handrail.library.workrail.recognising import looks_like_workrail


def as_ours(document: Document) -> Document:
    """The document, converted if it is WorkRail's and can be; for shelves that hold both."""
    if not looks_like_workrail(document.value):
        return document
    from handrail.library.workrail.whole import convert

    converted = convert(document)
    if converted.is_sound or not isinstance(document.value, Mapping):
        return converted.document
    # Loading it will tell what is wrong with it; until then it stands under the name that it would have.
    identity = document.value.get("id")
    named = {"id": called_here(identity)} if isinstance(identity, str) else {}
    return replace(document, value={**document.value, **named})


def called_here(name: str) -> str:
    """What a workflow of this id is called on our shelves: `ns.name` is `ns/name`."""
    if "." not in name and "_" not in name:
        return name
    from handrail.library.workrail.naming import workflow_id

    return workflow_id(name)
