"""`handrail logs`: the lines of all processes of a home, filtered, and followed while they are written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from interfaces.http.live_console import serving
from interfaces.metrics.load import COMPLETES, FAILS
from interfaces.shell import Shell, until


def line(at: str, level: str = "info", message: str = "x", **more: Any) -> str:
    return json.dumps({"at": at, "level": level, "from": "handrail.x", "message": message, **more}) + "\n"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    logs = shell.home / "logs"
    logs.mkdir(parents=True)
    (logs / "handrail-2026-01-01.jsonl").write_text(
        line("2026-01-01T10:00:00.000Z", message="first", run="run_a")
        + "this is no line of ours\n[1, 2]\n"
        + line("2026-01-01T11:00:00.000Z", "error", "second", run="run_b", trace="ValueError\n  at y")
    )
    (logs / "handrail-2026-01-01.1.jsonl").write_text(line("2026-01-01T12:00:00.000Z", "warning", "third", run="run_a"))
    (logs / "handrail-2026-01-02.jsonl").write_text(line("2026-01-02T10:00:00.000Z", "debug", "fourth"))
    return shell


def messages(shell: Shell, *words: str) -> list[str]:
    # Each command logs as well: only what was there before is looked at.
    shown = shell.run("logs", "--json", "--until", "2026-02-01T00:00:00Z", *words)
    assert shown.exit_code == 0, shown.output
    return [json.loads(one)["message"] for one in shown.stdout.splitlines()]


def test_lines_come_in_order_over_days_and_parts_and_what_is_no_line_is_left_out(shell: Shell) -> None:
    assert messages(shell) == ["first", "second", "third", "fourth"]
    assert messages(shell, "--limit", "2") == ["third", "fourth"]


def test_they_are_filtered_by_run_level_and_time(shell: Shell) -> None:
    assert messages(shell, "--run", "run_a") == ["first", "third"]
    assert messages(shell, "--level", "warning") == ["second", "third"]
    assert messages(shell, "--since", "2026-01-01T11:00:00Z") == ["second", "third", "fourth"]
    assert messages(shell, "--since", "2026-01-01T12:00:00+01:00", "--run", "run_b") == ["second"]
    assert messages(shell, "--until", "2026-01-01T10:30:00Z") == ["first"]
    assert messages(shell, "--since", "1h") == []


def test_people_read_text_and_a_time_that_is_none_is_refused(shell: Shell) -> None:
    shown = shell.run("logs", "--until", "2026-02-01T00:00:00Z", "--run", "run_b").stdout
    assert shown == "2026-01-01T11:00:00.000Z error   second\n    ValueError\n      at y  (run=run_b)\n"
    refused = shell.run("logs", "--since", "yesterday")
    assert refused.exit_code == 2
    assert "is neither 30m, 12h, 7d ... nor a time" in refused.stderr


def test_a_process_that_follows_sees_what_another_writes(tmp_path: Path) -> None:
    with (
        serving(tmp_path) as console,
        console.shell.process("logs", "--follow", "--json", "--since", "1m") as following,
    ):
        run = console.started(COMPLETES)
        seen: list[dict[str, Any]] = []

        def is_seen() -> bool:
            seen.append(json.loads(following.line()))
            return "call of file.write" in seen[-1]["message"] and seen[-1]["run"] == run

        until(is_seen)
        call = seen[-1]
        assert call["message"] == "call of file.write: ok"
        assert (call["step"], call["attempt"], call["level"]) == ("write", 1, "info")
        assert call["project"].startswith("prj_")
        assert call["process"] != os.getpid()
        assert call["duration_ms"] >= 0


def test_failed_calls_refusals_and_refused_sign_ins_are_logged(tmp_path: Path) -> None:
    with serving(tmp_path) as console:
        run = console.started(FAILS)
        with console.nobody(authorization="Bearer " + "x" * 43) as stranger:
            assert stranger.get("/api/v1/runs").status_code == 401
        with console.nobody() as stranger:
            stranger.get("/enter?ticket=nothing")
        with console.script() as script:
            assert script.get("/api/v1/runs/run_nothere1").status_code == 404
        shown = console.shell.run("logs", "--json", "--level", "info").stdout.splitlines()
        lines = [json.loads(one) for one in shown]
        said = {(one["message"], one.get("run", "")) for one in lines}
        assert ("call of file.read: not_found", run) in said
        assert ("GET /api/v1/runs refused: 401 forbidden", "") in said
        assert ("GET /api/v1/runs/run_nothere1 refused: 404 not_found", "run_nothere1") in said
        assert ("a sign-in was refused: its link is unknown, used or too old", "") in said
        assert not any("x" * 20 in one for one in shown)  # what was tried is not logged
