"""Backups on the command line: made under load, verified by restoring them, restored whole or up to a moment."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from handrail.assembly.backups import taking
from handrail.storage.backups.sqlite_copy import copy_of, counts_of
from interfaces.shell import Shell

PLAN = """\
id: ship
steps:
  - {id: tag, tool: value.set, args: {value: 1}}
  - {id: write, tool: file.write, args: {path: out.txt, text: second}}
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path / "ours")
    shell.write("first", "out.txt")
    shell.run("run", "start", shell.write(PLAN))
    return shell


def backup(shell: Shell, *words: str) -> Path:
    return Path(shell.json("db", "backup", str(shell.folder / "backups"), *words)["backup"])


def restored(shell: Shell, folder: Path, *words: str) -> Shell:
    """A shell in the same project, with the home that was restored."""
    other = Shell(shell.folder)
    other.home = shell.folder / "restored"
    shell.json("db", "restore", str(folder), str(other.home), *words)
    return other


def rewrite(folder: Path, **changes: Any) -> None:
    """Change the manifest of a backup, without a key to sign it."""
    signed = json.loads((folder / "manifest.json").read_text())
    signed["manifest"].update(changes)
    (folder / "manifest.json").write_text(json.dumps(signed, separators=(",", ":")) + "\n")


def test_a_backup_is_verified_and_restored_and_work_goes_on(shell: Shell) -> None:
    folder = backup(shell)
    assert sorted(file.name for file in folder.iterdir()) == [
        "home.tar.gz",
        "journal.db.gz",
        "keys.tar.gz",
        "manifest.json",
    ]
    verdict = shell.json("db", "verify", str(folder))
    assert (verdict["ok"], verdict["proof"], verdict["is_own"]) == (True, "verified", True)
    shutil.rmtree(shell.home)
    other = restored(shell, folder)
    assert other.run("journal", "verify", "--replay").exit_code == 0
    (run,) = other.json("run", "list", "--all")["runs"]
    assert run["status"] == "completed"
    events = other.json("journal", "show", "store")["events"]
    assert [event["kind"] for event in events] == ["store_created", "store_restored"]
    assert events[1]["data"]["events"] == verdict["events"]
    assert other.run("run", "start", other.write(PLAN)).exit_code == 0
    assert other.run("journal", "verify", "--replay").exit_code == 0


def test_an_undo_finds_in_a_restored_home_what_it_needs(shell: Shell) -> None:
    fails = f"{PLAN}  - {{id: read, tool: file.read, args: {{path: missing.txt}}}}\n".replace("second", "third")
    shell.run("run", "start", shell.write(fails))
    assert (shell.folder / "out.txt").read_text() == "third"
    (run,) = shell.json("run", "list")["runs"]
    other = restored(shell, backup(shell))
    shutil.rmtree(shell.home)
    answer = other.run("run", "compensate", run["run"], "--reason", "not wanted")
    assert (shell.folder / "out.txt").read_text() == "second", answer.output


def test_an_existing_home_is_never_changed(shell: Shell) -> None:
    folder = backup(shell)
    before = (shell.home / "journal.db").read_bytes()
    refused = shell.json("db", "restore", str(folder), str(shell.home), code=6)
    assert "restored into a new home only" in refused["error"]["message"]
    (shell.folder / "a-file").write_text("x")
    shell.json("db", "restore", str(folder), str(shell.folder / "a-file"), code=6)
    assert (shell.home / "journal.db").read_bytes() == before
    empty = shell.folder / "empty"
    (empty / "logs").mkdir(parents=True)
    assert shell.json("db", "restore", str(folder), str(empty))["events"] > 0
    assert (empty / "journal.db").exists()


def test_a_backup_that_could_not_be_verified_is_never_green(shell: Shell, tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.write_text("correct horse battery\n")
    words.chmod(0o600)
    folder = backup(shell, "--passphrase-file", str(words))
    verdict = shell.json("db", "verify", str(folder), code=8)
    assert (verdict["ok"], verdict["proof"], verdict["hint"]) == (
        False,
        "could not be verified",
        "give --passphrase-file",
    )
    assert shell.json("db", "backups")["backups"][0]["proof"] == "could not be verified"
    assert shell.json("db", "verify", str(folder), "--passphrase-file", str(words))["ok"] is True
    assert shell.json("db", "backups")["backups"][0]["proof"] == "verified"
    assert shell.run("db", "verify", str(tmp_path)).exit_code == 3
    text = shell.run("db", "verify", str(folder))
    assert (text.exit_code, "NOT VERIFIED" in text.output) == (8, True)


def test_an_encrypted_backup_is_restored_by_its_recipient_only(shell: Shell, tmp_path: Path) -> None:
    public = shell.json("db", "recipient", str(tmp_path / "ada.key"))["recipient"]
    shell.json("db", "recipient", str(tmp_path / "eve.key"))
    folder = backup(shell, "--recipient", public)
    assert b"SQLite" not in (folder / "journal.db.gz.sealed").read_bytes()
    to = str(tmp_path / "new")
    assert shell.run("db", "restore", str(folder), to, "--key-file", str(tmp_path / "eve.key")).exit_code == 1
    assert not Path(to).exists()
    assert shell.json("db", "restore", str(folder), to, "--key-file", str(tmp_path / "ada.key"))["keys"] is True


@pytest.mark.parametrize("name", ["journal.db.gz", "home.tar.gz", "keys.tar.gz", "manifest.json"])
def test_any_changed_file_of_a_backup_is_found(shell: Shell, name: str) -> None:
    folder = backup(shell)
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    verdict = shell.json("db", "verify", str(folder), code=7)
    assert (verdict["ok"], verdict["proof"]) == (False, "broken")
    assert shell.run("db", "restore", str(folder), str(shell.folder / "new")).exit_code == 7
    assert not (shell.folder / "new").exists()
    assert not list(shell.folder.glob(".*.part"))


def test_a_manifest_that_was_edited_is_found_by_its_signature(shell: Shell) -> None:
    folder = backup(shell)
    rewrite(folder, checkpoints=99)
    assert "signature" in shell.json("db", "verify", str(folder), code=7)["reason"]


def test_a_backup_of_a_journal_that_was_changed_does_not_verify(shell: Shell) -> None:
    shell.execute("update event set actor = 'person:eve' where seq = 3")
    verdict = shell.json("db", "verify", str(backup(shell)), code=7)
    assert verdict["breaks"][0]["n"] >= 1
    assert "hash" in verdict["reason"]


def test_only_the_named_key_is_accepted(shell: Shell, tmp_path: Path) -> None:
    other = Shell(tmp_path / "other")
    other.run("run", "start", other.write(PLAN))
    folder = backup(other)
    assert shell.json("db", "verify", str(folder))["is_own"] is False
    assert "not the key of this home" in shell.run("db", "verify", str(folder)).output
    own = str(shell.home / "keys" / "journal.pub")
    assert shell.json("db", "verify", str(folder), "--signed-by", own, code=7)["proof"] == "broken"
    assert shell.run("db", "restore", str(folder), str(tmp_path / "new"), "--signed-by", own).exit_code == 7
    assert shell.json("db", "verify", str(backup(shell)), "--signed-by", own)["ok"] is True


def test_keys_that_are_stored_elsewhere_can_be_given(shell: Shell, tmp_path: Path) -> None:
    folder = backup(shell)
    apart = tmp_path / "safe.tar.gz"
    shutil.move(folder / "keys.tar.gz", apart)
    assert shell.json("db", "verify", str(folder))["ok"] is True
    without = shell.json("db", "restore", str(folder), str(tmp_path / "without"))
    assert without["keys"] is False
    other = Shell(shell.folder)
    other.home = tmp_path / "without"
    assert other.run("run", "start", other.write(PLAN)).exit_code == 7, "nothing is signed by a new key unasked"
    given = shell.json("db", "restore", str(folder), str(tmp_path / "with"), "--keys", str(apart))
    assert given["keys"] is True


def test_a_restore_stops_at_an_event_or_an_instant(shell: Shell) -> None:
    first = shell.json("run", "list", "--all")["runs"][0]["run"]
    events = shell.json("journal", "show", first)["events"]
    shell.run("run", "start", shell.write(PLAN))
    folder = backup(shell)
    other = restored(shell, folder, "--until", f"{first}:{events[-1]['n']}")
    (run,) = other.json("run", "list", "--all")["runs"]
    assert (run["run"], run["status"]) == (first, "completed")
    assert other.run("journal", "verify", "--replay").exit_code == 0
    at_instant = shell.folder / "at-instant"
    shell.json("db", "restore", str(folder), str(at_instant), "--until", events[-1]["at"])
    other.home = at_instant
    assert [run["run"] for run in other.json("run", "list", "--all")["runs"]] == [first]
    note = other.json("journal", "show", "store")["events"][-1]
    assert (note["kind"], note["data"]["until"]) == ("store_restored", events[-1]["at"])
    assert other.run("journal", "verify", "--replay").exit_code == 0
    assert other.run("run", "start", other.write(PLAN)).exit_code == 0


def test_a_moment_that_the_backup_does_not_have_restores_nothing(shell: Shell) -> None:
    folder, to = backup(shell), str(shell.folder / "new")
    assert shell.run("db", "restore", str(folder), to, "--until", "run_nothere:1").exit_code == 3
    assert shell.run("db", "restore", str(folder), to, "--until", "2001-01-01T00:00:00Z").exit_code == 3
    assert shell.run("db", "restore", str(folder), to, "--until", "yesterday").exit_code == 5
    assert not Path(to).exists()


def test_what_was_erased_later_stays_erased_in_an_earlier_state(shell: Shell) -> None:
    first = shell.json("run", "list", "--all")["runs"][0]["run"]
    last = shell.json("journal", "show", first)["events"][-1]["n"]
    erased = shell.run("journal", "erase", first, "1", "--reason", "a name", "--yes")
    assert erased.exit_code == 0, erased.output
    other = restored(shell, backup(shell), "--until", f"{first}:{last}")
    assert other.run("journal", "verify", "--replay").exit_code == 0
    kinds = [event["kind"] for event in other.json("journal", "show", "store")["events"]]
    assert kinds == ["store_created", "store_restored", "payload_erased"]


def test_what_is_signed_while_the_journal_is_copied_is_not_in_the_backup(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = shell.write(PLAN)

    def slow_copy(*args: Any, **kwargs: Any) -> int:
        schema = copy_of(*args, **kwargs)
        with shell.process("run", "start", plan) as other:
            assert other.end()[0] == 0
        return schema

    monkeypatch.setattr(taking, "copy_of", slow_copy)
    verdict = shell.json("db", "verify", str(backup(shell)))
    assert (verdict["ok"], verdict["breaks"]) == (True, [])


def test_a_journal_that_is_not_the_one_of_its_manifest_does_not_verify(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "counts_of", lambda file: replace(counts_of(file), events=99))
    folder = backup(shell)
    verdict = shell.json("db", "verify", str(folder), code=7)
    assert "the manifest has events 99" in verdict["reason"]
    assert shell.run("db", "restore", str(folder), str(shell.folder / "new")).exit_code == 7
    assert not (shell.folder / "new").exists()


def test_a_checkpoint_that_is_just_being_written_is_left_out(shell: Shell) -> None:
    with (shell.home / "checkpoints" / "log.jsonl").open("ab") as log:
        log.write(b'{"checkpoint":{"format":1,"num')
    assert shell.json("db", "verify", str(backup(shell)))["ok"] is True


def test_a_backup_that_fails_leaves_nothing(shell: Shell) -> None:
    target = shell.folder / "backups"
    target.write_text("a file")
    assert shell.run("db", "backup", str(target)).exit_code == 8
    target.unlink()
    target.mkdir()
    (shell.home / "keys" / "journal.key").chmod(0o644)
    assert shell.run("db", "backup", str(target)).exit_code == 1
    assert list(target.iterdir()) == []
    empty = Shell(shell.folder / "nothing")
    empty.folder.mkdir()
    assert empty.run("db", "backup", str(target)).exit_code == 3


def test_a_backup_inside_the_home_is_not_backed_up_into_the_next(shell: Shell) -> None:
    sizes = [shell.json("db", "backup", str(shell.home / "backups"))["bytes"] for _ in range(3)]
    assert sizes[2] < 1.5 * sizes[0]


def test_a_damaged_home_is_salvaged_and_work_goes_on(shell: Shell) -> None:
    shell.run("run", "start", shell.write(PLAN))
    with (shell.home / "journal.db").open("r+b") as file:  # the head of the file: SQLite reads nothing of it any more
        file.write(bytes(100))
    assert shell.run("run", "list").exit_code == 7
    target = shell.folder / "salvaged"
    assert shell.run("db", "salvage", str(target)).exit_code == 2, "a reason is needed"
    report = shell.json("db", "salvage", str(target), "--reason", "the disk failed")
    assert (report["lost"], report["definitions"]) == ([], 1)
    other = Shell(shell.folder)
    other.home = target
    assert len(other.json("run", "list", "--all")["runs"]) == 2
    assert other.run("run", "start", other.write(PLAN)).exit_code == 0
    assert other.run("journal", "verify", "--replay").exit_code == 0
    assert "salvaged and verified" in shell.run("db", "salvage", f"{target}2", "--reason", "again").output
