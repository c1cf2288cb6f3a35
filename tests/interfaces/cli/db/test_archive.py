"""Archived runs on the command line: they leave, are read all the same, come back, or are deleted for a reason; and
backups, restores, copies and salvage go on with them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from interfaces.shell import Shell

PLAN = "id: ship\nsteps:\n  - {id: tag, tool: value.set, args: {value: 1}}\n"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Three runs that have ended."""
    shell = Shell(tmp_path / "ours")
    for _ in range(3):
        shell.run("run", "start", shell.write(PLAN))
    return shell


def runs_of(shell: Shell) -> list[str]:
    """In the order in which they started: ids are drawn."""
    runs = shell.json("run", "list", "--all")["runs"]
    return [run["run"] for run in sorted(runs, key=lambda run: str(run["started"]))]


def exported(shell: Shell, run: str) -> str:
    return shell.run("journal", "export", run).stdout


def verified(shell: Shell) -> dict[str, Any]:
    """What a whole verification with replay finds; it must be intact."""
    found: dict[str, Any] = shell.json("journal", "verify", "--replay")
    assert (found["ok"], found["breaks"]) == (True, [])
    return found


def files_of(shell: Shell) -> list[Path]:
    return sorted((shell.home / "archives").glob("*"))


def test_an_archived_run_is_shown_and_comes_back_byte_for_byte(shell: Shell) -> None:
    one, other, _ = runs_of(shell)
    before, events = exported(shell, one), verified(shell)["events"]
    done = shell.json("db", "archive", one, other)
    assert (done["runs"], len(done["archives"]), done["left_alone"]) == (2, 1, [])
    assert runs_of(shell) == runs_of(shell)
    assert verified(shell)["events"] == events + 1
    shown = shell.json("run", "show", one)
    assert (shown["status"], shown["archived"]["archive"]) == ("completed", done["archives"][0]["archive"])
    assert "archived: its events were read from" in shell.run("journal", "show", one).output
    assert exported(shell, one) == before
    listed = shell.json("db", "list")["runs"]
    assert {line["run"] for line in listed} == {one, other}
    assert Path(listed[0]["file"]).is_file()
    assert shell.json("db", "unarchive", one)["runs"] == [one]
    assert exported(shell, one) == before
    assert "archived" not in shell.json("run", "show", one)
    assert [line["run"] for line in shell.json("db", "list")["runs"]] == [other]
    verified(shell)


def test_a_file_goes_when_all_of_its_runs_are_back(shell: Shell) -> None:
    one, other, _ = runs_of(shell)
    shell.json("db", "archive", one, other)
    shell.json("db", "unarchive", one)
    assert len(files_of(shell)) == 1
    shell.json("db", "unarchive", other)
    assert files_of(shell) == []


def test_only_ended_runs_are_archived(shell: Shell) -> None:
    shell.run("run", "start", shell.write("id: guided\nsteps:\n  - {id: think, prompt: Think.}\n"))
    (open_run,) = [run["run"] for run in shell.json("run", "list")["runs"]]
    result = shell.run("db", "archive", open_run)
    assert result.exit_code == 6
    assert "has not ended" in result.output
    assert shell.run("db", "archive", "run_nobodyxx").exit_code == 6


def test_old_runs_are_selected_by_time_workflow_and_outcome(shell: Shell) -> None:
    assert shell.json("db", "archive", "--older-than", "1h", "--dry-run")["runs"] == []
    assert shell.run("db", "archive", "--older-than", "1m").exit_code == 5, "too short"
    assert shell.run("db", "archive", "--workflow", "ship").exit_code == 2
    assert shell.run("db", "archive").exit_code == 5, "nothing says which runs are old"


def test_a_deletion_needs_a_reason_and_leaves_who_and_why(shell: Shell) -> None:
    one, other, _ = runs_of(shell)
    shell.json("db", "archive", one, other)
    assert shell.run("db", "archive", "--delete", one, "--yes").exit_code == 2
    assert shell.run("db", "archive", "--delete", one, "--reason", "a person asked").exit_code == 1, "nobody said yes"
    before = exported(shell, other)
    gone = shell.json("db", "archive", "--delete", one, "--reason", "a person asked", "--yes")
    assert gone["deleted"] == [one]
    (line,) = shell.json("db", "list", "--deleted")["runs"]
    assert (line["run"], line["deleted_because"], line["archive"]) == (one, "a person asked", "")
    assert line["deleted_by"].startswith("person:")
    result = shell.run("run", "show", one)
    assert result.exit_code == 6
    assert "were deleted" in result.output
    assert exported(shell, other) == before, "the others of the file stay"
    assert len(files_of(shell)) == 1
    assert one in runs_of(shell), "its row stays"
    verified(shell)
    assert shell.run("db", "unarchive", one).exit_code == 6
    assert shell.run("journal", "rebuild").exit_code in (0, 2)


def test_an_archive_that_is_missing_or_changed_breaks_the_verification(shell: Shell) -> None:
    one, _, _ = runs_of(shell)
    shell.json("db", "archive", one)
    (file,) = files_of(shell)
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    found = shell.json("journal", "verify", code=7)
    assert "it was changed" in found["breaks"][0]["reason"]
    file.unlink()
    assert shell.json("journal", "verify", code=7)["breaks"][0]["stream"] == "archives"
    assert shell.run("run", "show", one).exit_code == 7
    file.write_bytes(whole)
    verified(shell)


@pytest.mark.parametrize(
    "script",
    [
        "delete from removed_event where n = 1",
        "update removed_event set hash = x'00' where n = 2",
        "delete from tombstone",
        "delete from event where stream = (select max(id) from run)",
        """insert into tombstone (stream, n, head, archive, first, last)
           select stream, max(n), x'00', 'arc_forged', min(seq), max(seq) from event
           where stream = (select max(id) from run) group by stream;
           insert into removed_event select seq, 99, n, hash from event where stream = (select max(id) from run);
           update removed_event set tombstone = (select max(number) from tombstone) where tombstone = 99;
           delete from event where stream = (select max(id) from run)""",
    ],
    ids=["a hash removed", "a hash changed", "a tombstone removed", "events removed", "archived without an event"],
)
def test_what_is_left_of_archived_runs_can_not_be_changed_unseen(shell: Shell, script: str) -> None:
    shell.json("db", "archive", runs_of(shell)[0])
    verified(shell)
    shell.execute(script)
    assert shell.run("journal", "verify").exit_code == 7


def test_nothing_goes_on_in_an_archived_run(shell: Shell) -> None:
    shell.run("run", "start", shell.write("id: guided\nsteps:\n  - {id: think, prompt: Think.}\n"))
    (run,) = [run["run"] for run in shell.json("run", "list")["runs"]]
    shell.run("run", "cancel", run, "--reason", "enough")
    shell.json("db", "archive", run)
    result = shell.run("run", "compensate", run, "--reason", "undo it")
    assert result.exit_code == 6
    assert f"handrail db unarchive {run}" in result.output


def test_a_backup_has_the_archives_and_a_restored_home_reads_them(shell: Shell) -> None:
    one, other, _ = runs_of(shell)
    before = exported(shell, one)
    shell.json("db", "archive", one, other)
    shell.json("db", "archive", "--delete", other, "--reason", "asked", "--yes")
    made = shell.json("db", "backup", str(shell.folder / "backups"))
    assert shell.json("db", "verify", made["backup"])["ok"]
    restored = Shell(shell.folder)
    restored.home = shell.folder / "restored"
    shell.json("db", "restore", made["backup"], str(restored.home))
    shutil.rmtree(shell.home)
    assert exported(restored, one) == before
    verified(restored)
    restored.json("db", "unarchive", one)
    verified(restored)


def test_a_moment_before_the_archiving_has_the_runs_in_the_journal(shell: Shell) -> None:
    one, other, last = runs_of(shell)
    before = exported(shell, one)
    shell.json("db", "archive", one)
    until = shell.json("journal", "show", "store")["events"][-1]["at"]
    shell.run("run", "start", shell.write(PLAN))
    shell.json("db", "archive", other)
    made = shell.json("db", "backup", str(shell.folder / "backups"))
    for number, moment in enumerate((f"{last}:4", f"{one}:4", until)):
        restored = Shell(shell.folder)
        restored.home = shell.folder / f"restored-{number}"
        shell.json("db", "restore", made["backup"], str(restored.home), "--until", moment)
        verified(restored)
        assert exported(restored, one) == before
        archived = [line["run"] for line in restored.json("db", "list")["runs"]]
        assert archived == ([one] if moment == until else [])


def test_salvage_brings_archived_runs_back_into_the_journal(shell: Shell) -> None:
    one, other, _ = runs_of(shell)
    before = exported(shell, one)
    shell.json("db", "archive", one, other)
    salvaged = Shell(shell.folder)
    salvaged.home = shell.folder / "salvaged"
    report = shell.json("db", "salvage", str(salvaged.home), "--reason", "the disk failed")
    assert report["lost"] == []
    assert exported(salvaged, one) == before
    assert salvaged.json("db", "list")["runs"] == []
    verified(salvaged)


def test_the_sizes_of_a_home_are_shown_with_what_bounds_them(shell: Shell) -> None:
    shell.json("db", "archive", runs_of(shell)[0])
    found = shell.json("db", "size")
    assert (found["store"]["archived"], found["store"]["archived_runs"]) == (4, 1)
    parts = {part["name"]: part for part in found["parts"]}
    assert parts["archives"]["files"] == 1
    assert parts["journal"]["bytes"] > 0
    assert all(part["bound"] for part in parts.values())
    assert "1 run archived" in shell.run("db", "size").output
