"""Reads what a damaged journal file still has: rows out of its pages, each recognised by its shape. Only reads."""

from __future__ import annotations

import hashlib
from contextlib import closing
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from handrail.domain.errors import NotFound, Unavailable
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.event import RUN_PREFIX
from handrail.domain.journal.salvage import FoundEvent
from handrail.foundation.plain_file import NotPlain
from handrail.storage.sqlite.pages import PageFile, PageRow

EVENT_COLUMNS: Final = 13
RUN_COLUMNS: Final = (13, 15)
"""Of a run's row, before and after projects were added."""
RUN_END: Final = (1, 11, 12)
"""Where its id, the number of its last event and that event's hash are."""

_EventFields: TypeAlias = tuple[str, int, int, str, str, str | None, int | None, int, bytes, bytes, bytes, bytes | None]


class DamagedJournal(Struct, frozen=True):
    """Everything in a file that may be part of a journal."""

    events: list[FoundEvent]
    rows: list[Head]
    """The ends of runs, as their rows have them."""
    definitions: dict[str, bytes]
    pages: int


def read_damaged(journal: Path) -> DamagedJournal:
    """What the pages of a file have."""
    events, ends, definitions = list[FoundEvent](), list[Head](), dict[str, bytes]()
    try:
        with closing(PageFile(journal)) as pages:
            for row in pages.rows():
                if (event := _event(row)) is not None:
                    events.append(event)
                elif (end := _run_end(row)) is not None:
                    ends.append(end)
                elif (definition := _definition(row)) is not None:
                    definitions |= definition
            return DamagedJournal(events, ends, definitions, pages.count)
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {journal}", hint="name the damaged journal.db") from error
    except NotPlain as error:
        raise Unavailable(str(error), hint="name the damaged journal.db") from error
    except OSError as error:
        raise Unavailable(f"{journal} can't be read: {error.strerror}", hint="copy what can be read of it") from error


def _event(row: PageRow) -> FoundEvent | None:
    if len(row.values) != EVENT_COLUMNS or row.values[0] is not None:  # the position is stored as the row's id
        return None
    try:
        fields = msgspec.convert(row.values[1:], _EventFields)
    except msgspec.ValidationError:
        return None
    return FoundEvent(row.rowid, Record(*fields))


def _run_end(row: PageRow) -> Head | None:
    if len(row.values) not in RUN_COLUMNS:
        return None
    run, n, head = (row.values[place] for place in RUN_END)
    if isinstance(run, str) and run.startswith(RUN_PREFIX) and isinstance(n, int) and isinstance(head, bytes):
        return Head(run, n, head) if n > 0 else None
    return None


def _definition(row: PageRow) -> dict[str, bytes] | None:
    if len(row.values) != 2 or not isinstance(row.values[0], str) or not isinstance(row.values[1], bytes):
        return None
    name, text = row.values[0], row.values[1]
    return {name: text} if name == "sha256:" + hashlib.sha256(text).hexdigest() else None
