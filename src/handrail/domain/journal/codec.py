"""The codec: events to bytes and back, for every format version that was ever written.

Pure. A body is the event's fields as JSON, without those that equal their default: a default is part of the format. A
journal written by any release stays readable: when a kind changes its fields, FORMAT goes up and UPCASTS says how
older bodies are converted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

import msgspec

from handrail.domain.errors import IntegrityBroken
from handrail.domain.journal.chain import Record
from handrail.domain.journal.event import Entry, Event

FORMAT: Final = 1

UPCASTS: Final[Mapping[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]]] = {}
"""(kind, format) -> converts a body of that format to the next."""

KINDS: Final[Mapping[str, type[Event]]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", event.__name__).lower(): event for event in get_args(Event)
}
KIND_OF: Final[Mapping[type[Event], str]] = {event: kind for kind, event in KINDS.items()}
_DECODERS: Final = {kind: msgspec.json.Decoder(event) for kind, event in KINDS.items()}

encode_body = msgspec.json.Encoder().encode


def kind_of(event: Event) -> str:
    """The name under which an event is stored: `step_completed`."""
    return KIND_OF[type(event)]


def decode_event(kind: str, version: int, body: bytes) -> Event:
    """The event in a stored body of any format version."""
    if kind not in KINDS or not 1 <= version <= FORMAT:
        raise IntegrityBroken(f"event kind {kind!r} in format {version} is not known to this handrail")
    try:
        if version == FORMAT:
            return _DECODERS[kind].decode(body)
        return msgspec.convert(_upcast(kind, version, msgspec.json.decode(body)), KINDS[kind])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise IntegrityBroken(f"the body of a {kind} event can't be read: {error}") from error


def entry_of(record: Record) -> Entry:
    """The event of a record, with its place in the stream."""
    return Entry(
        stream=record.stream,
        n=record.n,
        at=record.at,
        actor=record.actor,
        event=decode_event(record.kind, record.format, record.body),
        hash=record.hash,
    )


def _upcast(kind: str, version: int, data: dict[str, Any]) -> dict[str, Any]:
    for older in range(version, FORMAT):
        if upcast := UPCASTS.get((kind, older)):
            data = upcast(data)
    return data
