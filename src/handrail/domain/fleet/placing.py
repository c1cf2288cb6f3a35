"""Where a call can be made: which labels it asks for, and what is bound to the machine on which it was done. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from handrail.domain.definition.model import Definition, walk
from handrail.domain.fleet.label import COMMANDS, HOME, SERVER, Needs, needs_of
from handrail.domain.policy.actor import NODE_PREFIX
from handrail.domain.project import scoped

_owner = re.compile(rf"{NODE_PREFIX}w-([^-]+)-[^-]+")


def lacking(asked: Collection[str], has: Collection[str]) -> Needs:
    """What another node must have to make a call that asks for this; empty if this one has it."""
    return "" if set(asked) <= set(has) else needs_of([asked])


def home_label(actor: str) -> str:
    """The label of the machine whose node acted; empty if it was no node of a shared store.

    What a tool of this machine did to a folder, and stored to undo it, is there and nowhere else."""
    found = _owner.fullmatch(actor)
    return f"{HOME}{found[1]}" if found else ""


def server_label(project: str, server: str) -> str:
    """The label of nodes on which a project has a tool server."""
    return SERVER + scoped(project, server)


def commands_label(project: str) -> str:
    """The label of nodes on which runs of a project may run commands."""
    return COMMANDS + project


def asks_for_labels(definition: Definition) -> bool:
    """Whether any step names the node that it needs."""
    own = any(step.runs_on for _, step in walk(definition.steps))
    return own or any(asks_for_labels(one) for one in definition.pinned.values())
