"""Nodes: the processes that execute runs on one store, as each says of itself. Pure.

A node is up as long as its beat is younger than its lease. Nothing here decides who may work on a run: that is the
lease of the run (engine/running/lease.py). A node only says what it would take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from handrail.domain.errors import NotFound
from handrail.domain.fleet.label import Needs, in_words, is_met
from handrail.domain.suggestion import did_you_mean

RUNS_SHOWN: Final = 100
KEPT_MS: Final = 3_600_000
"""How long a node that was lost is still listed: long enough to be seen by a person. A paused one stays."""


class NodeState(StrEnum):
    """What a node does, as far as others can tell."""

    UP = "up"
    PAUSED = "paused"
    DRAINING = "draining"
    LOST = "lost"
    """It is silent for longer than its lease."""
    DOWN = "down"
    """It has ended; it is listed because it is paused, and still is when it starts again."""


GONE: Final = frozenset({NodeState.LOST, NodeState.DOWN})
"""States in which a node executes nothing."""


class NodeCard(Struct, frozen=True, kw_only=True):
    """What a node says of itself with every beat."""

    id: str
    name: str
    """Of its machine."""
    admitted: str = ""
    """The name under which its home was admitted to a shared store."""
    kind: str
    version: str
    labels: tuple[str, ...] = ()
    has: tuple[str, ...] = ()
    """What is bound to its machine: see label.py."""
    slots: int = 0
    """How many runs it works on at once; 0: as many as come."""
    used: int = 0
    runs: tuple[str, ...] = ()
    """The runs that it works on, the first of them."""
    projects: tuple[str, ...] = ()
    is_draining: bool = False
    has_ended: bool = False
    lease_ms: int = 10_000
    started: int = 0


class FleetNode(Struct, frozen=True, kw_only=True):
    """A node as the store knows it."""

    card: NodeCard
    beat: int
    silent_ms: int
    """How long ago its last beat was, by the clock of the store."""
    paused_by: str = ""

    @property
    def state(self) -> NodeState:
        """What it does, as far as others can tell."""
        if self.card.has_ended:
            return NodeState.DOWN
        if self.silent_ms > self.card.lease_ms:
            return NodeState.LOST
        if self.card.is_draining:
            return NodeState.DRAINING
        return NodeState.PAUSED if self.paused_by else NodeState.UP

    @property
    def is_forgotten(self) -> bool:
        """Whether it was lost so long ago that it need not be listed any more."""
        return self.silent_ms > KEPT_MS and not self.paused_by

    @property
    def is_taking(self) -> bool:
        """Whether it would take another run."""
        return self.state is NodeState.UP and (not self.card.slots or self.card.used < self.card.slots)

    def can(self, project: str, needs: Needs) -> bool:
        """Whether a run of this project that needs this could go on there."""
        return project in self.card.projects and is_met(needs, (*self.card.labels, *self.card.has))


class Waiting(Struct, frozen=True, kw_only=True):
    """Runs that are ready and that no node has taken, by what they need."""

    needs: str
    runs: int
    nodes: int
    """How many nodes are up that could take them."""


def required(nodes: Sequence[FleetNode], asked: str) -> FleetNode:
    """The node with this id, or with a name that only one has."""
    named = [one for one in nodes if one.card.id == asked]
    named = named or [one for one in nodes if asked in (one.card.admitted, one.card.name)]
    if len(named) == 1:
        return named[0]
    known = [one.card.id for one in nodes]
    hint = did_you_mean(asked, known) or "`handrail nodes` lists all"
    if named:
        raise NotFound(f"{len(named)} nodes are called {asked!r}", hint=f"give an id: {', '.join(known[:8])}")
    raise NotFound(f"there is no node {asked[:100]!r}", hint=hint)


def able_nodes(nodes: Iterable[FleetNode], project: str, needs: Needs) -> list[FleetNode]:
    """The nodes that are not lost and can go on with a run."""
    return [one for one in nodes if one.can(project, needs) and one.state not in GONE]


def wait_for(nodes: Iterable[FleetNode], project: str, needs: Needs) -> str:
    """Why a run that no node has taken waits, in one sentence; empty if nothing keeps it from going on."""
    what = f"a node with {in_words(needs)}" if needs else "a node that serves its project"
    live = able_nodes(nodes, project, needs)
    if not live:
        return f"waits for {what}: none is up"
    if any(one.is_taking for one in live):
        return f"waits for {what}" if needs else ""
    if any(one.state is NodeState.UP for one in live):
        return f"waits for {what}: all slots are taken"
    return f"waits for {what}: {', '.join(sorted({one.state.value for one in live}))}"


def fair_room(*, slots: int, used: int, own: int, rivals: int) -> int:
    """How many more runs a project may take on a node with so many slots, while others want some too."""
    free = max(0, slots - used)
    if not rivals:
        return free
    share = -(-slots // (rivals + 1))
    return min(free, max(0, share - own))


def share_of(ready: int, takers: int) -> int:
    """How many of the ready runs one of several nodes takes at a time, so that all of them get some."""
    return -(-ready // max(1, takers))
