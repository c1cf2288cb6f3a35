"""A process that forks writers of one store on command, and kills them when it is told to.

Forking from a warmed-up process makes a round cheap. Orders come in as JSON lines; what the writers say (`ack` for an
append that returned, `refused` for one that lost a race) goes out line by line, then `end`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from handrail.domain.errors import JournalConflict
from handrail.domain.journal.chain import Head
from handrail.domain.journal.projection import Change
from handrail.storage.sqlite.store import SqliteStore

sys.path.insert(0, str(Path(__file__).parent.parent))
from storage.stories import chain_behind, head_of, run_row, step_row

SHARED = "run_shared"


class Order(Struct, frozen=True):
    """One round: who writes where, and after how many acknowledgements, and how much later, all are killed."""

    path: str
    name: str
    writers: int
    appends: int
    kill_after: int | None = None
    kill_later_s: float = 0.0


def main() -> None:
    for line in sys.stdin:
        play(msgspec.json.decode(line, type=Order))


def play(order: Order) -> None:
    source, sink = os.pipe()
    children = [pid for number in range(order.writers) if (pid := forked(order, number, source, sink))]
    os.close(sink)
    said, killed = b"", False
    while heard := os.read(source, 65_536):
        said += heard
        if not killed and order.kill_after is not None and said.count(b"\nack ") >= order.kill_after:
            time.sleep(order.kill_later_s)
            killed = True
            for child in children:
                os.kill(child, signal.SIGKILL)
    os.close(source)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.stdout.write(said.decode() + f"\nend {statuses}\n")
    sys.stdout.flush()


def forked(order: Order, number: int, source: int, sink: int) -> int:
    if child := os.fork():
        return child
    os.close(source)
    try:
        asyncio.run(write(order, number, sink))
    except BaseException as error:
        os.write(sink, f"\nfailed {error!r}".encode())
        os._exit(1)
    os._exit(0)


async def write(order: Order, number: int, sink: int) -> None:
    """Write to streams of one's own and to one that all share, all at once, until done or killed."""
    mine = [f"run_{order.name}_{number}_{part}" for part in range(3)]
    async with await SqliteStore.open(order.path, busy_ms=30_000) as store:
        await asyncio.gather(*(append_all(store, stream, order, number, sink) for stream in (*mine, SHARED)))


async def append_all(store: SqliteStore, stream: str, order: Order, number: int, sink: int) -> None:
    head = Head(stream)
    for count in range(order.appends):
        body = f"{order.name} {number} {stream} {count}".encode()
        while True:
            records = chain_behind(head, [body])
            change = Change(run=run_row(records[-1]), steps=tuple(step_row(record) for record in records))
            try:
                await store.append(records, change)
            except JournalConflict:
                os.write(sink, b"\nrefused " + body)
                head = head_of(await store.read(stream))
                continue
            break
        head = head_of(records)
        os.write(sink, f"\nack {stream} {head.n} {head.hash.hex()} ".encode())


if __name__ == "__main__":
    main()
