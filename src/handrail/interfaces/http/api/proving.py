"""The journal: query, verify, export, bundles, checkpoints and witnesses. Verifying is done in engine/proving/."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Final

from handrail.assembly.opening import StoreReader
from handrail.assembly.witnesses import witness_states
from handrail.domain.errors import Invalid, NotFound
from handrail.domain.history.subject import kinds_about
from handrail.domain.journal.chain import Head
from handrail.domain.journal.checkpoint import SealedCheckpoint, checkpoint_digest
from handrail.domain.journal.event import RUN_PREFIX
from handrail.domain.journal.kind_name import kinds_named
from handrail.engine.journal import FAR_FUTURE
from handrail.engine.proving.bundle_account import Account, account_of
from handrail.engine.proving.bundle_check import check_bundle
from handrail.engine.proving.bundle_writer import make_bundle
from handrail.engine.reading.ledger import Query, event_view
from handrail.engine.reading.run_lines import Beginning
from handrail.interfaces.http.api.call import ApiCall
from handrail.interfaces.http.api.instants import instant_of, shown
from handrail.interfaces.http.api.run_listing import project_of
from handrail.interfaces.http.contract import asked
from handrail.interfaces.http.contract.given import journal as given
from handrail.interfaces.http.edge.cursors import cursor_of, number_in
from handrail.interfaces.http.edge.known_streams import require_stream

STREAMS_SHOWN: Final = 50
BREAKS_SHOWN: Final = 100


async def query_journal(call: ApiCall) -> given.EventPage:
    """Events that match."""
    query: asked.JournalQuery = call.query
    look = call.program.writer.reader
    now = call.program.worker.settings.clock()
    stream = await look.ledger.stream_of(query.run, look.project.id)
    if stream:
        await require_stream(call.program, stream)
    found = await look.ledger.query(
        Query(
            stream=stream,
            kinds=kinds_named(query.kind),
            step=query.step,
            actor=query.actor,
            text=query.text,
            since=instant_of(query.since, "since", now=now, default=0),
            until=instant_of(query.until, "until", now=now, default=FAR_FUTURE),
            limit=query.limit,
            after=number_in(query.cursor),
            project=project_of(query.project, call.program),
        )
    )
    is_store = not stream  # then the place of an event is its number in the whole store
    events = [given.EventView(**event_view(hit.record), seq=hit.place if is_store else 0) for hit in found.hits]
    return given.EventPage(events=tuple(events), cursor=cursor_of(found.after) if found.after is not None else "")


async def run_journal(call: ApiCall) -> given.EventPage:
    """The events of a run, in order."""
    query: asked.RunJournalQuery = call.query
    program = call.program
    run = await program.run_reader.run(call.run)
    found = await program.writer.reader.ledger.query(
        Query(
            stream=run.id,
            kinds=kinds_named(query.kind) | (kinds_about(query.about) if query.about else frozenset()),
            step=query.step,
            actor=query.actor,
            text=query.text,
            limit=query.limit,
            after=number_in(query.cursor),
        )
    )
    return given.EventPage(
        events=tuple(given.EventView(**event_view(hit.record)) for hit in found.hits),
        cursor=cursor_of(found.after) if found.after is not None else "",
        total=run.n,
        project=await program.run_reader.other_project(run.id),
    )


async def show_event(call: ApiCall) -> given.EventView:
    """One event of a run."""
    n = int(call.path["n"])
    run = await call.program.run_reader.run(call.run)
    records = await call.program.writer.reader.store.read(run.id, after=n - 1, limit=1) if n else []
    if not records or records[0].n != n:
        raise NotFound(f"{run.id} has no event {n}", hint=f"it has {run.n}, counted from 1")
    return given.EventView(**event_view(records[0]))


async def verify_journal(call: ApiCall) -> given.Verified:
    """Verify the journal, or one run."""
    query: asked.VerifyQuery = call.query
    if query.receipt and not query.run:
        raise Invalid("a receipt belongs to a run", hint="give `run`, too")
    return await _verified(call, query.run, replay=query.replay, receipts=query.receipt)


async def proof_of_run(call: ApiCall) -> given.Verified:
    """Verify one run."""
    return await _verified(call, call.run, replay=True)


async def _verified(call: ApiCall, run: str, *, replay: bool, receipts: tuple[str, ...] = ()) -> given.Verified:
    look = call.program.writer.reader
    clock = call.program.worker.settings.clock
    began = clock()
    stream = await look.ledger.stream_of(run, look.project.id)
    if stream:
        await look.ledger.of_stream(stream, limit=1)
    verdict = await look.verify(
        stream=stream or None, replay=replay, receipts=[(stream, receipt) for receipt in receipts]
    )
    return given.Verified(
        ok=verdict.ok,
        events=verdict.events,
        streams=verdict.streams,
        checkpoints=verdict.checkpoints,
        signed_events=verdict.signed_events,
        at=shown(began),
        took_ms=clock() - began,
        breaks=verdict.breaks[:BREAKS_SHOWN],
        first_bad=verdict.first_bad,
        notes=verdict.notes,
    )


async def export_journal(call: ApiCall) -> AsyncIterator[dict[str, Any]]:
    """Every event, with all that is needed to verify the chain elsewhere."""
    look = call.program.writer.reader
    stream = await look.ledger.stream_of(call.query.run, look.project.id)
    if stream:
        await look.ledger.of_stream(stream, limit=1)  # before the answer starts: it can't say so any more then
    return look.ledger.export(stream or None)


async def run_bundle(call: ApiCall) -> bytes:
    """A run as a signed proof bundle."""
    writer = call.program.writer
    run = await call.program.run_reader.run(call.run)
    await writer.checkpointer.seal()  # so that a checkpoint covers the run's latest event
    checkpointer, reader = writer.checkpointer, writer.reader
    data, _ = await make_bundle(
        reader.store, reader.checkpoints, run.id, signer=checkpointer.signer, clock=checkpointer.clock
    )
    return data


async def verify_bundle(call: ApiCall) -> Account:
    """What a bundle proves."""
    # In a thread: a large bundle has many thousand hashes and signatures.
    return await asyncio.to_thread(lambda: account_of(check_bundle(call.body)))


async def make_checkpoint(call: ApiCall) -> given.CheckpointMade:
    """Sign the current state of the journal."""
    writer = call.program.writer
    sealed = await writer.checkpointer.seal()
    last = await writer.reader.checkpoints.last()
    return given.CheckpointMade(new=sealed is not None, checkpoint=_checkpoint(last) if last else None)


async def proof(call: ApiCall) -> given.JournalProof:
    """What vouches for the journal."""
    look = call.program.writer.reader
    latest = await _latest(look, call.query.limit)
    end, heads = await look.store.heads()
    states = await witness_states(look.settings)
    return given.JournalProof(
        events=end.events,
        key=call.program.writer.checkpointer.signer.key,
        checkpoints=tuple(_checkpoint(one) for one in reversed(latest)),
        signed_events=latest[-1].checkpoint.events if latest else 0,
        witnesses=tuple(
            given.WitnessView(
                name=name,
                number=state.number,
                at=shown(state.at),
                failed_at=shown(state.failed_at),
                reason=state.reason,
            )
            for name, state in states.items()
        ),
        streams=tuple([await _head(call, one) for one in heads[-STREAMS_SHOWN:]]),
    )


async def _head(call: ApiCall, head: Head) -> given.StreamHead:
    is_run = head.stream.startswith(RUN_PREFIX)
    start = await call.program.run_reader.beginning(head.stream) if is_run else Beginning()
    return given.StreamHead(stream=head.stream, n=head.n, hash=head.hash.hex(), name=start.name, label=start.label)


async def _latest(look: StoreReader, limit: int) -> deque[SealedCheckpoint]:
    latest: deque[SealedCheckpoint] = deque(maxlen=limit)
    async for sealed in look.checkpoints.all():
        latest.append(sealed)
    return latest


def _checkpoint(sealed: SealedCheckpoint) -> given.CheckpointView:
    one = sealed.checkpoint
    return given.CheckpointView(
        number=one.number,
        at=shown(one.at),
        events=one.events,
        streams=len(one.heads),
        digest=checkpoint_digest(one),
        previous=one.previous,
        key=sealed.key,
        is_restart=one.is_restart,
    )
