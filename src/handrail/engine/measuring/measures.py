"""What a process measures of itself, because no event says it: how long syncs take, and how long calls wait.

The protocol is small on purpose: everything else is read from the journal (journal_figures.py). Without an exporter
nothing is measured, which costs one call of an empty function for each transaction."""

from __future__ import annotations

from typing import Final, Protocol


class Measures(Protocol):
    """Takes measurements; from any thread, and it must not wait."""

    def committed(self, appends: int, seconds: float) -> None:
        """A transaction with so many appends was synced, and took this long."""
        ...

    def waited(self, seconds: float) -> None:
        """A call of a tool started after it had waited this long for a limit or a breaker."""
        ...


class NoMeasures:
    """Measures nothing."""

    def committed(self, appends: int, seconds: float) -> None:
        """Nothing."""

    def waited(self, seconds: float) -> None:
        """Nothing."""


NO_MEASURES: Final[Measures] = NoMeasures()
