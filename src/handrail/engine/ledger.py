"""The ledger: events as readers see them, in words and in data. A read model; nothing is decided or written here."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from handrail.domain.chain import GENESIS, Record
from handrail.domain.errors import NotFound
from handrail.engine.clock import instant_text
from handrail.engine.journal import Archive, Journal, Placed

SHOWN_MAX: Final = 1_000
DIGEST: Final = re.compile(r"(?:sha256:)?[0-9a-f]{64}")
DIGEST_SHOWN: Final = 16
HEADER_KEYS: Final = frozenset({"step", "attempt"})


@dataclass(frozen=True)
class Ledger:
    """Reads events of one stream, or the latest of the whole store."""

    journal: Journal
    archive: Archive

    async def of_stream(self, stream: str, *, after: int = 0, limit: int = SHOWN_MAX) -> list[Record]:
        """The events of a stream; NotFound if there is no such stream."""
        records = await self.journal.read(stream, after=after, limit=limit)
        if not records and not await self.journal.read(stream, limit=1):
            raise NotFound(f"there is no stream {stream!r}", hint="`handrail journal show` lists the latest events")
        return records

    async def latest(self, *, limit: int = 50) -> list[Placed]:
        """The latest events of all streams, oldest first."""
        events, _ = await self.archive.heads(after=2**62)
        return [placed async for batch in self.archive.scan(after=max(0, events - limit)) for placed in batch]

    async def export(self, stream: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """Every event, of one stream or of all, with all that another machine needs to check the chain."""
        ends: dict[str, bytes] = {}
        if stream is not None:
            await self.of_stream(stream, limit=1)
        async for batch in self.archive.scan():
            for placed in batch:
                record = placed.record
                if stream is None or record.stream == stream:
                    yield {"seq": placed.seq, **export_view(record, ends.get(record.stream, GENESIS))}
                    ends[record.stream] = record.hash


def event_view(record: Record) -> dict[str, Any]:
    """An event as data: what `query_ledger` and `journal show --json` answer."""
    body = msgspec.json.decode(record.body)
    view: dict[str, Any] = {
        "run": record.stream,
        "n": record.n,
        "at": instant_text(record.at),
        "kind": record.kind,
        "actor": record.actor,
        "step": record.step,
        "attempt": record.attempt,
        "data": {key: value for key, value in body.items() if key not in HEADER_KEYS},
        "hash": record.hash.hex(),
        "erased": record.erased is not None,
    }
    return {key: value for key, value in view.items() if value is not None and value is not False}


def export_view(record: Record, prev: bytes) -> dict[str, Any]:
    """An event with all that another machine needs to check its hash."""
    proof: dict[str, Any] = {
        "prev": prev.hex(),
        "format": record.format,
        "salt": record.salt.hex(),
        "body": record.body.decode(),
    }
    if record.erased is not None:
        proof["erased_digest"] = record.erased.hex()
    return {**event_view(record), **proof, "at_ms": record.at}


def summary(record: Record) -> str:
    """What happened, in one line: the values of an event's body that a person would look for first."""
    body = msgspec.json.decode(record.body)
    told = [f"{key}={_short(value)}" for key, value in body.items() if key not in HEADER_KEYS and value not in ("", [])]
    return " ".join(told)


def _short(value: Any, width: int = 60) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if DIGEST.fullmatch(text):
        width = DIGEST_SHOWN  # enough to recognise it; nobody reads the rest
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"
