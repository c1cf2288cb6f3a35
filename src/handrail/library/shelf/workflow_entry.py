"""Entries of the workflow library: a summary of a workflow, and its file. Values only; workflow_library.py finds
them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


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
    titles = [str(step.get("title") or step.get("id", "")) for step in steps if isinstance(step, dict)]
    inputs = value.get("inputs")
    return WorkflowEntry(
        id=value["id"],
        name=str(value.get("name") or value["id"]),
        version=str(value.get("version") or ""),
        description=str(value.get("description") or ""),
        category=str(value.get("category") or ""),
        tags=tuple(str(tag) for tag in value.get("tags") or ()) if isinstance(value.get("tags"), list) else (),
        steps=len(steps),
        titles=tuple(titles),
        inputs=inputs if isinstance(inputs, dict) else {},
        file=file,
    )
