"""A feed that tells its listeners whatever it is told to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from handrail.interfaces.mcp.surface.surface_protocol import SurfaceChange

Listener = Callable[[SurfaceChange], None]


@dataclass
class ListFeed:
    """Listeners in a list."""

    listeners: list[Listener] = field(default_factory=list)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell this listener of every change, until what is returned is called."""
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def tell(self, change: SurfaceChange) -> None:
        """Tell all."""
        for listener in [*self.listeners]:
            listener(change)
