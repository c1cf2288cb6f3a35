"""An event of a run as a line of the terminal: its time, and what happened."""

from __future__ import annotations

from datetime import UTC, datetime

from handrail.domain.history.event_line import event_line
from handrail.domain.journal.event import Entry
from handrail.interfaces.pictures.caption import plain


def timed_line(entry: Entry) -> str:
    """The local time and what happened."""
    local = datetime.fromtimestamp(entry.at / 1_000, UTC).astimezone()
    return f"{local:%H:%M:%S}  {sentence(entry)}"


def sentence(entry: Entry) -> str:
    """What happened, on one line that any terminal can show."""
    return plain(event_line(entry))
