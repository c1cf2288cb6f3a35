"""A dump of a PostgreSQL store is one moment of it, whatever is written meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

from handrail.domain.journal.chain import Head
from handrail.domain.journal.projection import NO_CHANGE
from handrail.domain.journal.store_event import BreakerProbed
from handrail.engine.proving.audit import verify
from handrail.storage.postgres.address import Address
from handrail.storage.postgres.dump import PostgresDump
from handrail.storage.postgres.store import PostgresStore
from storage.postgres.databases import new_database
from support import record_writer


async def test_dumps_under_load_are_whole(tmp_path: Path) -> None:
    url = await new_database(tmp_path, "dumped")
    writer, acknowledged = record_writer(), dict[str, int]()
    async with await PostgresStore.open(url) as store:

        async def write(name: str) -> None:
            head = Head(f"server/p/{name}")
            while True:
                records, _ = writer.write(head, [BreakerProbed(server=name)] * 3, actor="handrail")
                await store.append(records, NO_CHANGE)
                head = Head(head.stream, records[-1].n, records[-1].hash)
                acknowledged[head.stream] = head.n

        writers = [asyncio.ensure_future(write(f"s{number}")) for number in range(8)]
        try:
            for turn in range(3):
                while sum(acknowledged.values()) < 200 * (turn + 1):
                    await asyncio.sleep(0.01)
                before = dict(acknowledged)
                folder = tmp_path / f"dump{turn}"
                folder.mkdir()
                dumped = await PostgresDump(Address(url)).dump(folder)
                await _require_whole(await new_database(tmp_path, f"loaded{turn}"), folder, before, dumped.counts.heads)
        finally:
            for one in writers:
                one.cancel()
            await asyncio.gather(*writers, return_exceptions=True)


async def _require_whole(target: str, folder: Path, before: dict[str, int], heads: str) -> None:
    await PostgresDump(Address(target)).load(folder)
    async with await PostgresStore.open(target) as loaded:
        verdict = await verify(loaded, loaded.checkpoints(""), None, replay=True)
        assert verdict.breaks == ()
        assert (await PostgresDump(Address(target)).counts()).heads == heads
        ends = {head.stream: head.n for head in (await loaded.heads())[1]}
    assert all(ends[stream] >= n for stream, n in before.items()), "acknowledged before the dump started"
