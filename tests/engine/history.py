"""A store with a history: its own stream, two runs that take turns, a third, and a plan. Also a key and a log."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from handrail.domain.definition.model import Category
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import (
    STORE_STREAM,
    AttemptFailed,
    AttemptStarted,
    DecisionRecorded,
    Event,
    RunCompleted,
    RunFailed,
    RunStarted,
    StepCompleted,
    StepFailed,
    StepHandedOut,
)
from handrail.domain.journal.store_event import PlanRetired, PlanSaved, StoreCreated
from handrail.domain.json import JsonObject, canonical_bytes, digest
from handrail.engine.proving.checkpointer import Checkpointer
from handrail.engine.proving.projection_repair import WholeStore
from handrail.engine.proving.stream_fold import change_of
from handrail.engine.record_writer import RecordWriter
from handrail.engine.stream_pages import records_of
from handrail.storage.checkpoint_log import CheckpointFile
from handrail.storage.keys import PrivateKey
from support import record_writer, ticking_clock

KEY = PrivateKey(bytes(range(32)))
OTHER_KEY = PrivateKey(bytes(32))
DEFINITION: JsonObject = {"id": "ship-release", "steps": [{"id": "tag", "tool": "git.tag"}]}
RUN_A, RUN_B, RUN_C, PLAN = "run_aaaaaaaa", "run_bbbbbbbb", "run_cccccccc", "plan/ship-release"

STARTED = RunStarted(definition=digest(DEFINITION), workflow="ship-release@1", inputs={"version": "1.2.0"}, goal="ship")
SAVED = PlanSaved(version=1, definition=digest(DEFINITION), name="Ship it", steps=1, note="first")


async def write(
    store: WholeStore, stream: str, *events: Event, by: RecordWriter, actor: str = "agent:ada"
) -> list[Record]:
    """Append events as dispatch would: chained, with their projections and definitions."""
    before = await records_of(store, stream)
    head = Head(stream, before[-1].n, before[-1].hash) if before else Head(stream)
    records, _ = by.write(head, events, actor=actor)
    change = change_of(stream, map(entry_of, [*before, *records]))
    pins = any(isinstance(event, RunStarted | PlanSaved) for event in events)
    texts = ((digest(DEFINITION), canonical_bytes(DEFINITION)),) if pins else ()
    await store.append(records, replace(change, definitions=texts))
    return records


async def fill(store: WholeStore, *, name: str = "st_one", key: str = KEY.public, seed: int = 0) -> RecordWriter:
    """Sixteen events in five streams; the scribe, to write more."""
    by = record_writer(seed)
    await write(store, STORE_STREAM, StoreCreated(store=name, key=key), by=by)
    await write(store, PLAN, SAVED, by=by)
    await write(store, RUN_A, STARTED, by=by)
    await write(store, RUN_B, STARTED, StepHandedOut(step="notes", agent="ada"), by=by)
    await write(store, RUN_A, AttemptStarted(step="tag", attempt=1), by=by)
    await write(store, RUN_A, StepCompleted(step="tag", output={"name": "v1.2.0"}), by=by)
    await write(store, RUN_B, DecisionRecorded(decision="wait", reason="tests are red", step="notes"), by=by)
    await write(store, RUN_A, RunCompleted(outputs={"tag": "v1.2.0"}), by=by)
    await write(store, RUN_B, StepCompleted(step="notes", output="done"), by=by)
    await write(store, RUN_C, STARTED, AttemptStarted(step="tag", attempt=1), by=by)
    await write(store, RUN_C, AttemptFailed(step="tag", attempt=1, category=Category.PERMISSION, message="403"), by=by)
    failed = StepFailed(step="tag", category=Category.PERMISSION, message="403")
    await write(store, RUN_C, failed, RunFailed(step="tag", message="403"), by=by)
    await write(store, PLAN, PlanRetired(reason="replaced"), by=by)
    return by


def notary_of(store: WholeStore, folder: Path, *, key: PrivateKey = KEY) -> Checkpointer:
    return Checkpointer(store, CheckpointFile(folder), key, ticking_clock())
