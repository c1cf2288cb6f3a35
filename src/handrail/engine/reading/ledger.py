"""The ledger: events for readers, as text and as data. A read model; nothing is decided or written here."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from handrail.domain.errors import NotFound
from handrail.domain.instant import instant_text
from handrail.domain.journal.chain import GENESIS, Record
from handrail.domain.journal.event import PLAN_PREFIX, RUN_PREFIX, SERVER_PREFIX
from handrail.domain.journal.event_times import INSTANTS
from handrail.domain.project import plan_in, scoped, server_in
from handrail.engine.journal import FAR_FUTURE, LAST, Archive, Journal, ProjectionReader
from handrail.engine.run_archive import ArchivingStore
from handrail.engine.stream_pages import tombstones_of

SHOWN_MAX: Final = 1_000
BATCH: Final = 1_000
READ_MAX: Final = 50_000
"""How many events are read for one answer; the next one continues from there."""
DECISION: Final = "decision_recorded"
REFUSED: Final = "output_refused"
FINDINGS_SHOWN: Final = 5
DIGEST: Final = re.compile(r"(?:sha256:)?[0-9a-f]{64}")
DIGEST_SHOWN: Final = 16
HEADER_KEYS: Final = frozenset({"step", "attempt"})


class Query(Struct, frozen=True, kw_only=True):
    """Which events to return; empty fields match everything."""

    stream: str = ""
    kinds: frozenset[str] = frozenset()
    step: str = ""
    actor: str = ""
    text: str = ""
    since: int = 0
    until: int = FAR_FUTURE
    limit: int = 50
    after: int | None = None
    """Where the last answer ended: an event's number in a stream, or a position in the store."""
    project: str | None = None
    """Whose events of the whole store; None for those of all projects."""

    def wants(self, record: Record) -> bool:
        """Whether an event matches."""
        return (
            (not self.kinds or record.kind in self.kinds)
            and (not self.step or record.step == self.step)
            and (not self.actor or record.actor == self.actor)
            and self.since <= record.at <= self.until
            and (not self.text or _as_written(self.text) in record.body.decode().lower())
        )


class Hit(Struct, frozen=True):
    """A matching event, and the place from which an answer would start with it."""

    place: int
    record: Record


class Found(Struct, frozen=True):
    """Events, and where to continue; None if there are no more."""

    hits: tuple[Hit, ...]
    after: int | None


class LedgerStore(Archive, ProjectionReader, ArchivingStore, Protocol):
    """What the ledger needs of a store besides the journal itself."""


@dataclass(frozen=True)
class Ledger:
    """Reads events of one stream, or the latest of the whole store."""

    journal: Journal
    archive: LedgerStore

    async def of_stream(self, stream: str, *, after: int = 0, limit: int = SHOWN_MAX) -> list[Record]:
        """The events of a stream; NotFound if there is no such stream."""
        records = await self.journal.read(stream, after=after, limit=limit)
        if not records and not await self.journal.read(stream, limit=1):
            raise NotFound(f"there is no stream {stream!r}", hint="`handrail journal show` lists the latest events")
        return records

    async def stream_of(self, name: str, project: str) -> str:
        """The stream that is named in a project: `plan/<id>` and `server/<name>` are its own, if it has them."""
        prefix = next((one for one in (PLAN_PREFIX, SERVER_PREFIX) if name.startswith(one)), "")
        own = prefix + scoped(project, name.removeprefix(prefix))
        return own if prefix and await self.journal.read(own, limit=1) else name

    async def query(self, asked: Query) -> Found:
        """The matching events: of one stream in order, or of the whole store, newest first."""
        if asked.stream:
            await self.of_stream(asked.stream, limit=1)
            return await self._in_stream(asked)
        return await self._in_store(asked)

    async def _in_stream(self, asked: Query) -> Found:
        found: list[Hit] = []
        place, read = asked.after or 0, 0
        # Bounded by what is read, not by what is found: a filter that matches nothing must not read for minutes.
        while read < READ_MAX:
            batch = await self.journal.read(asked.stream, after=place, limit=BATCH)
            for record in batch:
                if len(found) == asked.limit:
                    return Found(tuple(found), place)
                if asked.wants(record):
                    found.append(Hit(place, record))
                place = record.n
            if len(batch) < BATCH:
                return Found(tuple(found), None)
            read += len(batch)
        return Found(tuple(found), place)

    async def _in_store(self, asked: Query) -> Found:
        place = LAST if asked.after is None else asked.after
        found: list[Hit] = []
        # A run in a list of thousands of its own events is looked up once.
        owners: dict[str, str | None] = {}
        for _ in range(READ_MAX // BATCH):
            batch = await self.archive.latest(until=place, size=BATCH)
            for placed in batch:
                if len(found) == asked.limit:
                    return Found(tuple(found), placed.seq)
                if asked.wants(placed.record) and await self._is_of(placed.record.stream, asked.project, owners):
                    found.append(Hit(placed.seq, placed.record))
            if len(batch) < BATCH:
                return Found(tuple(found), None)
            place = batch[-1].seq - 1
        return Found(tuple(found), place)

    async def _is_of(self, stream: str, project: str | None, owners: dict[str, str | None]) -> bool:
        """Whether a stream is of a project; what belongs to none, as the store's own stream, is everyone's."""
        if project is None:
            return True
        if stream not in owners:
            owners[stream] = await self._owner(stream)
        return owners[stream] in (None, project)

    async def _owner(self, stream: str) -> str | None:
        if stream.startswith(PLAN_PREFIX):
            return plan_in(stream)[0] or None
        if stream.startswith(SERVER_PREFIX):
            return server_in(stream)[0] or None
        row = await self.archive.run(stream) if stream.startswith(RUN_PREFIX) else None
        return row.project if row is not None else None

    async def decisions(self, stream: str, *, limit: int) -> list[str]:
        """The latest decisions of a run, one line each."""
        found = await self.query(Query(stream=stream, kinds=frozenset({DECISION}), limit=READ_MAX))
        bodies = [msgspec.json.decode(hit.record.body) for hit in found.hits[-limit:]]
        return [_short(f"{body['decision']}: {body['reason']}", 200) for body in bodies]

    async def refused(self, stream: str, step: str) -> list[str]:
        """What was wrong with the output that was refused last for a step, one line for each finding."""
        asked = Query(stream=stream, kinds=frozenset({REFUSED}), step=step, limit=READ_MAX)
        hits = (await self.query(asked)).hits
        body = msgspec.json.decode(hits[-1].record.body) if hits else {}
        return [_short(_finding_words(one), 300) for one in body.get("findings", ())[:FINDINGS_SHOWN]]

    async def latest(self, *, limit: int = 50, project: str | None = None) -> list[Record]:
        """The latest events of all streams, or of those of a project; oldest first."""
        found = await self._in_store(Query(limit=limit, project=project))
        return [hit.record for hit in reversed(found.hits)]

    async def export(self, stream: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """Every event, of one stream or all, with everything needed to verify the chain elsewhere. Archived runs come
        last, one after the other; those that were deleted are left out."""
        # The hash before each event goes with it, so that the export alone is enough to check the chain.
        ends: dict[str, bytes] = {}
        if stream is not None:
            await self.of_stream(stream, limit=1)
        async for batch in self.archive.scan():
            for placed in batch:
                record = placed.record
                if stream is None or record.stream == stream:
                    yield {"seq": placed.seq, **export_view(record, ends.get(record.stream, GENESIS))}
                    ends[record.stream] = record.hash
        async for view in self._export_archived(stream):
            yield view

    async def _export_archived(self, stream: str | None) -> AsyncIterator[dict[str, Any]]:
        async for stone in tombstones_of(self.archive):
            if stream not in (None, stone.stream) or not stone.archive:
                continue
            before = GENESIS
            for placed in await self.archive.archives().placed(stone.stream):
                yield {"seq": placed.seq, **export_view(placed.record, before)}
                before = placed.record.hash


def event_view(record: Record) -> dict[str, Any]:
    """An event as data, in one shape for every interface."""
    body = msgspec.json.decode(record.body)
    view: dict[str, Any] = {
        "run": record.stream,
        "n": record.n,
        "at": instant_text(record.at),
        "kind": record.kind,
        "actor": record.actor,
        "step": record.step,
        "attempt": record.attempt,
        "data": {key: value for key, value in _readable(record.kind, body).items() if key not in HEADER_KEYS},
        "hash": record.hash.hex(),
        "erased": record.erased is not None,
    }
    return {key: value for key, value in view.items() if value is not None and value is not False}


def _readable(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    """The content of an event with its instants as text; the stored bytes keep their milliseconds."""
    instants = INSTANTS.get(kind, ())
    return {
        key: instant_text(value) if key in instants and isinstance(value, int) else value for key, value in body.items()
    }


def export_view(record: Record, prev: bytes) -> dict[str, Any]:
    """An event with everything needed to verify its hash elsewhere."""
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
    """An event in one line: the values of its body, shortened."""
    body = _readable(record.kind, msgspec.json.decode(record.body))
    shown = [
        f"{key}={_short(value)}" for key, value in body.items() if key not in HEADER_KEYS and value not in ("", [])
    ]
    return " ".join(shown)


def _finding_words(finding: dict[str, Any]) -> str:
    """A stored finding in one line; an erased one has no words left."""
    fix = f" -> {finding['fix']}" if finding.get("fix") else ""
    return f"{finding.get('where', '')}: {finding.get('message', '')}{fix}"


def _as_written(text: str) -> str:
    """A string as it is in a body, with escaped quotes and line breaks; in lower case."""
    said = text.encode("utf-8", "replace").decode()
    return msgspec.json.encode(said)[1:-1].decode().lower()


def _short(value: Any, width: int = 60) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if DIGEST.fullmatch(text):
        width = DIGEST_SHOWN  # enough to recognise it
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"
