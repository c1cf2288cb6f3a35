"""Secrets from the command line: set unseen, listed without their values, removed."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from interfaces.shell import PATIENCE_S, Shell

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="a real terminal is opened in the way of POSIX")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.write('secrets_in = "file"\n', "home/config.toml")  # whatever keyring this machine has
    return shell


def test_a_secret_is_set_listed_and_removed_without_its_value_being_shown(shell: Shell) -> None:
    done = shell.run("secrets", "set", "TOKEN", "--for", "git.*", "--for", "http.request:a.example", stdin="hunter22\n")
    assert done.exit_code == 0, done.output
    assert done.stdout == (
        "TOKEN is stored in a private file (0600); plans may pass it to: git.*, http.request:a.example\n"
    )
    listed = shell.json("secrets", "list")["secrets"]
    assert [(one["name"], one["given_to"], one["kept"]) for one in listed] == [
        ("TOKEN", ["git.*", "http.request:a.example"], "file")
    ]
    assert listed[0]["set"].endswith("Z")
    words = shell.run("secrets", "list")
    assert "git.*, http.request:a.example" in words.stdout
    assert "hunter22" not in done.output + words.output + str(listed)
    assert shell.json("secrets", "remove", "TOKEN") == {"removed": "TOKEN"}
    assert shell.json("secrets", "list") == {"secrets": [], "total": 0}
    assert "handrail secrets set NAME" in shell.run("secrets", "list").stderr


def test_only_the_end_of_the_line_is_cut_off(shell: Shell) -> None:
    shell.run("secrets", "set", "KEY", stdin="  line 1\nline 2 \n")
    assert '"  line 1\\nline 2 "' in (shell.home / "keys" / "secrets.json").read_text()


def test_rights_are_changed_without_the_value(shell: Shell) -> None:
    shell.run("secrets", "set", "TOKEN", stdin="hunter22")
    assert shell.json("secrets", "set", "TOKEN", "--keep", "--for", "git.*")["given_to"] == ["git.*"]
    assert "hunter22" in (shell.home / "keys" / "secrets.json").read_text()
    assert "changes nothing" in shell.json("secrets", "set", "TOKEN", "--keep", code=5)["error"]["message"]


def test_what_is_risky_is_warned_of(shell: Shell) -> None:
    done = shell.run("secrets", "set", "KEY", "--for", "http.request", stdin="hunter22")
    assert done.exit_code == 0
    assert "warning: plans may send it to any host" in done.stderr
    assert "hunter22" not in done.output
    assert "warning: no tool and no server gets it" in shell.run("secrets", "set", "OTHER", stdin="hunter23").stderr


@pytest.mark.parametrize(
    ("words", "stdin", "code", "sign"),
    [
        (("set", "TOKEN"), "", 5, "type it at a terminal: `handrail secrets set TOKEN`"),
        (("set", "TOKEN"), "\n", 5, "stdin is empty"),
        (("set", "a b"), "hunter22", 5, "not a valid secret name"),
        (("set", "TOKEN"), "1234567", 5, "shorter than 8 characters"),
        (("set", "TOKEN"), "x" * 10_001, 1, "longer than 10,000"),
        (("set", "TOKEN"), b"\xff\xfe", 5, "not UTF-8"),
        (("set", "TOKEN", "--for", "git.*:host"), "hunter22", 5, "not a pattern of tools"),
        (("set", "TOKEN", "hunter22"), "", 2, "unexpected extra argument"),
        (("remove", "TOKEN"), "", 3, "there is no secret `TOKEN`"),
    ],
)
def test_what_does_not_fit_is_reported_with_a_way_out(
    shell: Shell, words: tuple[str, ...], stdin: str, code: int, sign: str
) -> None:
    done = shell.run("secrets", *words, stdin=stdin)
    assert done.exit_code == code, done.output
    assert sign in done.output
    assert not (shell.home / "keys" / "secrets.json").exists()


@posix_only
def test_in_a_terminal_it_is_typed_unseen(shell: Shell) -> None:
    shown = typed_at_the_prompt(shell, "secrets", "set", "TOKEN", typed="hunter22\n")
    assert "Value of TOKEN (not shown)" in shown
    assert "TOKEN is stored in" in shown
    assert "hunter22" not in shown
    assert "hunter22" in (shell.home / "keys" / "secrets.json").read_text()


def typed_at_the_prompt(shell: Shell, *words: str, typed: str) -> str:
    """All that a terminal shows of a command that is answered when it has asked."""
    import pty  # only POSIX has it

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "handrail", "--home", str(shell.home), "--project", str(shell.folder), *words]
    # A session of its own: a password must not be asked for at the terminal of whoever runs the tests.
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    try:
        shown = read_on(ours, until=b"): ")
        os.write(ours, typed.encode())
        shown += read_on(ours, until=None)
    finally:
        os.close(ours)
        process.kill()
        process.wait(timeout=PATIENCE_S)
    return shown.decode()


def read_on(terminal: int, *, until: bytes | None) -> bytes:
    """What a terminal shows until it shows this, or until the other side is gone."""
    shown, deadline = b"", time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and (until is None or until not in shown):
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                piece = os.read(terminal, 65_536)
            except OSError:  # how a terminal says that the other side is gone
                break
            if not piece:
                break
            shown += piece
    return shown
