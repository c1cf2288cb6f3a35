"""The console of the live view: as rich's own, but texts are made visible before they reach the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from handrail.foundation.visible_text import visible


class LiveConsole(Console):
    """A console that lets no text control the terminal; what rich itself sends to move the cursor stays."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The pieces to print."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
