"""A child process that appends to streams of its own and to one that all share, and says so, line by line.

python writing.py URL NAME APPENDS"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from handrail.domain.errors import JournalConflict
from handrail.domain.journal.chain import Head
from handrail.domain.journal.projection import Change
from handrail.storage.postgres.store import PostgresStore
from storage.stories import chain_behind, head_of, run_row, step_row

STREAMS = 8
SHARED = "run_shared"


async def write(store: PostgresStore, stream: str, name: str, appends: int) -> None:
    head = Head(stream)
    for number in range(appends):
        while True:
            records = chain_behind(head, [f"{name} {stream} {number}".encode()])
            change = Change(run=run_row(records[-1]), steps=tuple(step_row(record) for record in records))
            try:
                await store.append(records, change)
                break
            except JournalConflict:
                head = head_of(await store.read(stream))
        head = head_of(records)
        os.write(1, f"ack {stream} {head.n} {head.hash.hex()}\n".encode())


async def main(url: str, name: str, appends: int) -> None:
    async with await PostgresStore.open(url) as store:
        own = [write(store, f"run_{name}_{number}", name, appends) for number in range(STREAMS)]
        await asyncio.gather(*own, write(store, SHARED, name, appends))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
