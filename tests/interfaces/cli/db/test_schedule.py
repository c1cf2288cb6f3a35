"""Backups on a schedule: made by servers and workers, rotated, and watched by doctor."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.assembly.backups import schedule, taking
from handrail.assembly.backups.register import BackupRegister
from handrail.assembly.backups.schedule import back_up_if_due, keeping_schedule, rules_of, state_of
from handrail.domain.errors import Invalid
from handrail.interfaces.health.home_checks import backups_of
from handrail.settings import Settings, read_settings
from handrail.storage.file_lock import locked
from interfaces.shell import Shell, until

PLAN = "id: ship\nsteps:\n  - {id: tag, tool: value.set, args: {value: 1}}\n"
DAY_MS = 86_400_000


class Calendar:
    """A clock that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_790_000_000_000
        for module in (schedule, taking):
            monkeypatch.setattr(module, "system_clock", lambda: self.now)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path / "ours")
    shell.configure(f'[backup]\nto = "{tmp_path}/backups"\ndaily = 2\nweekly = 0\nmonthly = 0\n')
    shell.run("run", "start", shell.write(PLAN))
    return shell


def settings_of(shell: Shell) -> Settings:
    return read_settings({"home": str(shell.home), "project": str(shell.folder)}, {})


def doctor(shell: Shell) -> dict[str, Any]:
    """What doctor says about backups; the whole command starts servers, too."""
    found: dict[str, Any] = msgspec.to_builtins(backups_of(settings_of(shell)))
    return found


async def test_a_backup_is_made_when_it_is_due_and_old_ones_are_removed(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    calendar, settings = Calendar(monkeypatch), settings_of(shell)
    made = []
    for _ in range(4):
        backup = await back_up_if_due(settings)
        assert backup is not None
        assert backup.proof.value == "verified"
        made.append(backup.id)
        assert await back_up_if_due(settings) is None, "not before the day is over"
        calendar.now += DAY_MS
    folders = sorted((shell.folder.parent / "backups").iterdir())
    assert [folder.name.removeprefix("handrail-") for folder in folders] == made[2:]
    assert [one.id for one in BackupRegister(settings.home).all()] == [made[3], made[2]]


async def test_a_clock_that_was_set_back_does_not_stopbackups_of(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    calendar, settings = Calendar(monkeypatch), settings_of(shell)
    await back_up_if_due(settings)
    calendar.now -= 400 * DAY_MS
    assert await back_up_if_due(settings) is not None


async def test_one_of_several_processes_makes_it(shell: Shell) -> None:
    settings = settings_of(shell)
    with locked(settings.home / schedule.LOCK):
        assert await back_up_if_due(settings) is None
    assert await back_up_if_due(settings) is not None


def test_backups_made_by_hand_and_unfinished_ones_of_others_stay(shell: Shell, tmp_path: Path) -> None:
    by_hand = shell.json("db", "backup", str(tmp_path / "by-hand"))["backup"]
    settings = settings_of(shell)
    (tmp_path / "backups" / ".handrail-young.part").mkdir(parents=True)
    schedule._rotate(settings, rules_of(settings) or pytest.fail("there is a schedule"))
    assert Path(by_hand).exists()
    assert (tmp_path / "backups" / ".handrail-young.part").exists()


async def test_a_schedule_that_fails_is_logged_and_stops_nothing(
    shell: Shell, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "backups").write_text("a file is in the way")
    async with keeping_schedule(settings_of(shell)):
        await _until_logged(caplog, "the backup failed")


async def _until_logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    async with asyncio.timeout(30):
        while text not in caplog.text:
            await asyncio.sleep(0.01)


def test_the_whole_command_shows_it(shell: Shell) -> None:
    result = shell.run("doctor", "--client", "codex", "--json")
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert "there is none" in checks["backups"]["message"]


def test_a_worker_keeps_the_schedule(shell: Shell) -> None:
    with shell.process("worker") as worker:
        known = until(lambda: [one for one in shell.json("db", "backups")["backups"] if one["proof"] == "verified"])
        worker.kill()
    assert Path(known[0]["folder"]).is_dir()


def test_doctor_shows_age_and_proof_of_the_newest(shell: Shell, tmp_path: Path) -> None:
    assert (doctor(shell)["level"], "there is none" in doctor(shell)["message"]) == ("warn", True)
    folder = shell.json("db", "backup", str(tmp_path / "backups"))["backup"]
    assert (doctor(shell)["level"], doctor(shell)["message"]) == (
        "warn",
        "the newest is less than an hour old, not verified",
    )
    shell.json("db", "verify", folder)
    assert (doctor(shell)["level"], doctor(shell)["message"]) == (
        "ok",
        "the newest is less than an hour old, verified",
    )
    register = shell.home / "backups.json"
    known = json.loads(register.read_text())
    known[0]["at"] -= 3 * DAY_MS
    register.write_text(json.dumps(known))
    check = doctor(shell)
    assert (check["level"], check["message"]) == ("warn", "the newest is 3 days old, verified: that is too old")
    known[0]["proof"] = "broken"
    register.write_text(json.dumps(known))
    assert doctor(shell)["level"] == "fail"
    register.write_text("{")
    assert doctor(shell)["level"] == "fail"


def test_a_home_without_a_journal_has_nothing_to_back_up(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert doctor(shell)["message"] == "there is nothing to back up yet"
    assert state_of(settings_of(shell)).is_overdue


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("", "`to`"),
        ('to = "relative"', "not a whole path"),
        ('to = "/b"\nevery = "1s"', "too often"),
        ('to = "/b"\nevery = "often"', "every"),
        ('to = "/b"\ndayly = 3', "no key `dayly`"),
        ('to = "/b"\ndaily = 0', "daily"),
        ("to = 3", "to"),
    ],
)
def test_a_schedule_that_is_wrong_is_refused_with_its_reason(shell: Shell, table: str, reason: str) -> None:
    shell.configure(f"[backup]\n{table}\n")
    with pytest.raises(Invalid, match=reason):
        rules_of(settings_of(shell))
    assert doctor(shell)["level"] == "fail"


def test_a_project_can_not_set_a_schedule(shell: Shell) -> None:
    shell.write('[backup]\nto = "/elsewhere"\n', ".handrail/config.toml")
    assert "a project may not set [backup]" in shell.run("run", "list").output
