"""A page of the ledger: as many events as fit into an answer; one that does not fit by itself comes in parts.

Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from handrail.engine.ledger import Found, Hit, event_view, summary
from handrail.interfaces.mcp.surface.answering import compact
from handrail.interfaces.mcp.surface.fitting import size_of

EVENTS_MAX: Final = 9_000
"""How many characters the events of one answer have at most."""
PART_LENGTH: Final = 4_000
"""How long a part of a large event is; as JSON inside JSON it can be twice that."""
WORDS_LENGTH: Final = 120


def ledger_page(found: Found, *, offset: int) -> tuple[dict[str, Any], list[str]]:
    """The events as data and in lines; a cursor tells where to go on: `place`, or `place+offset` inside an event."""
    events: list[dict[str, Any]] = []
    lines: list[str] = []
    room = EVENTS_MAX
    for index, hit in enumerate(found.hits):
        event = event_view(hit.record)
        size = size_of(event)
        if size > EVENTS_MAX and not events:
            following = found.hits[index + 1].place if index + 1 < len(found.hits) else found.after
            return _part(hit, event, offset, following)
        if size > room:
            return {"events": events, "cursor": str(hit.place)}, lines
        room -= size
        events.append(event)
        lines.append(_line(hit, event))
    data: dict[str, Any] = {"events": events}
    if found.after is not None:
        data["cursor"] = str(found.after)
    return data, lines


def _part(hit: Hit, event: dict[str, Any], offset: int, following: int | None) -> tuple[dict[str, Any], list[str]]:
    text = msgspec.json.encode(event["data"]).decode()
    end = offset + PART_LENGTH
    part = {"text": text[offset:end], "from": offset, "of": len(text)}
    data: dict[str, Any] = {"events": [{**event, "data": {"part": part}}]}
    if end < len(text):
        data["cursor"] = f"{hit.place}+{end}"
    elif following is not None:
        data["cursor"] = str(following)
    return data, [f"{_line(hit, event)} (part {offset} to {end} of {len(text)} characters)"]


def _line(hit: Hit, event: dict[str, Any]) -> str:
    step = f" {event['step']}" if "step" in event else ""
    words = compact(summary(hit.record), WORDS_LENGTH)
    return f"{event['run']} {event['n']} {event['at']} {event['kind']}{step} {event['actor']} {words}"
