"""One page of the ledger: as many events as fit into an answer; an event that is larger than a page is split.

Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from handrail.engine.reading.ledger import Found, Hit, event_view, summary
from handrail.interfaces.mcp.surface.answering import compact
from handrail.interfaces.mcp.surface.fitting import size_of

EVENTS_MAX: Final = 9_000
"""The limit of the events in one answer, in characters."""
PART_LENGTH: Final = 4_000
"""The length of one part of a large event; escaped as JSON inside JSON it can be twice as long."""
WORDS_LENGTH: Final = 120


def ledger_page(found: Found, *, offset: int) -> tuple[dict[str, Any], list[str]]:
    """The events as data and as lines; the cursor of the next page is `place`, or `place+offset` inside an event."""
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
