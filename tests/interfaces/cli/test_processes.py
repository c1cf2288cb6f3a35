"""Runs and real processes: killed, stopped, watched and answered from elsewhere; and what a terminal shows."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from interfaces.shell import Shell, until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and terminals as POSIX knows them")

SLOW = """\
id: slow
steps:
  - {id: first, tool: file.write, args: {path: first.txt, text: a}}
  - {id: nap, tool: wait.for, args: {duration: 4s}}
  - {id: last, tool: file.append, args: {path: last.txt, text: b}}
"""
ASKING = """\
id: asking
steps:
  - {id: go, approve: 'Go on?'}
  - {id: write, tool: file.write, args: {path: done.txt, text: a}}
"""
POSTING = """\
id: posting
inputs: {url: {type: string}}
steps:
  - {id: post, tool: http.request, args: {method: POST, url: '{{ inputs.url }}'}}
  - {id: keep, tool: value.set, args: {value: '{{ steps.post.output.json.id }}'}}
outputs: {id: steps.keep.output}
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def status(shell: Shell, run: str, *words: str) -> Any:
    return json.loads(shell.run("run", "show", run, *words, "--json").stdout)


@contextmanager
def a_server_that_never_answers() -> Iterator[tuple[int, threading.Event]]:
    """Its port, and whether somebody has asked it."""
    asked = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                asked.set()
                connection.recv(65_536)  # until the other side is gone

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1], asked
        thread.join(timeout=10)


def test_a_killed_run_is_picked_up_by_the_next_worker_and_nothing_is_done_twice(shell: Shell) -> None:
    with shell.process("run", "start", shell.write(SLOW)) as starting:
        run = starting.line()
        until((shell.folder / "first.txt").exists)
        until(lambda: status(shell, run)["progress"]["done"] >= 1)
        starting.kill()
    assert status(shell, run)["status"] == "running"
    with shell.process("worker", "--until-idle") as worker:
        code, out, err = worker.end()
    assert (code, out) == (0, ""), err
    assert f"{run} picked up: slow" in err
    assert f"{run} completed" in err
    assert (shell.folder / "last.txt").read_text() == "b"
    assert shell.json("journal", "verify", "--replay")["ok"]


def test_ctrl_c_lets_a_run_go_says_how_to_go_on_and_resume_does(shell: Shell) -> None:
    with shell.process("run", "start", shell.write(SLOW)) as starting:
        run = starting.line()
        until(lambda: status(shell, run)["progress"]["done"] >= 1)
        starting.send(signal.SIGINT)
        code, _, err = starting.end()
    assert code == 128 + signal.SIGINT
    assert f"handrail run resume {run}" in err
    assert "Traceback" not in err
    with shell.process("run", "resume", run, "--json") as resuming:
        code, out, err = resuming.end()
    assert (code, json.loads(out)["status"]) == (0, "completed"), err


def test_a_run_is_answered_from_another_process_while_a_worker_is_there(shell: Shell) -> None:
    with shell.process("worker") as worker:
        run = shell.run("run", "start", shell.write(ASKING), "--detach").stdout.splitlines()[0]
        until(lambda: status(shell, run)["status"] == "waiting")
        with shell.process("run", "watch", run) as watching:
            code, out, err = watching.end()
        assert (code, "approval requested: Go on?" in out) == (4, True), err
        with shell.process("approve", run, "--reason", "yes", "--json", *shell.seen(run)) as approving:
            code, out, err = approving.end()
        assert (code, json.loads(out)["status"]) == (0, "completed"), err
        assert (shell.folder / "done.txt").exists()
        worker.send(signal.SIGTERM)
        code, _, err = worker.end()
    assert code == 0, err
    assert "worker stopped" in err


def test_a_run_that_a_living_worker_executes_is_watched_and_not_taken(shell: Shell) -> None:
    with shell.process("worker") as worker:
        until(lambda: list((shell.home / "workers").glob("*.lock")))
        started = shell.run("run", "start", shell.write(SLOW), "--detach")
        assert "no process executes it" not in started.stderr
        run = started.stdout.splitlines()[0]
        until(lambda: status(shell, run)["progress"]["done"] >= 1)
        assert shell.json("run", "resume", run, code=6)["error"]["hint"] == f"`handrail run watch {run}`"
        with shell.process("run", "watch", run, "--json") as watching:
            code, out, err = watching.end()
        assert (code, json.loads(out)["status"]) == (0, "completed"), err
        lines = [line[10:] for line in err.splitlines()]
        assert len(lines) == len(set(lines)), "no line is printed twice"
        assert "last: completed" in lines
        worker.send(signal.SIGINT)
        code, _, err = worker.end()
    assert code == 0, err
    steps = status(shell, run, "--full")["steps"]
    assert {step["by"].partition(":")[0] for step in steps} == {"worker"}


def test_a_call_that_was_cut_off_is_uncertain_until_somebody_accepts_it_with_its_output(shell: Shell) -> None:
    with a_server_that_never_answers() as (port, asked):
        shell.write(f'[http]\nallow = ["127.0.0.1:{port}"]\n', ".handrail/config.toml")
        shell.trust()
        url = f"url=http://127.0.0.1:{port}/"
        with shell.process("run", "start", shell.write(POSTING), "-i", url) as starting:
            run = starting.line()
            assert asked.wait(timeout=20)
            starting.kill()
    shell.run("worker", "--until-idle")
    reply = status(shell, run)
    assert (reply["status"], reply["failure"]["step"]) == ("waiting", "post")
    assert "category" not in reply["failure"]
    assert [one["action"] for one in reply["failure"]["options"]] == ["retry", "accept", "skip", "cancel"]
    accepted = shell.json("run", "accept", run, "--reason", "it is on the server", "--output", '{"json": {"id": 7}}')
    assert (accepted["status"], accepted["outputs"]) == ("completed", {"id": 7})


def test_in_a_terminal_a_run_is_a_live_picture(shell: Shell) -> None:
    shown = shell.terminal("run", "start", shell.write(SLOW), "--watch")
    assert "\x1b[" in shown, "it moves and has colours"
    for sign in ("✔ first", "waiting", "running", "━", "run completed", "3 of 3 steps done"):
        assert sign in shown, sign
    assert "waiting for" in shown


def test_a_terminal_without_unicode_or_colour_gets_neither(shell: Shell) -> None:
    plain = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "NO_COLOR": "1"}
    shown = shell.terminal("run", "start", shell.write(ASKING), "--watch", **plain)
    assert shown.isascii()
    assert "~ go" in shown
    assert not any(f"\x1b[{code}m" in shown for code in (31, 32, 33, 36))


def test_a_picture_of_many_steps_fits_the_terminal(shell: Shell) -> None:
    steps = "\n".join(f"  - {{id: s{number}, tool: value.set, args: {{value: 1}}}}" for number in range(200))
    many = f"id: many\nsteps:\n{steps}\n  - {{id: go, approve: 'Go on?'}}\n"
    shown = shell.terminal("run", "start", shell.write(many), "--watch", LINES="20")
    assert "and 1" in shown
    assert "go" in shown.split("\x1b[2K")[-1]
