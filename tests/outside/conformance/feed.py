"""A feed whose changes the tests trigger."""

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
        """Call the listener on every change; the returned function unsubscribes."""
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def tell(self, change: SurfaceChange) -> None:
        """Notify all listeners."""
        for listener in [*self.listeners]:
            listener(change)
