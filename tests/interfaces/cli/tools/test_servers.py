"""Tools of servers from the command line: listed, checked and called, with a real process at the other end."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.assembly.opening import open_writer
from handrail.domain.definition.model import Category
from handrail.domain.scheduling.breaker import TRIPS_AFTER, Breaker, BreakerStatus
from handrail.engine.clock import system_clock
from handrail.engine.running.calls.breakers import Breakers
from handrail.interfaces.cli.tools.list_ import breaker_words
from handrail.interfaces.cli.words.times import TimeFormat
from handrail.settings import read_settings
from interfaces.shell import Shell

SERVER = Path(__file__).parents[2] / "branch_server.py"
UNDO = {"create_branch": {"undo": {"tool": "delete_branch", "args": {"name": "{{ args.name }}"}}}}


class Desk(Shell):
    """A shell in a project with servers."""

    def declare(self, **servers: dict[str, Any]) -> None:
        self.write(json.dumps({"mcpServers": servers}), ".handrail/tools.json")
        self.trust()

    def branches(self, **keys: Any) -> dict[str, Any]:
        return {"command": sys.executable, "args": [str(SERVER), str(self.folder / "branches")], **keys}

    @property
    def made(self) -> list[str]:
        file = self.folder / "branches"
        return file.read_text().split() if file.exists() else []


GONE: dict[str, Any] = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no licence here')"]}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_tools_of_servers_are_listed_beside_one_that_can_not_be_reached(desk: Desk) -> None:
    desk.declare(git=desk.branches(tools=UNDO, rate="10/s", timeout="9s"), gone=GONE)
    listed = desk.json("tools", "list", "--connect")
    tools = {tool["name"]: tool for tool in listed["tools"]}
    create = tools["git.create_branch"]
    assert (create["server"], create["effect"], create["undo"]) == ("git", "compensatable", "git.delete_branch")
    assert create["breaker"] == {"status": "closed"}
    assert (tools["git.list_branches"]["effect"], tools["git.delete_branch"]["effect"]) == ("none", "irreversible")
    assert tools["file.write"]["undo"] == "own"
    assert "breaker" not in tools["file.write"]
    assert "no licence here" in listed["unreachable"]["gone"]
    seen = desk.run("tools", "list", "--connect")
    assert "timeout 9s, server rate 10/s" in seen.stdout
    assert "server gone can't be reached" in seen.stderr
    assert "run `handrail tools check gone` for details" in seen.stderr
    assert seen.exit_code == 0


def test_one_server_can_be_listed_or_none_started(desk: Desk) -> None:
    desk.declare(git=desk.branches(), gone=GONE)
    assert {tool["server"] for tool in desk.json("tools", "list", "--connect", "--server", "git")["tools"]} == {"git"}
    own = desk.json("tools", "list", "--built-in")
    assert (own["unreachable"], any("server" in tool for tool in own["tools"])) == ({}, False)
    assert "no licence here" in desk.json("tools", "list", "--connect", "--server", "gone", code=8)["error"]["message"]
    assert desk.run("tools", "list", "--server", "git", "--built-in").exit_code == 2
    assert "did you mean `git`?" in desk.json("tools", "list", "--server", "gti", code=3)["error"]["hint"]


async def leave_alone(desk: Desk, *, at: int) -> None:
    """What a worker writes when a server has failed five times in a row."""
    async with open_writer(read_settings({"home": str(desk.home), "project": str(desk.folder)}, {})) as handrail:
        project = handrail.reader.project.id
        breakers = Breakers(handrail.reader.store, handrail.record_writer, "handrail", project)
        for _ in range(TRIPS_AFTER):
            await breakers.note("git", Category.TIMEOUT, "it hangs", now=at)


def test_a_breaker_that_is_open_is_listed_with_its_time(desk: Desk) -> None:
    desk.declare(git=desk.branches())
    asyncio.run(leave_alone(desk, at=system_clock()))
    tools = {tool["name"]: tool for tool in desk.json("tools", "list", "--connect")["tools"]}
    breaker = tools["git.ask"]["breaker"]
    assert (breaker["status"], breaker["reason"]) == ("open", "it hangs")
    assert f"open until {breaker['until']}" in desk.run("tools", "list", "--server", "git", "--utc").stdout


@pytest.mark.parametrize(
    ("breaker", "words"),
    [
        (None, "-"),
        (Breaker(server="git"), "closed"),
        (Breaker(server="git", status=BreakerStatus.HALF_OPEN), "half-open"),
        (Breaker(server="git", status=BreakerStatus.OPEN, until=1_000), "open, next call tries"),
        (Breaker(server="git", status=BreakerStatus.OPEN, until=3_000), "open until 1970-01-01T00:00:03Z"),
    ],
)
def test_the_state_of_a_breaker_is_said_in_words(breaker: Breaker | None, words: str) -> None:
    assert breaker_words(breaker, TimeFormat(now=2_000, is_utc=True)) == words


def test_a_journal_in_trouble_does_not_hide_the_tools(desk: Desk) -> None:
    desk.declare(git=desk.branches())
    desk.write("this is no database, and long enough to be taken for one" * 20, "home/journal.db")
    seen = desk.run("tools", "list", "--connect", "--server", "git")
    assert "git.ask" in seen.stdout
    assert "the state of the circuit breakers is unknown" in seen.stderr


def test_a_terminal_is_reported_who_is_met(desk: Desk) -> None:
    desk.declare(git=desk.branches())
    assert "connecting to git" in desk.terminal("tools", "list", "--connect", "--server", "git")


def test_a_call_shows_progress_and_needs_a_yes(desk: Desk) -> None:
    desk.declare(git=desk.branches())
    call = ("tools", "call", "git.create_branch", "-a", "name=fix")
    assert desk.json(*call, code=1)["error"]["hint"] == "add --yes to continue"
    done = desk.run(*call, "--yes")
    assert (done.stdout, desk.made) == ("made fix\n", ["fix"])
    assert "half way" in done.stderr
    assert "name" in desk.json("tools", "call", "git.create_branch", "--yes", code=5)["error"]["message"]


def test_a_call_on_a_server_that_can_not_be_reached_is_reported_so(desk: Desk) -> None:
    desk.declare(gone=GONE)
    error = desk.json("tools", "call", "gone.any", code=8)["error"]
    assert "no licence here" in error["message"]
    assert "tools check gone" in error["hint"]


def test_a_tool_that_a_server_does_not_have_is_reported_with_the_nearest(desk: Desk) -> None:
    desk.declare(git=desk.branches())
    error = desk.json("tools", "call", "git.list_branch", code=3)["error"]
    assert "did you mean `git.list_branches`?" in error["message"]
    desk.declare(git=desk.branches(deny=["ask"]))
    assert "has excluded it" in desk.json("tools", "call", "git.ask", code=1)["error"]["message"]


def test_a_question_of_a_server_is_shown_and_can_be_answered(desk: Desk) -> None:
    desk.declare(git=desk.branches())
    call = ("tools", "call", "git.ask")
    asked = desk.json(*call, code=4)
    assert asked["asks"]["text"] == "Which branch?"
    assert asked["asks"]["schema"]["required"] == ["branch"]
    words = desk.run(*call)
    assert "git.ask asks: Which branch?" in words.stderr
    assert "--answer" in words.stderr
    assert words.exit_code == 4
    assert desk.run(*call, "--answer", '{"branch": "main"}').stdout == "accept main\n"
    assert desk.run(*call, "--answer", "false").stdout == "decline\n"
    assert "--answer true" in desk.json(*call, "--answer", "main", code=5)["error"]["hint"]


def test_a_server_that_is_well_is_reported_with_what_it_says_of_itself(desk: Desk) -> None:
    desk.declare(git=desk.branches(deny=["delete_*"], tools={"create_branch": {"timeout": "3s"}}))
    checked = desk.json("tools", "check")
    (git,) = checked["servers"]
    assert (checked["ok"], git["is_reached"], git["tools"], git["left_out"]) == (True, True, 4, ["delete_branch"])
    assert "branches" in git["software"]
    assert "1.2.3" in git["software"]
    assert git["started_ms"] > 0
    assert git["version"].startswith("20")
    seen = desk.run("tools", "check", "git")
    assert (seen.exit_code, "ok" in seen.stdout) == (0, True)
    assert "excluded by allow and deny: delete_branch" in seen.stderr


def test_a_secret_in_what_a_server_says_of_itself_is_not_shown(desk: Desk) -> None:
    secret = "s3cret-Value-42!"
    desk.run("secrets", "set", "KEY", "--for", "git.*", stdin=f"{secret}\n")
    program = SERVER.read_text().replace(
        '"name": "branches", "version": "1.2.3"', f'"name": "n-{secret}", "version": "v-{secret}"'
    )
    assert secret in program
    (desk.folder / "telling.py").write_text(program)
    server = {"command": sys.executable, "args": [str(desk.folder / "telling.py"), str(desk.folder / "branches")]}
    desk.declare(git={**server, "deny": ["delete_*"], "env": {"KEY": "${secret:KEY}"}})
    for more in ((), ("--json",)):
        seen = desk.run("tools", "check", *more)
        assert (seen.exit_code, "n-[redacted]" in seen.stdout) == (0, True)
        assert secret not in seen.stdout + seen.stderr


def test_a_tool_that_a_server_lists_twice_is_not_offered_and_reported(desk: Desk) -> None:
    hostile = Path(__file__).parents[3] / "tools" / "mcp" / "hostile_server.py"
    desk.declare(odd={"command": sys.executable, "args": [str(hostile), "odd"]})
    (odd,) = desk.json("tools", "check", code=1)["servers"]
    assert odd["listed_twice"] == ["echo"]
    assert "odd: listed twice, so not offered: echo" in desk.run("tools", "check").stderr
    called = desk.run("tools", "call", "odd.echo", "--yes")
    assert called.exit_code != 0
    assert "lists `echo` twice" in called.stderr


def test_what_tools_json_says_of_nothing_that_exists_is_reported(desk: Desk) -> None:
    wrong = {"create_branch": {"undo": {"tool": "delete_branch", "args": {}}}, "list_brunches": {"timeout": "3s"}}
    desk.declare(git=desk.branches(tools=wrong))
    (git,) = desk.json("tools", "check", code=1)["servers"]
    assert len(git["misfits"]) == 2
    said = desk.run("tools", "check").stderr
    assert "did you mean `list_branches`?" in said
    assert "`delete_branch` needs the argument `name`" in said


def test_a_server_that_does_not_start_is_reported_with_its_last_words_and_its_log(desk: Desk) -> None:
    desk.declare(git=desk.branches(), gone=GONE)
    checked = desk.json("tools", "check", code=8)
    gone = next(one for one in checked["servers"] if one["server"] == "gone")
    assert "no licence here" in gone["error"]
    assert "no licence here" in Path(gone["log"]).read_text()
    assert [one["server"] for one in checked["servers"] if one["is_reached"]] == ["git"]
    seen = desk.run("tools", "check", "gone")
    assert "gone can't be reached" in seen.stderr
    assert gone["log"] in seen.stderr
    assert seen.exit_code == 8


def test_all_secrets_that_are_missing_are_named_at_once(desk: Desk) -> None:
    desk.declare(git=desk.branches(env={"A": "${secret:FIRST}", "B": "${secret:SECOND}", "C": "${env:NO_SUCH_WORD}"}))
    (git,) = desk.json("tools", "check", code=8)["servers"]
    assert [name for name in ("FIRST", "SECOND", "NO_SUCH_WORD") if name in json.dumps(git["missing"])] == [
        "FIRST",
        "SECOND",
        "NO_SUCH_WORD",
    ]
    assert "handrail secrets set SECOND" in desk.run("tools", "check").stderr


def test_without_servers_there_is_nothing_to_check(desk: Desk) -> None:
    assert desk.json("tools", "check") == {"ok": True, "servers": []}
    assert "no servers declared" in desk.run("tools", "check").stderr
    assert "no server 'git' is declared" in desk.json("tools", "check", "git", code=3)["error"]["message"]


def test_validate_knows_the_tools_of_a_server_that_was_asked_once_and_starts_none(desk: Desk) -> None:
    desk.declare(git=desk.branches())
    good = desk.write("{id: p, steps: [{id: a, tool: git.create_branch, args: {name: x}, effect: none}]}", "good.yaml")
    bad = desk.write(
        "id: p\nsteps:\n  - {id: a, tool: git.create_brnch, effect: none}\n"
        "  - {id: b, tool: git.delete_branch, args: {nmae: x}, effect: none}\n",
        "bad.yaml",
    )
    strange = desk.write("{id: p, steps: [{id: a, tool: hub.make, effect: none}]}", "strange.yaml")
    reply = desk.json("workflow", "validate", bad)
    assert [one["rule"] for one in reply["findings"]] == ["unasked_server", "unasked_server"], "nothing was started"
    desk.json("tools", "check", "git")
    desk.declare(git=desk.branches(env={"NEW": "1"}))
    assert desk.json("workflow", "validate", good)["findings"] == []
    for words in (("workflow", "validate"), ("plan", "check")):
        reply = desk.json(*words, bad, code=5)
        places = [(one["rule"], one["at"]["line"], one["at"]["column"]) for one in reply["findings"]]
        assert places == [("unknown_tool", 3, 19), ("arguments", 4, 44)]
        assert "create_branch" in reply["findings"][0]["fix"]
        [finding] = desk.json(*words, strange, code=5)["findings"]
        assert "no tool server `hub` is configured" in finding["message"]
    for name in (desk.home / "cache" / "server-tools").iterdir():
        name.write_text("no JSON", encoding="utf-8")
    assert desk.json("workflow", "validate", bad)["findings"][0]["rule"] == "unasked_server", "a cache may be lost"
