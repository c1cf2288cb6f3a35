"""Where a worker is: what its machine has, whether there is room for another run, and which runs belong elsewhere.

No I/O. The slots are those of the node (node.py); labels: domain/fleet/label.py."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from handrail.domain.errors import NotFound
from handrail.domain.fleet.label import is_met
from handrail.engine.fleet.node import LocalNode
from handrail.engine.running.conductor import Conductor
from handrail.engine.tool import Toolbox


@dataclass(frozen=True)
class OwnPlace:
    """The place of a worker."""

    project: str
    labels: frozenset[str] = frozenset()
    """What this machine has."""
    runs_on: frozenset[str] = frozenset()
    """What a node must have to execute runs of the project."""
    node: LocalNode | None = None
    """Whose slots are shared; None: it takes what there is."""

    @property
    def is_right(self) -> bool:
        """Whether runs of the project may be executed here at all."""
        return self.runs_on <= self.labels

    @property
    def room(self) -> int | None:
        """How many more runs may be taken now; None: as many as come."""
        if not self.is_right:
            return 0
        return None if self.node is None else self.node.room(self.project)

    @property
    def has_room(self) -> bool:
        """Whether another run may be taken now."""
        return self.room != 0

    @property
    def is_taking(self) -> bool:
        """Whether runs are taken here at all: the node is neither paused nor draining."""
        return self.node is None or self.node.is_taking

    @property
    def has_slots(self) -> bool:
        """Whether the number of runs is bounded."""
        return self.node is not None and self.node.card.slots > 0

    def can(self, needs: str) -> bool:
        """Whether a run that needs this can go on here."""
        return is_met(needs, self.labels)

    def share(self, ready: int) -> int:
        """How many of so many ready runs to take now."""
        return ready if self.node is None else self.node.share(self.project, ready)

    def may_leave(self, conductor: Conductor, needs: str) -> bool:
        """Whether a run is better off elsewhere: one that waits for a time as well needs some node for that."""
        # Without any node, nothing would happen when its timer goes off.
        others = () if self.node is None else self.node.others
        return not conductor.waits_for_time or any(one.is_taking and one.can(self.project, needs) for one in others)

    def callable(self, names: Collection[str], toolbox: Toolbox) -> list[str]:
        """The tools without those that only another node may call: their servers are not started here."""
        return [name for name in names if set(_runs_on(name, toolbox)) <= self.labels]


def _runs_on(name: str, toolbox: Toolbox) -> Collection[str]:
    try:
        return toolbox.find(name).spec.runs_on
    except NotFound:
        return ()  # what is unknown is reported when its server is looked up
