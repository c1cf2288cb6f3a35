"""Entries of the workflow library: a summary of a workflow, and its file. Values only; workflow_library.py finds
them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from msgspec import Struct

TITLES_MAX: Final = 500
NESTED_MAX: Final = 5
"""How many titles of steps an entry has, and how deep in loops they are looked for."""


class WorkflowSource(Struct, frozen=True):
    """A folder of workflows, and the name that people see."""

    name: str
    folder: str
    within: str = ""
    """Links in it may not lead out of this folder, because others may have written it; empty: it is the user's own."""


class WorkflowEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A summary of a workflow, as its author wrote it."""

    id: str
    name: str
    version: str = ""
    description: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    steps: int = 0
    titles: tuple[str, ...] = ()
    """Of its steps, also of those in loops."""
    inputs: Mapping[str, Any] = {}
    source: str = ""
    """The name of its source."""
    file: str = ""
    shadows: tuple[str, ...] = ()
    """The later sources that also have a workflow with this id."""


class Broken(Struct, frozen=True):
    """A workflow file that can't be read, and why."""

    file: str
    message: str


def workflow_entry_of(value: Any, file: str) -> WorkflowEntry:
    """The summary of a document, which has an id and steps."""
    steps = value["steps"] if isinstance(value["steps"], list) else []
    inputs = value.get("inputs")
    return WorkflowEntry(
        id=value["id"],
        name=str(value.get("name") or value["id"]),
        version=str(value.get("version") or ""),
        description=str(value.get("description") or ""),
        category=str(value.get("category") or ""),
        tags=tuple(str(tag) for tag in value.get("tags") or ()) if isinstance(value.get("tags"), list) else (),
        steps=len(steps),
        titles=tuple(islice(_titles(steps, NESTED_MAX), TITLES_MAX)),
        inputs=inputs if isinstance(inputs, dict) else {},
        file=file,
    )


def _titles(steps: list[Any], depth: int) -> Iterator[str]:
    for step in steps:
        if isinstance(step, dict):
            yield str(step.get("title") or step.get("id", ""))
            inner = step.get("steps")
            yield from _titles(inner, depth - 1) if isinstance(inner, list) and depth else ()
