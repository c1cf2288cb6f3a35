"""A run with all that a proof bundle can hold, and what somebody with a key can do to bundles. Not a test file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from engine.history import KEY, OTHER_KEY, notary_of
from handrail.domain.definition.model import Effect
from handrail.domain.errors import IntegrityBroken
from handrail.domain.journal.chain import GENESIS, Head, chained
from handrail.domain.journal.checkpoint import Checkpoint, checkpoint_bytes, checkpoint_digest, sealed_with
from handrail.domain.journal.event import (
    STORE_STREAM,
    ApprovalGiven,
    ApprovalRequested,
    AttemptStarted,
    Event,
    OutputRefused,
    Proof,
    RunStarted,
    StepCompleted,
    StepHandedOut,
)
from handrail.domain.journal.projection import Change
from handrail.domain.journal.proof_bundle import (
    BUNDLE_FORMAT,
    Bundle,
    BundleHeader,
    CheckpointPart,
    DefinitionPart,
    Part,
    bundle_bytes,
    bundle_from,
    digest_of,
    event_part,
    rest_of,
    signed_bytes,
)
from handrail.domain.journal.store_event import StoreCreated
from handrail.domain.json import JsonObject, canonical_bytes, digest
from handrail.engine.proving.bundle_account import Account, account_of
from handrail.engine.proving.bundle_check import Proven, check_bundle
from handrail.engine.proving.bundle_writer import make_bundle
from handrail.storage.checkpoint_log import CheckpointFile
from handrail.storage.keys import PrivateKey
from handrail.storage.memory import MemoryStore
from support import record_writer, ticking_clock

RUN = "run_dddddddd"
CARD: JsonObject = {"name": "git.tag", "description": "Tags a commit.", "args": {"type": "object"}}
PLAN: JsonObject = {
    "id": "ship",
    "steps": [
        {"id": "tag", "tool": "git.tag", "effect": "irreversible"},
        {"id": "code", "prompt": "Mend it."},
        {"id": "notes", "prompt": "Write them."},
        {"id": "ask", "approve": "Ship it?"},
        {"id": "later", "prompt": "Tell the others."},
    ],
}
BEGUN = RunStarted(definition=digest(PLAN), workflow="ship@1", goal="ship", pins={"git.tag": digest(CARD)})
RED = {
    "rule": "tests_pass",
    "version": "1.0.0",
    "passed": False,
    "digest": "sha256:01",
    "exit": 1,
    "excerpt": "1 failed",
}
GREEN = {"rule": "tests_pass", "version": "1.0.0", "passed": True, "digest": "sha256:02", "exit": 0, "ran": ["pytest"]}
TOLD = {"rule": "tests_pass", "severity": "major", "where": "a.py:1:1", "message": "1 failed"}
EVENTS: Sequence[tuple[str, Event]] = (
    ("person:ada", BEGUN),
    ("handrail", AttemptStarted(step="tag", attempt=1, effect=Effect.IRREVERSIBLE)),
    ("handrail", StepCompleted(step="tag", output={"name": "v1"})),
    ("handrail", StepHandedOut(step="code", agent="claude")),
    ("agent:claude", OutputRefused(step="code", findings=(TOLD,), evidence=(RED,))),
    ("agent:claude", StepCompleted(step="code", output="done", checks=("tests_pass",), evidence=(GREEN,))),
    ("agent:claude", StepCompleted(step="notes", output="written", proof=Proof.CLAIMED)),
    ("handrail", ApprovalRequested(step="ask", digest="sha256:03", text="Ship it?", by=("ada",))),
    ("person:ada", ApprovalGiven(step="ask", digest="sha256:03", reason="looks right")),
)


async def store_with(*said: tuple[str, Event], texts: Sequence[Any] = (PLAN, CARD)) -> MemoryStore:
    """A store that holds one run with these events, and these texts."""
    store, by = MemoryStore(), record_writer()
    created, _ = by.write(Head(STORE_STREAM), [StoreCreated(store="st_one", key=KEY.public)], actor="handrail")
    await store.append(created, Change())
    head = Head(RUN)
    kept = tuple((digest(text), canonical_bytes(text)) for text in texts)
    for actor, event in said:
        records, _ = by.write(head, [event], actor=actor)
        await store.append(records, Change(definitions=kept))
        head = Head(RUN, records[-1].n, records[-1].hash)
    return store


async def bundle_in(store: MemoryStore, folder: Path, run: str = RUN, *, key: PrivateKey = KEY) -> tuple[bytes, Proven]:
    """The bundle of the run, after a checkpoint."""
    await notary_of(store, folder, key=key).seal()
    return await make_bundle(store, CheckpointFile(folder), run, signer=key, clock=ticking_clock())


async def bundle_of(folder: Path, *said: tuple[str, Event]) -> bytes:
    return (await bundle_in(await store_with(*(said or EVENTS)), folder))[0]


def account(data: bytes) -> Account:
    return account_of(check_bundle(data))


def signed(header: BundleHeader, parts: Sequence[Part], key: PrivateKey = KEY) -> bytes:
    """A bundle of these parts as somebody with a key can make it."""
    rest = rest_of(parts)
    told = replace(header, digest=digest_of(rest), key=key.public)
    return bundle_bytes(replace(told, signature=key.sign(signed_bytes(told)).hex()), rest)


def why(data: bytes) -> str:
    """Why a bundle proves nothing."""
    with pytest.raises(IntegrityBroken) as error:
        account(data)
    assert "do not rely on it" in error.value.hint
    return str(error.value)


def parts_in(data: bytes) -> Sequence[Part]:
    decoder = msgspec.json.Decoder(Part)
    return [decoder.decode(line) for line in data.splitlines()[1:]]


def made_up(definition: Any, events: Sequence[Event], *, made: int = 0, **last: Any) -> bytes:
    """A bundle that somebody has made out of thin air, with a key of their own; `last` is put into the last event."""
    records, _ = record_writer().write(Head(RUN), events, actor="eve")
    befores = [GENESIS, *(record.hash for record in records)]
    records[-1] = chained(befores[-2], replace(records[-1], **last))
    parts: list[Part] = [DefinitionPart(hash=digest(definition), text=canonical_bytes(definition).decode())]
    parts += [event_part(record, before) for record, before in zip(records, befores, strict=False)]
    end = records[-1]
    header = BundleHeader(
        format=BUNDLE_FORMAT, run=RUN, n=end.n, head=end.hash.hex(), made=made, digest="", key=OTHER_KEY.public
    )
    return signed(header, parts, OTHER_KEY)


def sealed_again(part: CheckpointPart, checkpoint: Checkpoint) -> CheckpointPart:
    """A checkpoint of other content, signed by the right key all the same."""
    sealed = sealed_with(checkpoint, key=KEY.key, signature=KEY.sign(checkpoint_bytes(checkpoint)))
    return replace(part, sealed=sealed, digest=checkpoint_digest(checkpoint))


def opened(data: bytes) -> tuple[BundleHeader, Sequence[Part]]:
    bundle: Bundle = bundle_from(data)
    return bundle.header, list(bundle.parts)
