"""Nodes: this process as one of those that execute runs on the store, and what all of them do.

Part of the only place that knows which parts the program is made of; nothing is decided here."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import version
from typing import Final

from handrail.domain.definition.duration import duration_ms
from handrail.domain.fleet.label import HOME, labels_of
from handrail.domain.fleet.node import NodeCard
from handrail.domain.fleet.placing import server_label
from handrail.engine.clock import new_id, system_clock, system_entropy
from handrail.engine.fleet.node import LocalNode
from handrail.engine.proving.projection_repair import WholeStore
from handrail.settings import Settings

NODE: Final = "n-"
NAME_LENGTH_MAX: Final = 60


def node_of(settings: Settings, store: WholeStore, *, kind: str, prefix: str = "") -> LocalNode:
    """This process as a node; `prefix` starts the names of this home's workers."""
    key = _key(prefix)
    card = NodeCard(
        id=new_id(f"{NODE}{key}-" if key else NODE, system_entropy),
        name=platform.node()[:NAME_LENGTH_MAX] or "unnamed",
        kind=kind,
        version=version("handrail"),
        labels=labels_of(settings.choices.labels),
        slots=settings.choices.slots,
        lease_ms=duration_ms(settings.choices.lease),
        started=system_clock(),
    )
    return LocalNode(store.nodes(), card)


def labels_of_machine(settings: Settings, servers: Iterable[str], project: str, prefix: str) -> tuple[str, ...]:
    """What this machine has for the steps of a project: its labels, and in a shared store what is bound to it."""
    labels = labels_of(settings.choices.labels)
    if not prefix:
        return labels
    return (*labels, f"{HOME}{_key(prefix)}", *(server_label(project, one) for one in sorted(servers)))


def _key(prefix: str) -> str:
    return prefix.removeprefix("w-").removesuffix("-")
