"""Nodes: this process as one of those that execute runs on the store, and what all of them do.

Part of the only place that knows which parts the program is made of; nothing is decided here."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Final

from handrail.assembly.checks import shell_of
from handrail.domain.definition.duration import duration_ms
from handrail.domain.errors import Conflict
from handrail.domain.fleet.label import HOME, OPENS, labels_of
from handrail.domain.fleet.node import NodeCard
from handrail.domain.fleet.placing import commands_label, server_label
from handrail.engine.clock import system_clock
from handrail.engine.fleet.node import LocalNode
from handrail.engine.proving.projection_repair import WholeStore
from handrail.settings import Settings
from handrail.storage.presence import ProcessPresence
from handrail.tools.shell import can_run_commands

NODE: Final = "n-"
NAME_LENGTH_MAX: Final = 60
NODES_OF_HOME_MAX: Final = 1_000


@contextmanager
def own_node(
    settings: Settings, store: WholeStore, *, kind: str, prefix: str = "", admitted: str = ""
) -> Iterator[LocalNode]:
    """This process as a node; `prefix` starts the names of this home's workers, `admitted` is the name of this home."""
    node_id, presence = _entered(settings, kind, prefix)
    try:
        yield LocalNode(store.nodes(), _card(settings, node_id, kind, admitted))
    finally:
        presence.leave()


def _entered(settings: Settings, kind: str, prefix: str) -> tuple[str, ProcessPresence]:
    """The first id of this home that no other process has: so a node that is restarted is the same node again."""
    key, labels = _key(prefix), labels_of(settings.choices.labels)
    # Workers with other labels are other nodes, whichever of them starts first.
    mark = hashlib.sha256(",".join(labels).encode()).hexdigest()[:4] if labels else ""
    start = "-".join(filter(None, (NODE.removesuffix("-"), key, kind, mark)))
    for number in range(1, NODES_OF_HOME_MAX + 1):
        try:
            return f"{start}-{number}", ProcessPresence.enter(settings.workers, f"{start}-{number}")
        except Conflict:
            continue
    raise Conflict(f"{NODES_OF_HOME_MAX} processes of this home are nodes", hint="end some of them")


def _card(settings: Settings, node_id: str, kind: str, admitted: str) -> NodeCard:
    return NodeCard(
        id=node_id,
        name=platform.node()[:NAME_LENGTH_MAX] or "unnamed",
        admitted=admitted,
        kind=kind,
        version=version("handrail"),
        labels=labels_of(settings.choices.labels),
        slots=settings.choices.slots,
        lease_ms=duration_ms(settings.choices.lease),
        started=system_clock(),
    )


def labels_of_machine(settings: Settings, servers: Iterable[str], project: str, prefix: str) -> tuple[str, ...]:
    """What this machine has for the steps of a project: its labels, and in a shared store what is bound to it."""
    labels = labels_of(settings.choices.labels)
    if not prefix:
        return labels
    key = _key(prefix)
    commands = [commands_label(project)] if can_run_commands(settings.project, shell_of(settings)) else []
    reached = (server_label(project, one) for one in sorted(servers))
    return (*labels, f"{HOME}{key}", f"{OPENS}{key}", *commands, *reached)


def _key(prefix: str) -> str:
    return prefix.removeprefix("w-").removesuffix("-")
