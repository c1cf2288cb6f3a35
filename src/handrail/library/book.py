"""A book: a workflow at a glance, and where it stands. Values only; finding them is bookcase.py's work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Source(Struct, frozen=True):
    """A folder of workflows, and what people call it."""

    name: str
    folder: str
    within: str = ""
    """The folder that its files may not lead out of, if it comes from others; empty if it is the user's own."""


class Book(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A workflow at a glance, as its author wrote it."""

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
    """What people call the folder it stands in."""
    file: str = ""
    shadows: tuple[str, ...] = ()
    """The sources further off that have a workflow of this id, too."""


class Broken(Struct, frozen=True):
    """A file that should hold a workflow, and why it can't be read."""

    file: str
    message: str


def book_of(value: Any, file: str) -> Book:
    """A document at a glance; it has an id and steps."""
    steps = value["steps"] if isinstance(value["steps"], list) else []
    titles = [str(step.get("title") or step.get("id", "")) for step in steps if isinstance(step, dict)]
    inputs = value.get("inputs")
    return Book(
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
