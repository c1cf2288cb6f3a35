"""`handrail trust`: shown, asked at a terminal, kept, revoked; and what everything else says until then."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from interfaces.shell import Shell

WITHHELD = (
    "this project's own settings, which would allow it, are not trusted yet:"
    " a person can look at them with `handrail trust`"
)
SERVER = {"mcpServers": {"git": {"command": "no-such-server", "args": ["--x"], "env": {"A": "${secret:A}"}}}}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.write(
        'agents_may_approve = true\ncalls = 50\n[shell]\nallow = true\nmemory = "2GiB"\n', ".handrail/config.toml"
    )
    shell.write(json.dumps(SERVER), ".handrail/tools.json")
    return shell


def value(shell: Shell, name: str) -> object:
    return next(one["value"] for one in shell.json("config", "show")["settings"] if one["setting"] == name)


def test_what_would_be_switched_on_is_shown_and_counts_only_with_its_digest(shell: Shell) -> None:
    seen = shell.json("trust", code=4)
    assert (seen["trusted"], seen["state"]) == (False, "not trusted")
    items = {one["name"]: one["text"] for one in seen["items"]}
    assert items.keys() == {"agents_may_approve", "[shell] allow", "[shell] memory", "server git"}
    assert json.loads(items["server git"]) == SERVER["mcpServers"]["git"]
    assert (value(shell, "agents_may_approve"), value(shell, "calls")) == (False, 50)
    assert shell.json("trust", "--digest", "sha256:other", code=6)["error"]["name"] == "conflict"
    assert value(shell, "agents_may_approve") is False
    assert shell.json("trust", "--digest", seen["digest"])["trusted"] is True
    assert value(shell, "agents_may_approve") is True
    assert shell.json("config", "show")["trust"] == "trusted"
    again = shell.run("trust")
    assert (again.exit_code, "nothing has changed since" in again.stderr) == (0, True)


def test_without_a_terminal_and_a_digest_nothing_is_trusted(shell: Shell) -> None:
    refused = shell.run("trust", stdin="y\n")
    assert refused.exit_code == 4
    assert "+ agents_may_approve = true" in refused.stdout
    assert "not trusted: nothing was switched on" in refused.stderr
    assert shell.json("trust", "list")["projects"] == []
    assert shell.run("trust", "--revoke", "--digest", "x").exit_code == 2


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")
def test_a_person_at_a_terminal_is_asked(shell: Shell) -> None:
    assert "not trusted: nothing was switched on" in shell.terminal("trust", typed="n\n")
    assert shell.json("trust", "list")["projects"] == []
    shown = shell.terminal("trust", typed="y\n")
    assert "Trust these files as they are now?" in shown
    (kept,) = shell.json("trust", "list")["projects"]
    assert kept["project"] == str(shell.folder.resolve())
    assert kept["by"].startswith("person:")
    assert kept["at"].endswith("Z")


def test_a_changed_file_is_untrusted_again_and_the_difference_is_shown(shell: Shell) -> None:
    shell.trust()
    assert value(shell, "agents_may_approve") is True
    shell.write('agents_may_approve = true\n[shell]\nallow = true\nmemory = "4GiB"\n', ".handrail/config.toml")
    assert value(shell, "agents_may_approve") is False
    seen = shell.json("trust", code=4)
    assert seen["state"] == "changed since it was trusted"
    assert seen["changes"] == [{"name": "[shell] memory", "before": '"2GiB"', "now": '"4GiB"'}]
    words = shell.run("trust").stdout
    assert "trusted before by person:ada" in words
    assert '- [shell] memory = "2GiB"\n+ [shell] memory = "4GiB"' in words
    assert "  [shell] allow = true" in words
    (shell.folder / ".handrail" / "tools.json").unlink()
    assert "- server git = " in shell.run("trust").stdout


def test_a_changed_server_is_untrusted_again_with_all_of_the_settings(shell: Shell) -> None:
    shell.trust()
    server = {"mcpServers": {"git": {**SERVER["mcpServers"]["git"], "args": ["--y"]}}}
    shell.write(json.dumps(server), ".handrail/tools.json")
    assert value(shell, "agents_may_approve") is False
    seen = shell.json("trust", code=4)
    assert seen["state"] == "changed since it was trusted"
    assert [one["name"] for one in seen["changes"]] == ["server git"]
    assert "have changed since a person trusted them" in json.dumps(shell.json("tools", "list"))


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_a_folder_is_trusted_however_it_is_spelled(shell: Shell, tmp_path: Path) -> None:
    shell.trust()
    spelled = Shell(tmp_path / "link")
    spelled.folder.symlink_to(shell.folder)
    spelled.home = shell.home
    assert value(spelled, "agents_may_approve") is True


def test_trust_is_revoked_and_listed(shell: Shell) -> None:
    shell.trust()
    assert str(shell.folder.resolve())[:20] in shell.run("trust", "list").stdout
    assert shell.json("trust", "--revoke") == {"project": str(shell.folder.resolve()), "trusted": False}
    assert value(shell, "agents_may_approve") is False
    assert shell.json("trust", "--revoke", code=3)["error"]["name"] == "not_found"
    shell.trust()
    assert "no longer trusted" in shell.run("trust", "--revoke").stderr


def test_a_project_that_loosens_nothing_needs_no_trust(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("calls = 5\n", ".handrail/config.toml")
    seen = shell.run("trust")
    assert (seen.exit_code, seen.stderr.strip()) == (0, "nothing in this project's files needs trust")
    assert value(shell, "calls") == 5


def test_a_file_that_is_wrong_is_not_trusted(shell: Shell) -> None:
    shell.write('{"mcpServers": {"git": {}}}', ".handrail/tools.json")
    assert "neither `command` nor `url`" in shell.json("trust", code=5)["error"]["message"]
    shell.write("{}", ".handrail/tools.json")
    shell.write('[shell]\nmemory = "much"\n', ".handrail/config.toml")
    assert "[shell]" in shell.json("trust", code=5)["error"]["message"]
    shell.write("calls = 0\n", ".handrail/config.toml")
    assert shell.run("trust").exit_code == 5


def test_everything_says_what_is_off(shell: Shell) -> None:
    shown = shell.run("config", "show")
    assert "this project is not trusted: 4 things in its files are off: agents_may_approve" in shown.stderr
    assert "run `handrail trust`" in shown.stderr
    listed = shell.json("tools", "list")
    assert "not trusted, so its tool server `git` is not started" in listed["untrusted"]["git"]
    assert "server git is off" in shell.run("tools", "list").stderr
    assert shell.json("tools", "list", "--server", "git", code=1)["error"]["name"] == "forbidden"
    assert "`handrail trust`" in shell.json("tools", "check", "git", code=8)["servers"][0]["error"]
    call = shell.json("tools", "call", "git.status", code=1)["error"]
    assert (call["name"], "`handrail trust`" in call["hint"]) == ("forbidden", True)
    plan = shell.write("id: p\nsteps: [{id: a, tool: git.status}]")
    assert "untrusted_server" in shell.run("plan", "check", plan).stdout
    assert shell.json("run", "start", plan, code=1)["error"]["name"] == "forbidden"


def test_a_tool_that_is_off_is_a_warning_before_a_run_needs_it(shell: Shell) -> None:
    shell.write("", ".handrail/config.toml")
    plan = shell.write("id: p\nsteps:\n  - {id: a, tool: shell.run, args: {argv: [ls]}}")
    for said in (
        shell.run("plan", "check", plan).stdout,
        shell.run("plan", "save", plan).stderr,
        shell.run("run", "start", plan).stderr,
    ):
        assert "shell.run is off here" in said
        assert "[shell] allow = true" in said
    (finding,) = [one for one in shell.json("plan", "check", plan)["findings"] if one["rule"] == "tool_off"]
    assert (finding["severity"], finding["at"]["line"]) == ("minor", 3)
    shell.configure("[shell]\nallow = true\n")
    assert "tool_off" not in shell.run("plan", "check", plan).stdout


def test_a_command_that_only_the_project_allows_is_refused_with_the_reason(shell: Shell) -> None:
    refused = shell.run("tools", "call", "shell.run", "--yes", "--args", '{"argv": ["true"]}')
    assert refused.exit_code != 0
    assert "shell.run is off here" in refused.output
    assert WITHHELD in refused.output
    listed = shell.json("tools", "list")
    assert WITHHELD in listed["off"]["shell.run"]
    shown = shell.run("tools", "list")
    assert "shell.run is off: " in shown.stderr
    assert "(off)" in next(line for line in shown.stdout.splitlines() if line.startswith("shell.run"))
    shell.write("[shell]\nallow = false\n", ".handrail/config.toml")
    assert "trust" not in shell.json("tools", "list")["off"]["shell.run"]


def test_an_address_that_only_the_project_allows_is_refused_with_the_reason(shell: Shell) -> None:
    shell.write('[http]\nallow = ["127.0.0.1:9"]\n', ".handrail/config.toml")

    def told(port: int) -> str:
        url = json.dumps({"url": f"http://127.0.0.1:{port}/"})
        return shell.run("tools", "call", "http.request", "--yes", "--args", url).output

    assert "is not a public address" in told(9)
    assert WITHHELD in told(9)
    assert "is not a public address" in told(10)
    assert WITHHELD not in told(10)
    shell.trust()
    shell.write('[http]\nallow = ["127.0.0.1:9", "127.0.0.1:8"]\n', ".handrail/config.toml")
    assert "have changed since a person trusted them: a person can look at them" in told(9)


def test_the_list_of_trusted_projects_has_a_sentence_when_empty_and_relative_times(shell: Shell) -> None:
    empty = shell.run("trust", "list")
    assert (empty.stdout, empty.stderr.startswith("no project is trusted")) == ("", True)
    seen = shell.json("trust", code=4)
    shell.json("trust", "--digest", seen["digest"])
    assert " ago" in shell.run("trust", "list").stdout or "now" in shell.run("trust", "list").stdout
    assert "Z " in shell.run("trust", "list", "--utc").stdout


def test_config_show_has_the_tables_with_their_files_and_what_is_off(shell: Shell) -> None:
    shell.configure('[http]\nallow = ["10.0.0.1"]\n[tools."http.request"]\ntimeout = "5s"\n')
    shell.write("[shell]\nallow = true\nprocesses = 8\n", ".handrail/config.toml")
    rows = {row["setting"]: row for row in shell.json("config", "show")["settings"]}
    assert (rows["[http] allow"]["value"], rows["[http] allow"]["from"]) == (
        ["10.0.0.1"],
        str(shell.home / "config.toml"),
    )
    assert rows['[tools."http.request"] timeout']["value"] == "5s"
    own = str(shell.folder / ".handrail" / "config.toml")
    assert (rows["[shell] processes"]["value"], rows["[shell] processes"]["from"]) == (8, own)
    assert "[shell] allow" not in rows
    shown = shell.run("config", "show").stdout
    assert "OFF until trusted" in shown
    shell.trust()
    rows = {row["setting"]: row for row in shell.json("config", "show")["settings"]}
    assert rows["[shell] allow"] == {"setting": "[shell] allow", "value": True, "from": own}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("[shell]\nalow = true\n", "[shell]: unknown key `alow`"),
        ('[shell]\nmemory = "1KB"\n', "memory is less than 16MiB"),
        ('[tools."http.request"]\ntimeout = "soon"\n', 'tools."http.request"'),
        ("[servers.git]\nrate = 3\n", "servers.git"),
        ('[http]\nallow = ["a b"]\n', "[http]"),
        ("[groups]\nleads = 3\n", "[groups]"),
        ("[policy]\nagents = true\n", "[policy]"),
        ("[approvals]\npassphrase = 1\n", "[approvals]"),
        ("[secrets]\nenv = 3\n", "[secrets]"),
        ('[witnesses]\ntargets = ["carrier-pigeon:x"]\n', "carrier-pigeon"),
        ("[models]\nfast = 3\n", "[models.fast]"),
    ],
)
def test_config_show_says_what_is_wrong_inside_a_table(shell: Shell, table: str, words: str) -> None:
    shell.configure(table)
    (wrong,) = shell.json("config", "show", code=5)["wrong"]
    assert words in wrong["message"]
    assert wrong["hint"]
    assert words in shell.run("config", "show").stderr


def test_config_show_says_what_is_wrong_in_a_project_that_is_not_trusted(shell: Shell) -> None:
    shell.write('[shell]\ntimeout = "soon"\n[http]\nalow = []\n', ".handrail/config.toml")
    said = [one["message"] for one in shell.json("config", "show", code=5)["wrong"]]
    assert [("[shell]" in one, "[http]" in one) for one in said] == [(True, False), (False, True)]


def test_a_users_server_is_never_replaced_and_the_other_is_reported(shell: Shell) -> None:
    shell.write('{"mcpServers": {"git": {"command": "users-own"}}}', "home/tools.json")
    for _ in range(2):
        listed = shell.json("tools", "list")
        assert list(listed["shadowed"]) == ["git"]
        assert "your own entry counts" in shell.run("tools", "list").stderr
        assert "users-own" in shell.json("tools", "check", "git", code=8)["servers"][0]["error"]
        shell.trust()
    assert "server git" not in {one["name"] for one in shell.json("trust")["items"]}


def test_a_setting_of_the_home_is_refused_in_a_project_with_words(shell: Shell) -> None:
    shell.write('store = "postgresql://evil"\n', ".handrail/config.toml")
    refused = shell.run("config", "show")
    assert refused.exit_code == 5
    assert "a project may not set store" in refused.stderr
    assert f"it belongs in {shell.home / 'config.toml'}" in refused.stderr


def test_a_project_whose_folder_is_the_home_has_no_second_file(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.home = tmp_path / ".handrail"
    shell.write("agents_may_approve = true\nlog_days = 3\n", ".handrail/config.toml")
    assert (value(shell, "agents_may_approve"), value(shell, "log_days")) == (True, 3)
    assert shell.json("config", "show")["trust"] == "nothing to trust"
