"""Witnesses on the command line: copied at the end of a command, compared by verify, watched by doctor."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from interfaces.shell import Shell

PLAN = "id: ship\nsteps:\n  - {id: tag, tool: value.set, args: {value: 1}}\n"


def made(folder: Path, *targets: str) -> Shell:
    """A shell with a home in which these witnesses are configured."""
    shell = Shell(folder)
    shell.home.mkdir(parents=True)
    (shell.home / "config.toml").write_text(f"[witnesses]\ntargets = {json.dumps(targets)}\n")
    shell.run("plan", "save", shell.write(PLAN))
    return shell


def checks(shell: Shell) -> dict[str, dict[str, Any]]:
    reply = shell.json("doctor", "--client", "codex")
    return {check["name"]: check for check in reply["checks"]}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return made(tmp_path / "ours", f"file:{tmp_path}/seen.jsonl")


def test_a_replaced_home_verifies_by_itself_and_not_against_the_witness(shell: Shell, tmp_path: Path) -> None:
    against = ("journal", "verify", "--against", str(tmp_path / "seen.jsonl"))
    agreeing = shell.run(*against)
    assert agreeing.exit_code == 0
    assert f"witness {tmp_path}/seen.jsonl: 1 checkpoint agrees, the newest #1" in agreeing.stdout
    forged = Shell(tmp_path / "forged")
    forged.run("plan", "save", forged.write(PLAN.replace("value: 1", "value: 2")))
    for name in ("journal.db", "keys", "checkpoints"):
        shutil.rmtree(shell.home / name) if (shell.home / name).is_dir() else (shell.home / name).unlink()
        copy = shutil.copytree if (forged.home / name).is_dir() else shutil.copy
        copy(forged.home / name, shell.home / name)
    assert shell.run("journal", "verify").exit_code == 0, "key, log and database agree with each other"
    reply = shell.json(*against, code=7)
    assert reply["first_bad"]["stream"] == "witness"
    assert "the database was replaced" in reply["first_bad"]["reason"]
    assert "INTEGRITY BROKEN" in shell.run(*against).output
    assert shell.run("journal", "verify", "--against", "bundle.json", "./bundle.json").exit_code == 2


def test_doctor_tells_how_old_the_last_copy_is(shell: Shell, tmp_path: Path) -> None:
    name = f"witness file:{tmp_path}/seen.jsonl"
    check = checks(shell)[name]
    assert (check["level"], "was copied at" in check["message"]) == ("ok", True)
    assert check["message"].endswith("less than an hour ago")
    (shell.home / "checkpoints" / "witnesses.json").write_text("{}")
    (tmp_path / "seen.jsonl").unlink()
    (tmp_path / "seen.jsonl").mkdir()
    shell.run("plan", "save", shell.write(PLAN.replace("value: 1", "value: 3")))
    check = checks(shell)[name]
    assert (check["level"], "the last try failed" in check["message"]) == ("warn", True)


def test_what_could_not_be_copied_is_copied_by_the_next_command_that_opens_the_journal(tmp_path: Path) -> None:
    seen = tmp_path / "later" / "seen.jsonl"
    shell = made(tmp_path / "ours", f"file:{seen}")
    assert not seen.exists()
    seen.parent.mkdir()
    assert shell.json("journal", "checkpoint")["new"] is False, "nothing new is signed"
    assert len(seen.read_text().splitlines()) >= 1


def test_doctor_says_plainly_that_there_is_no_witness(tmp_path: Path) -> None:
    shell = made(tmp_path)
    check = checks(shell)["witnesses"]
    assert check["level"] == "warn"
    assert "can replace key, checkpoints and journal together, unseen by verify" in check["message"]
    assert "[witnesses]" in check["fix"]


def test_doctor_names_a_wrong_target(tmp_path: Path) -> None:
    shell = made(tmp_path, "file:here")
    reply = shell.json("doctor", "--client", "codex", code=1)
    (check,) = [check for check in reply["checks"] if check["name"] == "witnesses"]
    assert (check["level"], "not a whole path" in check["message"]) == ("fail", True)


def test_a_project_names_no_witness(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write(f'[witnesses]\ntargets = ["file:{tmp_path}/told.jsonl"]\n', ".handrail/config.toml")
    shell.run("plan", "save", shell.write(PLAN))
    assert not (tmp_path / "told.jsonl").exists()
