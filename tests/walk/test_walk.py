"""The walk of a call, as ARCHITECTURE.md tells it: each number below is a number there."""

from __future__ import annotations

from pathlib import Path

from handrail.domain.journal.chain import Head, first_break
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import AttemptStarted
from handrail.domain.run.command import StartAttempt
from handrail.domain.run.decide import decide
from handrail.domain.run.state import Run, replay
from handrail.engine.dispatch import Dispatch
from handrail.engine.reading.ledger import Ledger, event_view
from handrail.library.loading import load_definition
from handrail.storage.sqlite.store import SqliteStore
from support import record_writer

TEXT = """
id: greet
steps:
  - {id: write, tool: file.write, args: {path: hello.txt, text: hello}}
"""


async def test_a_definition_goes_in_an_event_is_appended_a_fold_comes_out_and_a_reader_sees_it(tmp_path: Path) -> None:
    definition = load_definition(TEXT, name="greet.yaml").definition
    assert definition is not None
    async with await SqliteStore.open(tmp_path / "journal.db") as store:
        dispatch = Dispatch(store, record_writer())
        started = await dispatch.start(definition, {}, actor="person:ada")

        command = StartAttempt(step="write")  # 1 interface: arguments become a command
        run = await dispatch.grant(started.id, command, actor="handrail")  # 2 dispatch, and in it:

        before = replay([entry_of(one) for one in (await store.read(started.id))[:1]], Run(id=started.id))
        assert before == started  # 3 replay
        assert decide(before, command, definition) == [AttemptStarted(step="write", attempt=1)]  # 4 decide
        records = await store.read(started.id)  # 5 written, chained and appended
        assert first_break(Head(started.id), records) == (Head(run.id, run.n, run.head), None)
        assert (await store.steps(run.id))[0].status == "running"

        seen = event_view((await Ledger(store, store).of_stream(run.id))[-1])  # 6 read
        assert (seen["kind"], seen["step"], seen["actor"]) == ("attempt_started", "write", "handrail")
        assert run.receipt == f"2:{seen['hash'][:16]}"  # 7 the reply carries a receipt
