"""Events beside the runs: of tool servers, of plans, and of the store itself.

Values only. The events of a run, and the union of all, are event.py's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import field

from handrail.domain.fact import Fact


class BreakerOpened(Fact, frozen=True):
    """A tool server failed so often in a row that nothing calls it until this instant."""

    server: str
    failures: int
    until: int
    message: str


class BreakerProbed(Fact, frozen=True):
    """The wait is over: one call is let through to see whether the server is well again."""

    server: str


class BreakerClosed(Fact, frozen=True):
    """The tool server is well again."""

    server: str


class PlanSaved(Fact, frozen=True):
    """A version of a plan was kept; its text is in the store under this content hash.

    `pins` are the content hashes of what tool servers said of the tools that it calls."""

    version: int
    definition: str
    name: str
    steps: int
    note: str = ""
    pins: Mapping[str, str] = field(default_factory=dict)


class PlanRetired(Fact, frozen=True):
    """The plan is no longer offered. Nothing is erased: this is its tombstone."""

    reason: str


class StoreCreated(Fact, frozen=True):
    """A store was made, with the public key that signs its checkpoints."""

    store: str
    key: str


class JournalAccepted(Fact, frozen=True):
    """An operator accepted a journal that differs from its last checkpoint."""

    reason: str
    found: str


class PayloadErased(Fact, frozen=True):
    """The words of one event were erased; its place in the chain stays provable by the two digests."""

    stream: str
    event: int
    digest: str
    residue: str
    reason: str


ServerEvent: TypeAlias = BreakerOpened | BreakerProbed | BreakerClosed
PlanEvent: TypeAlias = PlanSaved | PlanRetired
StoreEvent: TypeAlias = StoreCreated | JournalAccepted | PayloadErased
