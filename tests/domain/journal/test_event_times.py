"""Every field of an event that is an instant is shown as one."""

from __future__ import annotations

from msgspec.structs import fields

from handrail.domain.journal.codec import KINDS
from handrail.domain.journal.event_times import INSTANTS

NAMES = {"due", "until", "expires", "deadline", "at", "made"}


def test_the_table_names_every_instant_of_every_event() -> None:
    found = {
        kind: tuple(field.name for field in fields(event) if field.name in NAMES and field.type is not str)
        for kind, event in KINDS.items()
    }
    assert {kind: names for kind, names in found.items() if names} == INSTANTS
