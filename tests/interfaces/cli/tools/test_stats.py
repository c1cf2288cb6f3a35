"""`handrail tools stats`: the figures of real runs, in words and as data, after all processes have ended."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from handrail.engine.reading import tool_stats as tool_figures
from handrail.interfaces.cli.tools import stats as tools_stats
from interfaces.shell import Shell

PLAN = """
id: a-plan
on_failure: compensate
steps:
  - {id: write, tool: file.write, args: {path: a.txt, text: one}}
  - {id: read, tool: file.read, args: {path: a.txt}}
  - {id: miss, tool: file.read, args: {path: missing.txt}}
"""
ASK = """
id: asking
steps:
  - {id: ask, tool: http.request, args: {url: 'http://127.0.0.1:9/'}, retry: {attempts: 5, first: 1ms, max: 1ms}}
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def reply(shell: Shell) -> Shell:
    """A shell in whose project a plan has run, failed and was undone."""
    assert shell.run("run", "start", shell.write(PLAN)).exit_code == 9
    return shell


def test_a_run_that_was_undone_is_reported_tool_by_tool(reply: Shell) -> None:
    answered = reply.json("tools", "stats")
    tools = {(one["tool"], one.get("undo", False)): one for one in answered["tools"]}
    assert {name: one["calls"] for name, one in tools.items()} == {
        ("file.read", False): 2,
        ("file.write", False): 1,
        ("file.write", True): 1,
    }
    assert tools["file.read", False]["failures"] == {"not_found": 1}
    assert tools["file.write", False]["p50_ms"] <= tools["file.write", False]["p99_ms"]
    assert re.fullmatch(r"20\d\d-.*Z", tools["file.write", True]["last"])
    assert (answered["is_cut"], answered["unread"], answered["unlisted"]) == (False, 0, 0)
    words = reply.run("tools", "stats").stdout
    assert "file.write (undo)" in words
    assert "1 not_found" in words


def test_one_tool_or_one_server_can_be_asked_for(reply: Shell) -> None:
    assert {one["tool"] for one in reply.json("tools", "stats", "file.read")["tools"]} == {"file.read"}
    assert {one["tool"] for one in reply.json("tools", "stats", "file")["tools"]} == {"file.read", "file.write"}
    nothing = reply.run("tools", "stats", "file.raed")
    assert "did you mean `file.read`?" in nothing.stderr
    assert nothing.exit_code == 0


def test_a_time_can_be_asked_for(reply: Shell) -> None:
    assert reply.json("tools", "stats", "--since", "1h")["tools"]
    assert "no calls in that time" in reply.run("tools", "stats", "--since", "0s").stderr
    refused = reply.json("tools", "stats", "--since", "a week", code=5)["error"]
    assert "7d" in refused["hint"] or "1d" in refused["hint"]


def test_without_a_journal_there_is_nothing_to_tell(shell: Shell) -> None:
    assert shell.json("tools", "stats") == {
        "tools": [],
        "total": 0,
        "servers": [],
        "events": 0,
        "is_cut": False,
        "unread": 0,
        "unlisted": 0,
    }
    assert not (shell.home / "journal.db").exists()


def test_a_server_that_was_left_alone_is_reported_with_when_why_and_how_long(shell: Shell) -> None:
    shell.write('[http]\nallow = ["127.0.0.1"]\n', ".handrail/config.toml")
    shell.trust()
    assert shell.run("run", "start", shell.write(ASK)).exit_code == 4
    (server,) = shell.json("tools", "stats")["servers"]
    (outage,) = server["outages"]
    assert outage["openings"] == 1
    assert outage["failures"] == 5
    assert outage["reason"]
    assert outage["lasted_ms"] >= 0
    assert re.fullmatch(r"20\d\d-.*Z", outage["until"])
    words = shell.run("tools", "stats", server["server"], "--utc").stdout
    assert f"open until {outage['until']}" in words


def test_what_was_left_out_is_said(reply: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    async def with_notes(store: tool_figures.FiguresStore, **_: object) -> tool_figures.ToolReport:
        return tool_figures.ToolReport(tools=(), servers=(), events=7, is_cut=True, unread=2, unlisted=3)

    monkeypatch.setattr(tools_stats, "tool_figures", with_notes)
    said = reply.run("tools", "stats").stderr
    assert "only the latest 7 events" in said
    assert "2 events could not be read" in said
    assert "3 calls of further tools are not listed" in said
