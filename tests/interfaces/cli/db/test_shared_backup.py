"""Backups of a journal in PostgreSQL: one snapshot, verified in a throw-away database, restored into an empty one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest

from handrail.domain.errors import Conflict, HandrailError
from handrail.storage.postgres.address import Address
from handrail.storage.postgres.dump import PostgresDump
from handrail.storage.postgres.store import PostgresStore
from interfaces.fleet import Machine, machines
from storage.postgres.databases import new_database, session_of
from storage.postgres.server import server_url

LOOP = """\
id: busy
steps:
  - id: loop
    repeat: {times: 5, max: 5}
    steps:
      - {id: tick, tool: value.set, args: {value: 1}}
"""


def databases(folder: Path) -> list[str]:
    async def names() -> list[str]:
        connection = await asyncpg.connect(server_url(session_of(folder)) % "postgres")
        try:
            rows = await connection.fetch("select datname from pg_database where datname like 'handrail_verify%'")
            return [row[0] for row in rows]
        finally:
            await connection.close()

    return asyncio.run(names())


@pytest.fixture
def fleet(tmp_path: Path) -> list[Machine]:
    one, two = machines(tmp_path, "one", "two")
    one.run("run", "start", one.write(LOOP))
    one.json("db", "era")
    two.run("run", "start", two.write(LOOP))
    return [one, two]


def test_a_shared_journal_is_backed_up_verified_and_restored(fleet: list[Machine], tmp_path: Path) -> None:
    one, _ = fleet
    made = one.json("db", "backup", str(tmp_path / "backups"))
    names = sorted(file.name for file in Path(made["backup"]).iterdir())
    assert names == ["home.tar.gz", "journal.tar.gz", "keys.tar.gz", "manifest.json"]
    verdict = one.json("db", "verify", made["backup"])
    assert (verdict["ok"], verdict["events"], verdict["breaks"]) == (True, made["events"], [])
    assert databases(tmp_path) == [], "the throw-away database is gone"
    other = Machine(tmp_path / "new", asyncio.run(new_database(tmp_path, "restored")))
    home = tmp_path / "restored-home"
    other.json("db", "restore", made["backup"], str(home))
    other.home = home
    assert other.run("journal", "verify", "--replay").exit_code == 0
    kinds = [event["kind"] for event in other.json("journal", "show", "store")["events"]]
    assert kinds[-1] == "store_restored"
    other.at = one.folder
    assert other.run("run", "start", one.write(LOOP)).exit_code == 0, "it goes on"
    assert other.run("journal", "verify", "--replay").exit_code == 0


def test_a_journal_is_never_restored_over_another(fleet: list[Machine], tmp_path: Path) -> None:
    one, _ = fleet
    backup = one.json("db", "backup", str(tmp_path / "backups"))["backup"]
    refused = one.json("db", "restore", backup, str(tmp_path / "new"), code=6)
    assert "has a journal already" in refused["error"]["message"]
    assert not (tmp_path / "new").exists()
    assert one.run("journal", "verify").exit_code == 0


def test_without_a_server_it_is_not_verified(fleet: list[Machine], tmp_path: Path) -> None:
    one, _ = fleet
    backup = one.json("db", "backup", str(tmp_path / "backups"))["backup"]
    one.url = ""
    verdict = one.json("db", "verify", backup, code=8)
    assert (verdict["proof"], "no server is named" in verdict["reason"]) == ("could not be verified", True)
    assert one.run("db", "restore", backup, str(tmp_path / "new")).exit_code == 8
    moment = ("--until", "2026-01-01T00:00:00Z")
    assert one.run("db", "restore", backup, str(tmp_path / "new"), *moment).exit_code == 5


def test_a_backup_of_a_changed_database_does_not_verify(fleet: list[Machine], tmp_path: Path) -> None:
    one, _ = fleet

    async def tamper() -> None:
        connection = await asyncpg.connect(one.url)
        try:
            await connection.execute("alter table handrail.event disable trigger event_stays")
            await connection.execute("update handrail.event set actor = 'person:eve' where kind = 'run_started'")
        finally:
            await connection.close()

    asyncio.run(tamper())
    backup = one.json("db", "backup", str(tmp_path / "backups"))["backup"]
    assert one.json("db", "verify", backup, code=7)["proof"] == "broken"
    assert databases(tmp_path) == []


def test_a_dump_is_loaded_whole_or_not_at_all(fleet: list[Machine], tmp_path: Path) -> None:
    one, _ = fleet
    folder = tmp_path / "dump"
    folder.mkdir()
    asyncio.run(PostgresDump(Address(one.url)).dump(folder))
    (folder / "head.copy").write_bytes((folder / "head.copy").read_bytes()[:-30])
    target = asyncio.run(new_database(tmp_path, "half"))
    with pytest.raises(HandrailError):
        asyncio.run(PostgresDump(Address(target)).load(folder))

    async def count() -> int:
        async with await PostgresStore.open(target) as store:
            return (await store.end()).events

    assert asyncio.run(count()) == 0
    with pytest.raises(Conflict):
        asyncio.run(PostgresDump(Address(one.url)).load(folder))
