"""Moving: a home's journal into a store that several machines share, and admitting their nodes.

Part of the only place that knows which parts the program is made of."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.assembly.opening import StoreReader, open_reader
from handrail.assembly.stores import OpenParts, is_shared, postgres_store, run_secrets_of, writing_store
from handrail.domain.errors import Conflict, IntegrityBroken, Invalid, NotFound
from handrail.domain.journal.chain import Record
from handrail.domain.journal.mark import START
from handrail.domain.journal.projection import Change
from handrail.domain.plural import plural
from handrail.engine.clock import system_clock, system_entropy
from handrail.engine.journal import Placed, mark_after
from handrail.engine.proving.audit import verify
from handrail.engine.proving.checkpointer import Checkpointer
from handrail.engine.proving.node_keys import JoiningNode, admit
from handrail.engine.proving.projection_repair import WholeStore, rebuild, stored_change
from handrail.engine.record_writer import RecordWriter
from handrail.engine.stream_pages import records_of, tombstones_of
from handrail.settings import Settings
from handrail.storage.admission import APPEND_BYTES_MAX, BODY_BYTES_MAX
from handrail.storage.keys import open_key
from handrail.storage.node_box import NodeBox

RECORDS_AT_ONCE: Final = APPEND_BYTES_MAX // BODY_BYTES_MAX // 2
"""How many events of a stream are copied in one append: even the largest fit."""
KEY: Final = re.compile(r"([0-9a-f]{64})\.([0-9a-f]{64})")
LOOKS_MAX: Final = 100


class Moved(Struct, frozen=True):
    """What was copied."""

    events: int
    streams: int
    definitions: int


def node_key(settings: Settings) -> str:
    """This home's public keys as one text, which an admitted node needs to admit it; made if there are none yet."""
    key = open_key(settings.keys, has_checkpoints=False)
    return f"{key.public}.{NodeBox(key).public}"


async def admit_node(settings: Settings, key: str, *, name: str, actor: str) -> None:
    """Admit another node to the shared store, with the signature of this one."""
    if not is_shared(settings):
        raise NotFound("this home's journal is not shared", hint="set HANDRAIL_STORE to the shared store's address")
    parts = KEY.fullmatch(key)
    if parts is None:
        raise Invalid("that is not the key of a node", hint="on the new node, run `handrail db key`")
    record_writer = RecordWriter(system_clock, system_entropy)
    async with writing_store(settings, record_writer, compare=True) as opened:
        node = JoiningNode(name, parts[1], parts[2])
        await admit(opened.store, record_writer, opened.signer, node, actor=actor)


async def open_era(settings: Settings) -> int:
    """Open the next era of the shared store; its number."""
    if not is_shared(settings):
        raise NotFound("only a store in PostgreSQL has eras", hint="set HANDRAIL_STORE to its address")
    async with postgres_store(settings) as store:
        return await store.open_era()


async def move_home(settings: Settings, address: str) -> Moved:
    """Copy this home's journal into an empty shared store, and prove that nothing was lost or changed."""
    source, target = _alone(settings, ""), _alone(settings, address)
    if is_shared(source) or not is_shared(target):
        raise Invalid("a file is copied to PostgreSQL", hint="handrail db copy HOME/journal.db postgresql://...")
    if not settings.journal.exists():
        raise NotFound("this home has no journal", hint="name the home: `handrail --home FOLDER db copy ...`")
    async with open_reader(source) as look:
        verdict = await look.verify(replay=True)
        if verdict.first_bad is not None:
            raise IntegrityBroken(
                f"the journal is not intact: {verdict.first_bad.reason}", hint="handrail journal verify"
            )
        return await _moved(look, target)


async def _moved(look: StoreReader, target: Settings) -> Moved:
    source = look.store
    async with postgres_store(target) as store:
        if (await store.end()).events:
            raise Conflict("the target is not empty", hint="name a database without a journal; nothing was copied")
        archived = [stone async for stone in tombstones_of(source)]
        if deleted := [stone.stream for stone in archived if not stone.archive]:
            raise Conflict(
                f"the events of {plural(len(deleted), 'archived run')} were deleted, so that they can't be copied",
                hint="stay with the file, or start the shared store empty",
            )
        definitions = deque(await source.definitions())
        count = len(definitions)
        for stone in archived:  # there they are not archived: `handrail db archive` does that again
            await _append(store, await records_of(source, stone.stream), definitions)
        events = await _copy(source, store, definitions)
        await rebuild(store)
        streams = await _require_equal(source, store)
    record_writer = RecordWriter(system_clock, system_entropy)
    async with writing_store(target, record_writer, compare=False) as parts:
        if parts.secrets is not None:
            for run, values in (await run_secrets_of(look.settings).all()).items():
                await parts.secrets.keep(run, values)
        await _seal(parts, record_writer)
    return Moved(events=events, streams=streams, definitions=count)


async def _copy(source: WholeStore, target: WholeStore, definitions: deque[tuple[str, bytes]]) -> int:
    """Copy all events, also those that are written meanwhile; how many there were."""
    mark = START
    for _ in range(LOOKS_MAX):
        async for batch in source.scan(after=mark):
            await asyncio.gather(*(_append(target, records, definitions) for records in _by_stream(batch)))
            mark = mark_after(mark, batch)
        if mark == await source.end():
            if definitions:
                raise IntegrityBroken("the journal has definitions and no events")
            return mark.events
    raise Conflict("others write to the journal all the time", hint="stop them, empty the target, and copy again")


async def _append(target: WholeStore, records: Sequence[Record], definitions: deque[tuple[str, bytes]]) -> None:
    """Append the next events of a stream; the definitions come along, a few with each append."""
    for start in range(0, len(records), RECORDS_AT_ONCE):
        texts, size = list[tuple[str, bytes]](), 0
        while definitions and size + len(definitions[0][1]) <= APPEND_BYTES_MAX // 2:
            texts.append(definitions.popleft())
            size += len(texts[-1][1])
        await target.append(records[start : start + RECORDS_AT_ONCE], Change(definitions=tuple(texts)))


def _by_stream(batch: Sequence[Placed]) -> Iterable[Sequence[Record]]:
    streams: dict[str, list[Record]] = {}
    for placed in batch:
        streams.setdefault(placed.record.stream, []).append(placed.record)
    return streams.values()


async def _require_equal(source: WholeStore, target: WholeStore) -> int:
    """Refuse a copy that differs anywhere; how many streams are equal."""
    _, heads = await source.heads()
    if heads != (await target.heads())[1] or await source.definitions() != await target.definitions():
        raise IntegrityBroken("the copy differs from the journal", hint="empty the target, and copy again")
    for head in heads:
        if await stored_change(source, head.stream) != await stored_change(target, head.stream):
            raise IntegrityBroken(f"the rows of {head.stream} differ in the copy", hint="`handrail journal rebuild`")
    return len(heads)


async def _seal(parts: OpenParts, record_writer: RecordWriter) -> None:
    """Sign the copy, give this home its own copy of that, and verify all of it."""
    checkpointer = Checkpointer(parts.store, parts.checkpoints, parts.signer, record_writer.clock)
    await checkpointer.seal()
    for copy in parts.copies:
        await copy.copy([sealed async for sealed in parts.checkpoints.all()])
    verdict = await verify(parts.store, parts.checkpoints, parts.signer, replay=True)
    if verdict.first_bad is not None:
        raise IntegrityBroken(f"the copy is not intact: {verdict.first_bad.reason}")


def _alone(settings: Settings, address: str) -> Settings:
    return replace(settings, choices=replace(settings.choices, store=address))
