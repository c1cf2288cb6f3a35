"""Rounds of writers in processes of their own (writers.py), and what must be true of the store after them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from handrail.domain.journal.chain import Head, Record, first_break
from handrail.storage.sqlite.store import SqliteStore
from storage.stories import run_row, step_row
from storage.writers import Order

WRITERS = Path(__file__).with_name("writers.py")


@dataclass
class Heard:
    """What writers have said: which events were acknowledged with which hash, and how many races were lost."""

    acknowledged: dict[tuple[str, int], str] = field(default_factory=dict)
    refused: int = 0


class Rounds:
    """The process that forks the writers, and what was heard of them on each file."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def play(self, order: Order, heard: Heard) -> list[int]:
        """Play one round to its end: the exit codes of the writers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(order).decode() + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            match line.split():
                case ["ack", stream, n, digest]:
                    assert (stream, int(n)) not in heard.acknowledged, f"event {n} of {stream} acknowledged twice"
                    heard.acknowledged[stream, int(n)] = digest
                case ["refused", *_]:
                    heard.refused += 1
                case ["end", *codes]:
                    return [int(code.strip("[],")) for code in codes]
                case ["failed", *_]:
                    raise AssertionError(line)
        raise AssertionError("the writers' process ended")


@contextmanager
def playing() -> Iterator[Rounds]:
    command = [sys.executable, str(WRITERS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Rounds(process)
        assert process.stdin is not None
        process.stdin.close()


async def everything(store: SqliteStore) -> dict[str, list[Record]]:
    """All records by stream; the places in the store are dense, whatever has happened."""
    streams: dict[str, list[Record]] = {}
    last = 0
    async for batch in store.scan():
        for placed in batch:
            assert placed.seq == last + 1, f"place {placed.seq} follows {last}"
            last = placed.seq
            streams.setdefault(placed.record.stream, []).append(placed.record)
    return streams


async def require_sound(path: Path, heard: Heard) -> None:
    """Nothing acknowledged is lost, nothing stands twice, every chain holds, and every row is its last event's."""
    async with await SqliteStore.open(path) as store:
        streams = await everything(store)
        stored = {(stream, record.n): record.hash.hex() for stream, records in streams.items() for record in records}
        assert heard.acknowledged.items() <= stored.items(), "acknowledged events are lost or changed"
        bodies = [record.body for records in streams.values() for record in records]
        assert len(set(bodies)) == len(bodies), "an append stands there twice"
        for stream, records in streams.items():
            assert first_break(Head(stream), records)[1] is None
            assert await store.run(stream) == run_row(records[-1])
            rows = {record.step: step_row(record) for record in records}
            assert await store.steps(stream) == [rows[path] for path in sorted(rows, key=str)]
        assert await store.flaws() == []
