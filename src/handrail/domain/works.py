"""Every piece of work in a definition: that of each step, and that of its undo. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from handrail.domain.check import Path
from handrail.domain.definition import Call, Definition, Work, walk


def works_in(definition: Definition) -> Iterator[tuple[Path, Work]]:
    """The work of all steps and undos, with its path in the document; loops before what is in them."""
    for path, step in walk(definition.steps):
        yield path, step.work
        if step.undo is not None:
            yield (*path, "undo"), step.undo


def calls_in(definition: Definition) -> Iterator[tuple[Path, Call]]:
    """The calls of other workflows among them."""
    return ((path, work) for path, work in works_in(definition) if isinstance(work, Call))
