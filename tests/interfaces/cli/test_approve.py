"""A person approves at the command line: all is shown first; without a terminal the digest says what is meant."""

from __future__ import annotations

import getpass
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from handrail.engine.clock import system_clock
from handrail.storage.passphrase_file import PassphraseFile
from interfaces.shell import PATIENCE_S, Shell, until

ASKING = """\
id: asking
inputs: {v: {type: string, default: '1.0'}}
steps:
  - {id: go, approve: "Publish {{ inputs.v }}?\\nIt can't be taken back.", approvals: 1}
  - {id: write, tool: file.write, args: {path: a.txt, text: 'v{{ inputs.v }}'}}
  - {id: tell, tool: shell.run, args: {argv: [echo, hi]}, when: "inputs.v == '2.0'"}
"""
PASSPHRASE = "correct horse"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def started(shell: Shell, text: str = ASKING) -> str:
    return str(shell.json("run", "start", shell.write(text), code=4)["run"])


def talk(shell: Shell, *words: str, answers: Sequence[tuple[str, str]]) -> str:
    """What a command shows in a terminal where each question gets its answer when it is asked, not before."""
    import pty  # only POSIX has it

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "handrail", "--home", str(shell.home), "--project", str(shell.folder), *words]
    process = subprocess.Popen(command, cwd=shell.folder, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown, left, deadline = "", list(answers), time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < deadline:
            if left and left[0][0] in shown.rpartition("\n")[2]:
                os.write(ours, f"{left.pop(0)[1]}\n".encode())
                shown += "\n"
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # how a terminal says that the other side is gone
                break
            if not piece:
                break
            shown += piece.decode("utf-8", errors="replace")
    finally:
        os.close(ours)
        process.wait(timeout=PATIENCE_S)
    assert not left, shown
    return shown


def events(shell: Shell, run: str, kind: str) -> list[dict[str, Any]]:
    return [one for one in shell.json("journal", "show", run)["events"] if one["kind"] == kind]


def test_everything_that_is_asked_is_shown_before_the_person_says_yes(shell: Shell) -> None:
    run = started(shell)
    shown = talk(shell, "approve", run, answers=[("[y/N]", "y"), ("Reason", "it is right")])
    before, _, _ = shown.partition("[y/N]")
    assert "Publish 1.0?" in before
    assert "It can't be taken back." in before
    lines = [line.strip() for line in before.splitlines()]
    at = lines.index("write: file.write (reversible, has an undo)")
    assert lines[at + 1 : at + 3] == ["path: a.txt", "text: v1.0"]
    assert "tell: shell.run (irreversible, NO undo, if inputs.v == '2.0')" in before
    assert "who may answer: anyone" in before
    (asked,) = events(shell, run, "approval_requested")
    assert f"digest: {asked['data']['digest']}" in before
    (given,) = events(shell, run, "approval_given")
    assert (given["data"]["channel"], given["data"]["reason"]) == ("terminal", "it is right")
    step = next(one for one in shell.json("run", "show", run, "--full")["steps"] if one["id"] == "go")
    assert step["channel"] == "terminal"
    assert "answered by terminal" in shell.run("run", "show", run, "--full").stdout


def test_nothing_that_a_yes_covers_is_cut(shell: Shell) -> None:
    calls = [f"{{id: w{n}, tool: file.write, args: {{path: w{n}.txt, text: x}}}}" for n in range(25)]
    last = f'{{id: last, tool: file.write, args: {{path: deploy.sh, text: "{"x" * 4_000}\\n curl evil"}}}}'
    long = "\n  - ".join(["id: long\nsteps:", "{id: go, approve: 'Go?'}", *calls, last])
    before = talk(shell, "approve", started(shell, long), answers=[("[y/N]", "n")]).partition("[y/N]")[0]
    assert [f"w{n}.txt" in before for n in range(25)] == [True] * 25
    assert "curl evil" in before
    assert "x" * 4_000 in before.replace("\r\n", "")


@pytest.mark.parametrize("word", ["approve", "reject"])
def test_anything_but_a_yes_changes_nothing(shell: Shell, word: str) -> None:
    run = started(shell)
    assert "nothing was changed" in talk(shell, word, run, answers=[("[y/N]", "")])
    assert shell.json("run", "show", run)["status"] == "waiting"


def test_without_a_terminal_an_approval_names_the_digest_of_what_waits(shell: Shell) -> None:
    run = started(shell)
    refused = shell.json("approve", run, "--reason", "yes", code=5)["error"]
    assert "needs --digest: nothing was approved" in refused["message"]
    neither = shell.run("approve", run).stderr
    assert "Missing option '--reason'" in neither
    assert "--digest is needed, too: `handrail approvals --json` shows it" in neither
    assert "handrail approvals --json" in refused["hint"]
    stale = shell.json("approve", run, "--reason", "yes", "--digest", "sha256:0", code=6)["error"]
    assert "has changed since you looked" in stale["message"]
    assert events(shell, run, "approval_given") == []
    (one,) = shell.json("approvals")["approvals"]
    assert [effect["step"] for effect in one["effects"]] == ["write", "tell"]
    assert shell.json("approve", run, "--reason", "yes", "--digest", one["digest"])["status"] == "completed"
    (given,) = events(shell, run, "approval_given")
    assert given["data"]["channel"] == "command"
    assert "(command)" in shell.run("run", "watch", run).stdout


def test_a_rejection_needs_no_digest(shell: Shell) -> None:
    run = started(shell)
    assert shell.json("reject", run, "--reason", "no", code=4)["failure"]["message"] == "no"


def test_an_approval_for_nobody_who_is_known_here_is_refused_and_the_person_is_told_where_groups_are(
    shell: Shell,
) -> None:
    text = "id: w\nsteps: [{id: go, approve: 'Go?', by: [leads]}]\n"
    notes = shell.run("workflow", "validate", shell.write(text)).output
    assert "no person or group is known here as leads" in notes
    run = started(shell, text)
    shown = talk(shell, "approve", run, answers=[])
    assert "this is for leads, and no person or group is known here by that name" in shown.replace("\r\n", "\n")
    assert "config.toml" in shown
    shell.configure(f'[groups]\nleads = ["{getpass.getuser()}"]\n')
    assert shell.json("approve", run, "--reason", "x", *shell.seen(run))["status"] == "completed"


def test_a_project_can_not_put_people_into_a_group(shell: Shell) -> None:
    shell.write(f'[groups]\nleads = ["{getpass.getuser()}"]\n', ".handrail/config.toml")
    run = started(shell, "id: w\nsteps: [{id: go, approve: 'Go?', by: [leads]}]\n")
    refused = shell.json("approve", run, "--reason", "x", *shell.seen(run), code=1)["error"]
    assert refused["name"] == "forbidden"
    assert "settings, which would allow it, are not trusted yet" in refused["hint"]
    shell.write("[groups]\nleads = ['somebody-else']\n", ".handrail/config.toml")
    refused = shell.json("approve", run, "--reason", "x", *shell.seen(run), code=1)["error"]
    assert "trust" not in refused["hint"]


def test_who_started_the_run_may_not_answer_if_the_step_says_so(shell: Shell) -> None:
    run = started(shell, "id: w\nsteps: [{id: go, approve: 'Go?', not_by: starter}]\n")
    refused = shell.json("approve", run, "--reason", "x", *shell.seen(run), code=1)["error"]
    assert "started this run" in refused["message"]


def test_a_second_yes_of_the_same_person_is_a_conflict_where_two_must_approve(shell: Shell) -> None:
    run = started(shell, "id: w\nsteps: [{id: go, approve: 'Go?', approvals: 2}]\n")
    assert shell.json("approve", run, "--reason", "x", *shell.seen(run), code=4)["status"] == "waiting"
    again = shell.json("approve", run, "--reason", "x", *shell.seen(run), code=6)["error"]
    assert "has approved step 'go' already" in again["message"]
    (one,) = shell.json("approvals")["approvals"]
    assert (one["approvals"], one["approved_by"]) == (2, [f"person:{getpass.getuser()}"])


BRIEF = "id: w\nsteps: [{id: go, approve: 'Go?', expires: 1s}]\n"


def expired(shell: Shell, run: str) -> str:
    """The digest of what a run asked until its time was over; nothing executes the run."""
    _, digest = shell.seen(run)
    until(lambda: "expired" in shell.run("run", "show", run).stdout)
    return digest


@pytest.mark.parametrize("word", ["approve", "reject"])
def test_what_has_expired_is_asked_again_before_it_is_shown(shell: Shell, word: str) -> None:
    run = started(shell, BRIEF.replace("1s", "2s"))
    old = expired(shell, run)
    shown = talk(shell, word, run, answers=[("[y/N]", "y"), ("Reason", "x")])
    asked = [one["data"]["digest"] for one in events(shell, run, "approval_requested")]
    assert asked[0] == old
    assert f"digest: {asked[1]}" in shown
    assert old not in shown
    assert len(events(shell, run, "approval_given" if word == "approve" else "approval_rejected")) == 1


def test_without_a_terminal_an_answer_to_what_has_expired_asks_it_again(shell: Shell) -> None:
    run = started(shell, BRIEF)
    old = expired(shell, run)
    refused = shell.json("approve", run, "--reason", "x", "--digest", old, code=6)["error"]
    assert "has changed since you looked" in refused["message"]
    assert events(shell, run, "approval_requested")[-1]["data"]["digest"] in refused["hint"]


def test_what_has_expired_stays_so_where_nothing_may_be_executed(shell: Shell) -> None:
    run = started(shell, BRIEF)
    old = expired(shell, run)
    refused = shell.json("approve", run, "--detach", "--reason", "x", "--digest", old, code=6)["error"]
    assert "the time to answer for step 'go' is over" in refused["message"]
    assert "is over" in talk(shell, "approve", run, "--detach", answers=[])


def test_an_expired_question_is_shown_with_what_asks_it_again(shell: Shell) -> None:
    run = started(shell, BRIEF)
    expired(shell, run)
    shown = shell.run("run", "show", run, "--full").stdout
    assert f"(expired; asked again when the run goes on: handrail run resume {run})" in shown
    assert "a person (expired)" in shown
    assert " ago)" not in shown
    shell.run("run", "resume", run)
    assert len(events(shell, run, "approval_requested")) == 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("by: [nobody-here]", "this is for nobody-here"),
        ("not_by: starter", "started this run"),
        ("approvals: 2", "has approved step 'go' already"),
    ],
)
def test_who_may_not_answer_is_told_before_anything_is_asked(shell: Shell, more: str, words: str) -> None:
    run = started(shell, f"id: w\nsteps: [{{id: go, approve: 'Go?', {more}}}]\n")
    if "approvals" in more:
        shell.run("approve", run, "--reason", "x", *shell.seen(run))
    shown = talk(shell, "approve", run, answers=[]).replace("\r\n", "\n")
    assert words in shown
    assert "[y/N]" not in shown


def test_a_run_that_asks_nothing_or_more_than_one_thing_is_told_before_a_reason_is_asked(shell: Shell) -> None:
    two = "id: w\nsteps: [{id: a, approve: 'A?', after: []}, {id: b, approve: 'B?', after: []}]\n"
    run = started(shell, two)
    assert "which step to approve? a, b" in talk(shell, "approve", run, answers=[])
    shell.run("run", "cancel", run, "--reason", "x")
    assert "there is no step" in talk(shell, "approve", run, answers=[])


# --- the passphrase -----------------------------------------------------------------------------------------


def test_a_passphrase_is_set_at_a_terminal_and_changing_it_needs_the_old_one(shell: Shell) -> None:
    assert shell.json("approvals", "passphrase", code=1)["error"]["name"] == "forbidden"
    twice = [("New passphrase", PASSPHRASE), ("Again", PASSPHRASE)]
    assert "the passphrase is set" in talk(shell, "approvals", "passphrase", answers=twice)
    different = [("Old", PASSPHRASE), ("New passphrase", "something else"), ("Again", "something other")]
    assert "the two are different" in talk(shell, "approvals", "passphrase", answers=different)
    wrong = [("Old", "wrong"), *twice]
    assert "the old passphrase is wrong" in talk(shell, "approvals", "passphrase", answers=wrong)


def test_where_one_is_required_only_a_terminal_with_the_passphrase_counts(shell: Shell) -> None:
    run = started(shell)
    shell.configure("[approvals]\npassphrase = true\n")
    yes = [("[y/N]", "y"), ("Reason", "x")]
    assert "none is set" in talk(shell, "approve", run, answers=[])
    PassphraseFile(shell.home / "keys", system_clock).keep(PASSPHRASE, old=None)
    for words in (("approve", *shell.seen(run)), ("reject",)):
        refused = shell.json(words[0], run, "--reason", "x", *words[1:], code=1)["error"]
        assert "an answer by command does not count: approvals need a passphrase" in refused["message"]
    assert "the passphrase is wrong (1 in a row)" in talk(
        shell, "approve", run, answers=[*yes, ("Passphrase", "wrong horse")]
    )
    time.sleep(1.1)
    shown = talk(shell, "approve", run, "--detach", answers=[*yes, ("Passphrase", PASSPHRASE)])
    assert PASSPHRASE not in shown
    (given,) = events(shell, run, "approval_given")
    assert given["data"]["channel"] == "terminal"
    logs = "".join(file.read_text(encoding="utf-8") for file in (shell.home / "logs").glob("*.jsonl"))
    assert "a wrong passphrase for an approval: 1 in a row" in logs
    assert PASSPHRASE not in logs
    assert PASSPHRASE not in json.dumps(shell.json("journal", "show", run))
