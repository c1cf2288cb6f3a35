"""Upgrades of a journal: shown first, backed up, applied whole, refused backwards, and never half."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from handrail.domain.errors import Unavailable
from handrail.settings import read_settings
from handrail.storage.sqlite.migration import shipped
from handrail.storage.sqlite.store import SqliteStore
from interfaces.shell import Shell
from storage.stories import Story
from stores_from_before import store_from_before

PLAN = "id: ship\nsteps:\n  - {id: tag, tool: value.set, args: {value: 1}}\n"
NEWEST = shipped()[-1].number
KILLS = 6


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path / "ours")
    shell.folder.mkdir()
    settings = read_settings({"home": str(shell.home), "project": str(shell.folder)}, {})
    asyncio.run(store_from_before(settings, PLAN))
    return shell


def schema(file: Path) -> int:
    with closing(sqlite3.connect(file)) as database:
        return int(database.execute("select max(number) from migration").fetchone()[0])


def from_the_future(file: Path) -> None:
    """What a newer handrail does to a journal."""
    with closing(sqlite3.connect(file)) as database:
        database.execute("alter table plan rename to plan_of_tomorrow")
        database.execute("insert into migration values (99, 'later', 'digest', 1)")
        database.commit()


def test_a_dry_run_shows_what_would_be_applied_and_changes_nothing(shell: Shell) -> None:
    plan = shell.json("db", "migrate", "--dry-run")
    assert (plan["schema"], plan["newest"]) == (2, NEWEST)
    assert [(one["number"], one["name"]) for one in plan["pending"]] == [
        (one.number, one.name) for one in shipped()[2:]
    ]
    assert schema(shell.home / "journal.db") == 2
    assert "schema 3: projects" in shell.run("db", "migrate", "--dry-run").output
    assert not (shell.home / "backups").exists()


def test_an_upgrade_is_backed_up_applied_and_verified(shell: Shell) -> None:
    done = shell.json("db", "migrate")
    assert schema(shell.home / "journal.db") == NEWEST
    manifest = json.loads((Path(done["backup"]) / "manifest.json").read_text())["manifest"]
    assert manifest["schema"] == 2, "from before the upgrade"
    assert shell.json("db", "verify", done["backup"])["ok"] is True
    assert shell.run("journal", "verify", "--replay").exit_code == 0
    again = shell.json("db", "migrate")
    assert (again["pending"], again["backup"]) == ([], "")
    assert "up to date" in shell.run("db", "migrate").output


def test_a_backup_can_be_left_out_or_put_elsewhere(shell: Shell, tmp_path: Path) -> None:
    assert shell.run("db", "migrate", "--no-backup", "--backup", str(tmp_path)).exit_code == 2
    assert schema(shell.home / "journal.db") == 2
    assert shell.json("db", "migrate", "--backup", str(tmp_path / "there"))["backup"].startswith(
        str(tmp_path / "there")
    )


def test_opening_a_journal_keeps_the_file_from_before(shell: Shell) -> None:
    (shell.home / "journal.db.schema-1").write_bytes(b"from an upgrade long ago")
    assert shell.run("run", "list").exit_code == 0
    kept = [file.name for file in shell.home.glob("journal.db.schema-*")]
    assert kept == ["journal.db.schema-2"]
    before = shell.home / "journal.db.schema-2"
    assert (schema(before), before.stat().st_mode & 0o777) == (2, 0o600)
    assert schema(shell.home / "journal.db") == NEWEST
    backup = shell.json("db", "backup", str(shell.folder / "backups"))["backup"]
    shell.json("db", "restore", backup, str(shell.folder / "new"))
    assert not (shell.folder / "new" / "journal.db.schema-2").exists(), "a backup has the journal once"


def test_a_journal_that_can_not_be_copied_is_not_upgraded(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("handrail.storage.sqlite.file.keep_before_upgrade", full)
    assert shell.run("run", "list").exit_code != 0
    assert schema(shell.home / "journal.db") == 2


def test_a_downgrade_is_refused_with_the_way_back(shell: Shell) -> None:
    shell.run("run", "list")
    from_the_future(shell.home / "journal.db")
    before = (shell.home / "journal.db").read_bytes()
    for words in (("run", "list"), ("db", "migrate"), ("run", "start", shell.write(PLAN))):
        refused = shell.json(*words, code=8)["error"]
        assert f"schema 99; this one knows {NEWEST}" in refused["message"]
        assert "update handrail" in refused["hint"]
        assert "docs/operations/upgrade.md" in refused["hint"]
    assert (shell.home / "journal.db").read_bytes() == before


async def test_an_old_process_that_is_still_up_refuses_to_write_after_an_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with await SqliteStore.open(path) as old:
        story = Story()
        await old.append(*story.tell())
        from_the_future(path)
        later = story.tell()
        with pytest.raises(Unavailable, match="newer handrail"):
            await old.append(*later)
        with pytest.raises(Unavailable, match="newer handrail"):
            await old.beat("w-old")
        with pytest.raises(Unavailable, match="newer handrail") as refused:
            await old.plans()
        assert type(refused.value) is Unavailable, "the file is not damaged"
        assert len(await old.read("run_a")) == 1


def test_an_upgrade_that_is_killed_at_any_point_is_done_by_the_next(shell: Shell) -> None:
    draw = random.Random(7)
    for _ in range(KILLS):
        with shell.process("db", "migrate") as process:
            time.sleep(draw.uniform(0.2, 2.5))
            process.kill()
        assert schema(shell.home / "journal.db") in range(2, NEWEST + 1)
    shell.json("db", "migrate")
    assert schema(shell.home / "journal.db") == NEWEST
    assert shell.run("journal", "verify", "--replay").exit_code == 0
    for backup in (shell.home / "backups").glob("handrail-*"):
        assert shell.json("db", "verify", str(backup))["ok"] is True
