"""`handrail doctor`: servers as clients start them, and what handrail keeps on this machine."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.health import judgement
from handrail.domain.health.check import CheckLevel
from handrail.engine.clock import system_clock
from handrail.interfaces.cli.program import COMMANDS
from handrail.interfaces.clients import launch as launching
from handrail.interfaces.clients import probe
from handrail.interfaces.clients.client import CLIENTS, Client, Scope
from handrail.interfaces.clients.configured import configured
from handrail.interfaces.clients.entry import with_entry
from handrail.interfaces.clients.launch import LaunchCommand
from handrail.interfaces.clients.server_checks import check_server
from handrail.interfaces.health import home_checks
from handrail.settings import read_settings
from handrail.storage.passphrase_file import PassphraseFile
from interfaces.clients.desk import Desk
from interfaces.clients.fake_server import TOOLS
from interfaces.clients.samples import ALL, broken, furnished, place_id
from interfaces.shell import Shell
from outside.debian import bubblewrap

FAKE = Path(__file__).with_name("fake_server.py")
OURS = version("handrail")
CLAUDE, CODEX, VSCODE, OPENCODE = CLIENTS["claude"], CLIENTS["codex"], CLIENTS["vscode"], CLIENTS["opencode"]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


def fake(manner: str = "well", *more: str, said: str = OURS, env: dict[str, str] | None = None) -> LaunchCommand:
    return LaunchCommand(sys.executable, (str(FAKE), manner, said, *more), env or {})


def examined(desk: Desk, *words: str, code: int = 0) -> dict[str, Any]:
    result = desk.run("doctor", *words, "--json")
    assert result.exit_code == code, result.output
    reply: dict[str, Any] = json.loads(result.stdout)
    return reply


def level_of(reply: dict[str, Any], name: str) -> list[str]:
    return [check["level"] for check in reply["checks"] if check["name"] == name]


async def test_a_server_that_is_well_is_timed_and_counted_in_both_eras() -> None:
    server = await check_server("it", fake(), {})
    assert set(server.answers) == {"modern", "legacy"}
    assert {(one.tools, one.version) for one in server.answers.values()} == {(3, OURS)}
    assert server.answers["modern"].tokens == len(json.dumps(TOOLS, separators=(",", ":"))) // 4
    assert server.answers["modern"].started_ms > 0
    assert [check.level for check in server.checks] == [CheckLevel.OK]


@pytest.mark.parametrize(
    ("launch", "level", "words"),
    [
        (fake("legacy"), CheckLevel.WARN, "clients with the modern protocol can't use it"),
        (fake(said="0.0.1"), CheckLevel.WARN, f"version 0.0.1 differs from this one, {OURS}"),
        (fake("crash"), CheckLevel.FAIL, "exit code 3 before it answered; stderr: the store is locked by a ghost"),
        (fake("chatty"), CheckLevel.FAIL, "printed something that is not a message: b'Welcome!"),
        (LaunchCommand("/no/such/handrail", ("mcp",)), CheckLevel.FAIL, "can't be started: No such file"),
        (LaunchCommand(sys.executable, ("-c", "")), CheckLevel.FAIL, "ended with exit code 0"),
    ],
    ids=["legacy", "older", "crash", "chatty", "missing", "empty"],
)
async def test_a_server_that_is_not_well_is_reported_in_words_with_a_fix(
    launch: LaunchCommand, level: CheckLevel, words: str
) -> None:
    server = await check_server("it", launch, {})
    (check,) = [check for check in server.checks if check.level is not CheckLevel.OK]
    assert check.level is level
    assert words in check.message
    assert check.fix


async def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "ANSWER_TIMEOUT_S", 0.5)
    server = await check_server("it", fake("silent"), {})
    assert [check.level for check in server.checks] == [CheckLevel.FAIL]
    assert "did not answer" in server.checks[0].message


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
async def test_a_server_that_stays_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(probe, "STOP_S", 0.5)
    seen = tmp_path / "seen.json"
    server = await check_server("it", fake("stubborn", str(seen)), {})
    assert set(server.answers) == {"modern", "legacy"}
    with pytest.raises(ProcessLookupError):
        os.kill(json.loads(seen.read_text(encoding="utf-8"))["pid"], 0)


@pytest.mark.parametrize("client", ALL, ids=place_id)
def test_a_server_is_started_just_as_its_client_would(desk: Desk, client: Client, tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    launch = fake("well", str(seen), env={"HANDRAIL_HOME": "/chosen"})
    scope = Scope.USER  # a person's own file: what stands in the project's is not started
    desk.write(client, scope, with_entry(client, furnished(client), "handrail", launch))
    reply = examined(desk, "--client", client.name)
    name = f"{client.name} ({scope})"
    assert [server["name"] for server in reply["servers"]] == [name]
    assert level_of(reply, name) == ["ok"]
    known = json.loads(seen.read_text(encoding="utf-8"))
    assert known["env"]["HANDRAIL_HOME"] == "/chosen"
    assert known["env"]["HOME"] == str(desk.home)
    assert "PYTEST_CURRENT_TEST" not in known["env"], "hosts pass on few variables"
    begins_in = Path("/") if client.starts_in_project else desk.home
    assert Path(known["cwd"]).resolve() == begins_in.resolve(), "not in a project, which may be a stranger's"
    assert known["env"].get("HANDRAIL_PROJECT") == (str(desk.project) if client.starts_in_project else None)


def test_a_module_of_the_project_is_not_started_in_place_of_the_users_server(desk: Desk) -> None:
    (desk.project / "handrail.py").write_text(f"open({str(desk.project / 'started')!r}, 'w').close()")
    entry = {"command": sys.executable, "args": ["-m", "handrail", "mcp"]}
    desk.write(CLAUDE, Scope.USER, json.dumps({"mcpServers": {"handrail": entry}}))
    reply = examined(desk, "--client", "claude")
    assert level_of(reply, "claude (user)") == ["ok"]
    assert not (desk.project / "started").exists()


def test_entries_of_ours_are_found_whatever_their_name_and_variables_are_filled_in(desk: Desk) -> None:
    launch = LaunchCommand("${userHome}/bin/handrail", ("mcp", "--project", "${workspaceFolder}"))
    desk.write(VSCODE, Scope.PROJECT, with_entry(VSCODE, furnished(VSCODE), "rail", launch))
    desk.write(CLAUDE, Scope.PROJECT, '{"mcpServers": {"x": {"command": "${GONE:-uvx}", "args": ["handrail@0.1.0"]}}}')
    local = {"projects": {str(desk.project): {"mcpServers": {"handrail": {"command": "handrail", "args": ["mcp"]}}}}}
    desk.write(CLAUDE, Scope.USER, json.dumps(local))
    found = {(one.client.name, one.scope, one.name): one.launch for one in configured(ALL, desk.host)}
    assert set(found) == {("vscode", "project", "rail"), ("claude", "project", "x"), ("claude", "local", "handrail")}
    filled = found["vscode", "project", "rail"]
    assert filled is not None
    assert (filled.command, filled.args[-1]) == (f"{desk.home}/bin/handrail", str(desk.project))
    other = found["claude", "project", "x"]
    assert other is not None
    assert other.command == "uvx"


def test_what_is_turned_off_or_reached_otherwise_or_unreadable_is_reported(desk: Desk) -> None:
    off = with_entry(OPENCODE, "", "handrail", fake()).replace('"enabled": true', '"enabled": false')
    desk.write(OPENCODE, Scope.PROJECT, off)
    desk.write(CLAUDE, Scope.PROJECT, '{"mcpServers": {"handrail": {"type": "http", "url": "http://127.0.0.1:1"}}}')
    desk.write(CODEX, Scope.PROJECT, broken(CODEX))
    desk.write(VSCODE, Scope.PROJECT, with_entry(VSCODE, "", "handrail", fake()))
    reply = examined(desk, code=1)
    assert level_of(reply, "opencode (project)") == ["warn"]
    assert level_of(reply, "claude (project)") == ["ok"]
    assert level_of(reply, "codex (project)") == ["fail"]
    assert reply["ok"] is False
    assert all(check["fix"] for check in reply["checks"] if check["level"] != "ok")


@pytest.fixture
def confined() -> str:
    """Settings with which commands are confined; looked up before a test changes PATH."""
    return f'[shell]\nbubblewrap = "{bubblewrap()}"\n' if sys.platform == "linux" else '[checks]\nsandbox = "off"\n'


def test_a_healthy_home_is_well_and_words_say_so(confined: str, desk: Desk) -> None:
    desk.write(CLAUDE, Scope.USER, with_entry(CLAUDE, "", "handrail", fake()))
    desk.state.mkdir(mode=0o700, exist_ok=True)
    (desk.state / "config.toml").write_text(confined)
    result = desk.run("doctor")
    assert result.exit_code == 0, result.output
    assert "all checks passed" in result.stderr
    for name in ("home", "disk", "store", "keys", "clock", "trust", "tools", "sandbox", "cache"):
        assert f" {name} " in result.stdout


def test_commands_that_can_not_run_are_a_warning_with_a_way_out(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    (check,) = [one for one in examined(desk)["checks"] if one["name"] == "sandbox"]
    assert check["level"] == "warn"
    assert "checks and plans that run commands are off" in check["message"]
    assert "bubblewrap" in check["fix"]
    (desk.state / "config.toml").write_text('[checks]\nsandbox = "off"\n')
    (check,) = [one for one in examined(desk)["checks"] if one["name"] == "sandbox"]
    assert check["level"] == "ok"
    assert "can read and change all that you can" in check["message"], "what is weaker is said"


def test_what_a_project_wants_clients_to_start_is_started_only_if_it_is_this_handrail(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen.json"
    desk.write(CLAUDE, Scope.PROJECT, with_entry(CLAUDE, "", "handrail", fake("well", str(seen))))
    (check,) = [one for one in examined(desk)["checks"] if one["name"] == "claude (project)"]
    assert check["level"] == "warn"
    assert "is a file of the project, and its entry starts another program" in check["message"]
    assert not seen.exists()
    monkeypatch.setattr(launching, "_own_command", lambda: ["/bin/handrail"])
    own = LaunchCommand("/bin/handrail", ("mcp", "--toolsets", "guide"), {"HANDRAIL_HOME": "/home"})
    home = Path("/home")
    assert launching.is_own(own, home)
    assert launching.is_own(replace(own, env={}), home)
    assert not launching.is_own(own, Path("/other"))
    assert not launching.is_own(replace(own, env={"PYTHONPATH": "."}), home)
    assert not launching.is_own(replace(own, args=("run", "start")), home)
    assert not launching.is_own(replace(own, args=("mcp", "--home=evil")), home)
    assert not launching.is_own(replace(own, command="./handrail"), home)


def test_a_project_can_not_have_this_handrail_started_with_a_home_of_its_own(desk: Desk, tmp_path: Path) -> None:
    evil, outside = desk.project / "evil", tmp_path / "outside.jsonl"
    evil.mkdir()
    (evil / "config.toml").write_text(f'[witnesses]\ntargets = ["file:{outside}"]\n')
    command, *args = launching._own_command()
    entry = LaunchCommand(command, (*args, "mcp"), {"HANDRAIL_HOME": str(evil)})
    desk.write(CLAUDE, Scope.PROJECT, with_entry(CLAUDE, "", "handrail", entry))
    (check,) = [one for one in examined(desk)["checks"] if one["name"] == "claude (project)"]
    assert (check["level"], "or this one with other state" in check["message"]) == ("warn", True)
    assert [path.name for path in evil.iterdir()] == ["config.toml"]
    assert not outside.exists()


@pytest.fixture
def kept(desk: Desk) -> Desk:
    """A desk with a journal in which something happened."""
    plan = desk.project / "plan.yaml"
    plan.write_text("id: a\nsteps:\n  - {id: b, tool: value.set, args: {value: 1}}\n", encoding="utf-8")
    assert desk.run("plan", "save", str(plan)).exit_code == 0
    desk.write(CLAUDE, Scope.PROJECT, with_entry(CLAUDE, "", "handrail", fake()))
    return desk


def test_a_journal_and_its_keys_are_looked_at(kept: Desk) -> None:
    reply = examined(kept)
    messages = {check["name"]: check["message"] for check in reply["checks"]}
    assert "matches its checkpoints" in messages["store"]
    assert "journal.key" in messages["keys"]


@pytest.mark.skipif(sys.platform == "win32", reason="rights are POSIX's")
def test_rights_that_are_too_wide_are_found(kept: Desk) -> None:
    kept.state.chmod(0o755)
    (kept.state / "keys" / "journal.key").chmod(0o644)
    reply = examined(kept, code=1)
    assert level_of(reply, "home") == ["warn"]
    assert level_of(reply, "keys") == ["fail"]
    assert any("chmod 600" in check["fix"] for check in reply["checks"])


def test_a_journal_that_was_changed_is_found(kept: Desk) -> None:
    shell = Shell(kept.state.parent)
    shell.home = kept.state
    shell.execute("delete from event")
    reply = examined(kept, code=1)
    assert level_of(reply, "store") == ["fail"]


def test_an_event_that_is_yet_to_come_is_found(kept: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert level_of(examined(kept), "clock") == ["ok"]
    monkeypatch.setattr(home_checks, "system_clock", lambda: 1_760_000_000_000)
    assert level_of(examined(kept), "clock") == ["warn"]


async def test_a_clock_that_jumps_is_found(kept: Desk) -> None:
    settings = read_settings({"home": str(kept.state), "project": str(kept.project)}, {})
    wall, steady = home_checks.clocks()
    checks = [check async for check in home_checks.home_checks(settings, started=(wall - 100, steady))]
    (clock,) = [check for check in checks if check.name == "clock"]
    assert (clock.level, "jumped by 100" in clock.message) == (CheckLevel.WARN, True)


def test_a_full_disk_a_grown_cache_and_broken_tools_are_found(kept: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judgement, "FREE_BYTES_FAIL", 10**18)
    monkeypatch.setattr(home_checks, "CACHE_BYTES_WARN", 1)
    (kept.state / "cache" / "mcp").mkdir(parents=True)
    (kept.state / "cache" / "mcp" / "a.json").write_text("{}", encoding="utf-8")
    (kept.project / ".handrail").mkdir()
    (kept.project / ".handrail" / "config.toml").write_text("[http]\nalow = []\n", encoding="utf-8")
    reply = examined(kept, code=1)
    assert [level_of(reply, name) for name in ("disk", "cache", "tools")] == [["fail"], ["warn"], ["fail"]]


def test_a_home_and_a_journal_that_can_not_be_written_are_found(kept: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # rights do not hold for every user of a machine
    reply = examined(kept, code=1)
    assert [level_of(reply, name) for name in ("home", "store")] == [["fail"], ["fail"]]


def test_both_commands_are_in_the_program() -> None:
    assert {"init", "doctor"} <= set(COMMANDS)


def test_a_passphrase_that_is_required_and_not_set_is_reported(desk: Desk) -> None:
    desk.state.mkdir()
    (desk.state / "config.toml").write_text("[approvals]\npassphrase = true\n")
    reply = examined(desk, "--client", "codex", code=1)
    (check,) = [check for check in reply["checks"] if check["name"] == "approvals"]
    assert (check["level"], "none is set: no answer counts" in check["message"]) == ("fail", True)
    PassphraseFile(desk.state / "keys", system_clock).keep("correct horse", old=None)
    assert level_of(examined(desk, "--client", "codex"), "approvals") == ["ok"]
    (desk.state / "config.toml").write_text("[approvals]\npassphrase = 3\n")
    assert level_of(examined(desk, "--client", "codex", code=1), "approvals") == ["fail"]


def test_a_project_config_that_is_wrong_is_one_failed_check(desk: Desk) -> None:
    (desk.project / ".handrail").mkdir()
    (desk.project / ".handrail" / "config.toml").write_text("cals = 3\n")
    reply = examined(desk, "--client", "codex", code=1)
    (check,) = [check for check in reply["checks"] if check["name"] == "project settings"]
    assert (check["level"], "unknown setting `cals`" in check["message"]) == ("fail", True)
    assert {"home", "store", "tools", "cache"} <= {check["name"] for check in reply["checks"]}
    assert desk.run("run", "list").exit_code == 5, "other commands don't go on"
    desk.state.mkdir(mode=0o700, exist_ok=True)
    (desk.state / "config.toml").write_text("cals = 3\n")
    assert desk.run("doctor").exit_code == 5, "without the owner's settings nothing is known"
