"""Through a pooler in transaction mode: no session, nothing prepared, no listening; all else is the same."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.domain.journal.chain import Head, first_break
from handrail.engine.running.lease import Lease
from handrail.storage.postgres.store import PostgresStore
from outside.debian import REQUIRED, NotFetched
from storage.postgres import server
from storage.postgres.databases import new_database
from storage.postgres.pooler import found, pooling
from storage.stories import Story, note_append, without_words

pytestmark = pytest.mark.skipif(bool(server.MISSING), reason=server.MISSING or "-")
STORES, CONNECTIONS = 6, 3


@pytest.fixture
def pooled(tmp_path: Path) -> Iterator[str]:
    """The address of an empty database behind a pooler that has fewer connections than there are stores."""
    pooler = found()
    if isinstance(pooler, NotFetched):
        reason = f"pgbouncer was not tried: {pooler}"
        if os.environ.get(REQUIRED) == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    with pooling(pooler, asyncio.run(new_database(tmp_path, "pooled")), connections=CONNECTIONS) as url:
        yield url


def test_one_process_after_the_other_opens_a_store_through_it(pooled: str) -> None:
    code = (
        "import asyncio, sys; from handrail.storage.postgres.store import PostgresStore\n"
        "async def main():\n"
        "    async with await PostgresStore.open(sys.argv[1]) as store: print((await store.end()).events)\n"
        "asyncio.run(main())"
    )
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code, pooled], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr[-2_000:]


async def test_many_stores_share_few_connections(pooled: str) -> None:
    stores = await asyncio.gather(*(PostgresStore.open(pooled) for _ in range(STORES)))
    try:
        assert all(store._connections.is_pooled for store in stores)

        async def live(store: PostgresStore, number: int) -> Story:
            story = Story(f"run_{number}")
            lease = Lease(story.run, f"w{number}")
            await store.beat(lease.owner)
            for _ in range(10):
                await store.append(*story.tell(), lease=lease)
                assert len(await store.read(story.run)) == story.head.n
            return story

        stories = await asyncio.gather(*(live(store, number) for number, store in enumerate(stores)))
        first = stores[0]
        assert sum([len(batch) async for batch in first.scan(size=7)]) == 10 * STORES
        for story in stories:
            assert first_break(Head(story.run), await first.read(story.run)) == (story.head, None)
        (taken,) = await first.claim("me", [one for one in await first.lease_holders() if one.run == "run_3"])
        assert taken.epoch == 2
        records = await first.read("run_1")
        change = stories[1].tell()[1]
        note, _ = note_append()
        await first.erase(without_words(records[1]), note, change)
        assert await first.flaws() == []
    finally:
        await asyncio.gather(*(store.close() for store in stores))
