"""A home with a journal of many runs, large and small, to be damaged by tests."""

from __future__ import annotations

import random
from pathlib import Path

from msgspec.structs import replace

from handrail.assembly.opening import open_store
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import DecisionRecorded, Event, RunStarted
from handrail.domain.json import JsonObject, canonical_bytes, digest
from handrail.engine.proving.stream_fold import change_of
from handrail.settings import Settings, read_settings

PAGE = 4_096


def settings_in(folder: Path) -> Settings:
    return read_settings({"home": str(folder / "home"), "project": str(folder)}, {})


async def fill_home(
    folder: Path,
    *,
    runs: int = 40,
    seed: int = 0,
    turns: range = range(4),
    known: dict[str, list[Record]] | None = None,
) -> dict[str, list[Record]]:
    """A home with runs that take turns, or that go on from what is known; the records of each stream."""
    draw, streams = random.Random(seed), dict(known or {})
    async with open_store(settings_in(folder)) as opened:
        for turn in turns:
            for number in range(runs):
                stream = f"run_{number:08d}"
                definition: JsonObject = {"id": f"plan-{number % 10}", "steps": [{"id": "tag", "prompt": "x" * 400}]}
                events: list[Event] = [
                    DecisionRecorded(decision="go", reason="y" * draw.choice((10, 300, 9_000))) for _ in range(3)
                ]
                if turn == 0:
                    events.insert(0, RunStarted(definition=digest(definition), workflow="ship@1"))
                before = streams.setdefault(stream, [])
                head = Head(stream, before[-1].n, before[-1].hash) if before else Head(stream)
                records, _ = opened.record_writer.write(head, events, actor="agent:ada")
                before += records
                change = change_of(stream, map(entry_of, before))
                texts = ((digest(definition), canonical_bytes(definition)),) if turn == 0 else ()
                await opened.journal.append(records, replace(change, definitions=texts))
        streams["store"] = await opened.store.read("store")
    return streams


def overwrite(file: Path, pages: list[int], *, seed: int) -> None:
    """What a failing disk does: pages are other bytes now."""
    draw = random.Random(seed)
    with file.open("r+b") as opened:
        for page in pages:
            opened.seek((page - 1) * PAGE)
            opened.write(draw.choice((bytes(PAGE), draw.randbytes(PAGE))))
