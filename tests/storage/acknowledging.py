"""A child process that appends and says so on stdout, line by line, the moment each append has returned.

    python acknowledging.py (all | until-failure) <path of the store>

`all` walks through what a store does in its life: appends one by one and many at once, lost races, checkpoints, an
erasure, closing and opening again. `until-failure` appends until the store refuses, and shows what then still works."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from handrail.domain.errors import HandrailError, JournalConflict
from handrail.storage.sqlite.store import SqliteStore

sys.path.insert(0, str(Path(__file__).parent.parent))
from storage.stories import Append, Story, note_append, without_words

LOG_PAGES = 40
"""So few that the log is emptied into the file many times."""


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def mark(number: int) -> bytes:
    """Words that stand in exactly one event."""
    return b"mark-%05d;" % number


async def acknowledged(store: SqliteStore, number: int, append: Append) -> None:
    records, change = append
    try:
        await store.append(records, change)
    except JournalConflict:
        say("refused", records[-1].hash.hex())
    else:
        say("ack", number, *(f"{record.stream}:{record.n}:{record.hash.hex()}" for record in records))


async def tell(store: SqliteStore, story: Story, numbers: range) -> None:
    for number in numbers:
        body = mark(number) + b"." * (number * 97 % 2_000) * (1 + 9 * (number % 10 == 0))
        await acknowledged(store, number, story.tell(body=body, definitions=((f"h{number % 7}", b"text"),)))


async def opened(path: Path) -> SqliteStore:
    store = await SqliteStore.open(path)
    assert store._writer is not None
    store._writer._connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
    return store


async def live(path: Path) -> None:
    first, others = Story(), [Story(f"run_{letter}") for letter in "bcdefgh"]
    async with await opened(path) as store:
        await tell(store, first, range(40))
        await asyncio.gather(
            *(tell(store, story, range(100 * at, 100 * at + 12)) for at, story in enumerate(others, start=1))
        )
        rivals = [Story("run_race").tell(body=mark(number)) for number in range(900, 906)]
        await asyncio.gather(*(acknowledged(store, 900 + at, rival) for at, rival in enumerate(rivals)))
        records, change = Story("run_secret").tell(2, body=mark(950))
        await acknowledged(store, 950, (records, change))
        await store.erase(without_words(records[0]), note_append()[0], change)
        say("erased", "run_secret:1")
    async with await opened(path) as store:
        await tell(store, first, range(40, 60))
        await asyncio.gather(
            *(tell(store, story, range(100 * at + 12, 100 * at + 20)) for at, story in enumerate(others, start=1))
        )


async def until_failure(path: Path) -> None:
    story = Story()
    async with await SqliteStore.open(path) as store:
        for number in range(1_000):
            records, change = story.tell(body=mark(number))
            try:
                await store.append(records, change)
            except HandrailError as error:
                say("failed", error)
                break
            say("ack", number, f"run_a:{records[0].n}:{records[0].hash.hex()}")
        for number in range(3):
            try:
                await store.append(*Story(f"run_late_{number}").tell())
                say("ack-after-failure", number)
            except HandrailError as error:
                say("refused-after-failure", error, "|", error.hint)
        say("read-after-failure", len(await store.read("run_a")))


if __name__ == "__main__":
    asyncio.run({"all": live, "until-failure": until_failure}[sys.argv[1]](Path(sys.argv[2])))
