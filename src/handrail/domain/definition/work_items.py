"""All work in a definition: what each step does, and what its undo does. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from handrail.domain.checks.finding import Path
from handrail.domain.definition.model import Call, Definition, Prompt, Tool, Work, walk

NODES_MAX: Final = 100_000
"""How many values of a document are searched for tool names."""


def works_in(definition: Definition) -> Iterator[tuple[Path, Work]]:
    """The work of all steps and undos, with its path in the document; loops before their steps."""
    for path, step in walk(definition.steps):
        yield path, step.work
        if step.undo is not None:
            yield (*path, "undo"), step.undo


def calls_in(definition: Definition) -> Iterator[tuple[Path, Call]]:
    """The calls of other workflows."""
    return ((path, work) for path, work in works_in(definition) if isinstance(work, Call))


def tools_in(definition: Definition) -> frozenset[str]:
    """The names of all tools that a run of the definition may call, including those of inlined workflows."""
    works = (work for one in (definition, *definition.pinned.values()) for _, work in works_in(one))
    return frozenset(work.tool for work in works if isinstance(work, Tool))


def is_judged(definition: Definition) -> bool:
    """Whether a run of the definition asks an agent for work, or checks anything."""
    works = (work for one in (definition, *definition.pinned.values()) for _, work in works_in(one))
    return any(isinstance(work, Prompt) or (isinstance(work, Tool) and work.checks) for work in works)


def has_checks(definition: Definition) -> bool:
    """Whether a run of the definition checks anything."""
    works = (work for one in (definition, *definition.pinned.values()) for _, work in works_in(one))
    return any(isinstance(work, Prompt | Tool) and work.checks for work in works)


def tools_named(document: Any) -> frozenset[str]:
    """The tool names in a document that was not parsed yet, so that their servers can be asked about them."""
    found: set[str] = set()
    waiting = [document]
    for _ in range(NODES_MAX):
        if not waiting:
            break
        value = waiting.pop()
        if isinstance(value, Mapping):
            if isinstance(value.get("tool"), str):
                found.add(value["tool"])
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)
    return frozenset(found)
