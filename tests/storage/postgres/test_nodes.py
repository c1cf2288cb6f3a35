"""Several nodes on one store: who is admitted, who signs, what each has seen, and what a takeover knows."""

from __future__ import annotations

from pathlib import Path

import asyncpg
import pytest
from msgspec.structs import replace

from handrail.assembly.moving import admit_node, move_home, node_key
from handrail.assembly.opening import open_reader, open_store, open_writer
from handrail.domain.definition.authoring import definition_from
from handrail.domain.errors import Conflict, Forbidden, IntegrityBroken, Unavailable
from handrail.domain.journal.projection import NO_CHANGE
from handrail.domain.journal.store_event import JournalAccepted, NodeAdmitted, StoreCreated
from handrail.domain.run.command import RecordDecision
from handrail.engine.stream_pages import entries_of
from handrail.settings import Settings, read_settings
from handrail.storage.postgres.store import PostgresStore
from storage.postgres import server
from storage.postgres.databases import new_database

pytestmark = pytest.mark.skipif(bool(server.MISSING), reason=server.MISSING)

WORK = definition_from(
    {
        "id": "ship",
        "inputs": {"token": {"type": "string", "secret": True}},
        "steps": [{"id": "look", "prompt": "Look at it."}],
    }
)
TOKEN = "correct-horse-battery"


def home_of(folder: Path, name: str, url: str) -> Settings:
    (folder / name / "project").mkdir(parents=True, exist_ok=True)
    flags = {"home": str(folder / name / "home"), "project": str(folder / name / "project"), "store": url}
    return read_settings(flags, {})


@pytest.fixture
async def url(tmp_path: Path) -> str:
    return await new_database(tmp_path, "nodes")


async def joined(folder: Path, url: str) -> tuple[Settings, Settings]:
    """Two homes on one store: the first has made it, and admitted the other."""
    one, other = home_of(folder, "one", url), home_of(folder, "other", url)
    async with open_store(one):
        pass
    await admit_node(one, node_key(other), name="other", actor="person:ada")
    return one, other


async def test_a_node_is_refused_until_an_admitted_one_has_signed_for_it(tmp_path: Path, url: str) -> None:
    one, other = home_of(tmp_path, "one", url), home_of(tmp_path, "other", url)
    async with open_store(one) as opened:
        created, own = [entry.event for entry in await entries_of(opened.store, "store")]
        assert isinstance(created, StoreCreated)
        assert isinstance(own, NodeAdmitted)
        assert own.key == own.by == created.key
    with pytest.raises(Forbidden, match="not admitted") as refused:
        async with open_store(other):
            pass
    assert "handrail db admit" in refused.value.hint
    key = node_key(other)
    await admit_node(one, key, name="other", actor="person:ada")
    with pytest.raises(Conflict, match="admitted already"):
        await admit_node(one, key, name="again", actor="person:ada")
    async with open_store(other) as opened:
        assert (await opened.store.end()).events == 3
    with pytest.raises(Forbidden):
        await admit_node(one, key, name="agent", actor="agent:claude")


async def test_whoever_has_only_the_database_can_admit_no_one(tmp_path: Path, url: str) -> None:
    one, _ = await joined(tmp_path, url)
    third = home_of(tmp_path, "third", url)
    public, box = node_key(third).split(".")
    async with open_store(one) as opened:
        (*_, last) = [entry.event for entry in await entries_of(opened.store, "store")]
        assert isinstance(last, NodeAdmitted)
        forged = [replace(last, key=public, box=box), replace(last, key=public, box=box, by=public)]
        for event in forged:
            head = (await opened.store.heads())[1][0]
            records, _ = opened.record_writer.write(head, [event], actor="person:eve")
            await opened.store.append(records, NO_CHANGE)
    with pytest.raises(Forbidden, match="not admitted"):
        async with open_store(third):
            pass


async def test_every_node_signs_in_turn_and_each_verifies_what_the_other_signed(tmp_path: Path, url: str) -> None:
    one, other = await joined(tmp_path, url)
    async with open_writer(one) as mine, open_writer(other) as theirs:
        for number, writer in enumerate((mine, theirs, mine, theirs)):
            await writer.dispatch.start(WORK, {"token": f"{TOKEN}-{number}"}, actor="agent:ada")
            assert await writer.checkpointer.seal() is not None
    async with open_reader(one) as look:
        keys = [sealed.key async for sealed in look.checkpoints.all()]
        assert len(set(keys)) == 2
        verdict = await look.verify(replay=True)
        assert verdict.breaks == ()
        assert verdict.checkpoints == len(keys) >= 4


async def test_a_database_that_lost_what_a_node_has_seen_is_refused(tmp_path: Path, url: str) -> None:
    one, other = await joined(tmp_path, url)
    async with open_writer(one) as writer:
        await writer.dispatch.start(WORK, {"token": TOKEN}, actor="agent:ada")
    async with open_store(other):
        pass  # it has a copy of the checkpoints now
    connection = await asyncpg.connect(url)
    await connection.execute(
        "alter table handrail.event disable trigger all; alter table handrail.checkpoint disable trigger all;"
        "delete from handrail.event where stream like 'run_%'; delete from handrail.head where stream like 'run_%';"
        "delete from handrail.step; delete from handrail.run;"
        "update handrail.lane set last = (select count(*) from handrail.event where lane = lane.id) where last > 0;"
    )
    for node in (one, other):
        with pytest.raises(IntegrityBroken, match="shorter than its last checkpoint"):
            async with open_store(node):
                pass
    await connection.execute("delete from handrail.checkpoint")
    for node in (one, other):
        with pytest.raises(IntegrityBroken, match="this node has seen checkpoint"):
            async with open_store(node):
                pass
        async with open_reader(node) as look:
            verdict = await look.verify()
            assert verdict.first_bad is not None
            assert (verdict.ok, "this node has seen checkpoint" in verdict.first_bad.reason) == (False, True)
    await connection.close()
    async with open_writer(one, compare=False) as writer:
        await writer.accept(reason="restored on purpose", actor="person:ada")
    for node in (one, other):
        async with open_reader(node) as look:
            assert (await look.verify()).ok
            (accepted,) = [
                entry.event
                for entry in await entries_of(look.store, "store")
                if isinstance(entry.event, JournalAccepted)
            ]
            assert "this node has seen checkpoint" in accepted.found
        async with open_store(node):
            pass


async def test_a_node_that_goes_on_with_a_run_removes_its_secrets_too(tmp_path: Path, url: str) -> None:
    one, other = await joined(tmp_path, url)
    async with open_writer(one) as mine:
        run = await mine.dispatch.start(WORK, {"token": TOKEN}, actor="agent:ada")
    async with open_writer(replace(other, project=one.project)) as theirs:
        said = RecordDecision(decision="use it", reason=f"the token is {TOKEN}")
        dispatch = theirs.dispatch
        dispatch.project = run.project  # what a project is on several nodes is another story
        await dispatch.grant(run.id, said, actor="agent:bob")
        records = await theirs.reader.store.read(run.id)
    assert not any(TOKEN.encode() in record.body for record in records)
    connection = await asyncpg.connect(url)
    rows = await connection.fetch("select box from handrail.run_secret")
    assert len(rows) == 2
    assert not any(TOKEN.encode() in row[0] for row in rows)
    await connection.close()


async def test_a_home_moves_into_an_empty_store_and_nothing_changes(tmp_path: Path, url: str) -> None:
    home = home_of(tmp_path, "home", "")
    async with open_writer(home) as writer:
        started = [await writer.dispatch.start(WORK, {"token": TOKEN}, actor="agent:ada") for _ in range(5)]
        source = [one.record async for batch in writer.reader.store.scan() for one in batch]
    moved = await move_home(home, url)
    assert moved.events == len(source)
    team = home_of(tmp_path, "home", url)
    async with open_reader(team) as look:
        assert (await look.verify(replay=True)).breaks == ()
        for stream in {record.stream for record in source}:
            kept = await look.store.read(stream)
            wanted = [record for record in source if record.stream == stream]
            assert kept[: len(wanted)] == wanted
    async with open_writer(team) as writer:  # its open runs keep their secrets
        said = RecordDecision(decision="use it", reason=f"the token is {TOKEN}")
        for run in started:
            await writer.dispatch.grant(run.id, said, actor="agent:ada")
            assert not any(TOKEN.encode() in record.body for record in await writer.reader.store.read(run.id))
    with pytest.raises(Conflict, match="not empty"):
        await move_home(home, url)
    async with open_store(home) as opened:  # the file is as it was
        assert [one.record async for batch in opened.store.scan() for one in batch] == source


async def test_the_password_of_the_store_is_shown_nowhere(tmp_path: Path, url: str) -> None:
    with pytest.raises(Unavailable) as failed:
        await PostgresStore.open("postgresql://eve:hunter2hunter2@127.0.0.1:1/none", busy_ms=10)
    assert "hunter2" not in f"{failed.value} {failed.value.__cause__} {failed.value.__context__!r}"
