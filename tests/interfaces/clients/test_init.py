"""`handrail init` as a person meets it: every client, every scope, real files."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from handrail.domain.errors import Conflict
from handrail.interfaces.clients.client import CLIENTS, Client, Scope
from handrail.interfaces.clients.enrolment import apply_change, entry_added
from handrail.interfaces.clients.entry import entries, launch_of
from interfaces.clients.desk import Desk
from interfaces.clients.samples import OURS, PLACES, broken, furnished, place_id
from interfaces.shell import in_terminal

CLAUDE, CURSOR, CODEX, DESKTOP = CLIENTS["claude"], CLIENTS["cursor"], CLIENTS["codex"], CLIENTS["desktop"]
EVERYWHERE = pytest.mark.parametrize(("client", "scope"), PLACES, ids=place_id)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


@EVERYWHERE
def test_a_file_that_was_not_there_is_made_and_goes_again(desk: Desk, client: Client, scope: Scope) -> None:
    reply = desk.init(client, scope)
    file = desk.file(client, scope)
    assert (reply["change"], reply["written"], reply["file"]) == ("added", True, str(file))
    launch = launch_of(entries(client, file.read_text(encoding="utf-8"))["handrail"])
    assert launch is not None
    assert Path(launch.command).exists(), "it can be started"
    assert "mcp" in launch.args
    assert launch.env == {"HANDRAIL_HOME": str(desk.state)}, "hosts would not pass it on"
    assert ("${workspaceFolder}" in launch.args) == (scope is Scope.PROJECT and client.name in ("cursor", "vscode"))
    assert desk.init(client, scope)["change"] == "none", "twice is once"
    assert desk.init(client, scope, "--undo")["change"] == "removed"
    assert desk.files() == set()
    assert not desk.state.exists(), "nothing but the clients' settings was written"


@EVERYWHERE
def test_a_file_with_other_things_is_changed_backed_up_and_restored_to_the_byte(
    desk: Desk, client: Client, scope: Scope
) -> None:
    file = desk.write(client, scope, furnished(client))
    before = file.read_bytes()
    reply = desk.init(client, scope)
    assert reply["change"] == "added"
    assert Path(reply["backup"]).read_bytes() == before
    assert Path(reply["backup"]).name == f"{file.name}.handrail-backup-1"
    assert {"handrail"} < set(entries(client, file.read_text(encoding="utf-8")))
    added = [line for line in reply["diff"].splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert any("handrail" in line for line in added)
    assert len(desk.files()) == 2
    assert desk.init(client, scope)["change"] == "none"
    assert len(desk.files()) == 2, "no change, no backup"
    desk.init(client, scope, "--undo")
    assert file.read_bytes() == before
    assert desk.files() == {file}, "a backup that holds nothing more than the file is gone too"


@EVERYWHERE
def test_an_entry_of_another_install_is_updated_and_taken_out(desk: Desk, client: Client, scope: Scope) -> None:
    file = desk.write(client, scope, furnished(client))
    before = file.read_bytes()
    desk.init(client, scope)
    fresh = file.read_bytes()
    stale = fresh.replace(sys.prefix.encode(), b"/gone")
    assert stale != fresh
    file.write_bytes(stale)
    reply = desk.init(client, scope)
    assert (reply["change"], file.read_bytes()) == ("updated", fresh)
    assert reply["backup"].endswith("-2")
    desk.init(client, scope, "--undo")
    assert file.read_bytes() == before
    assert desk.files() == {file}


@EVERYWHERE
def test_what_a_person_changed_since_then_survives_the_undo(desk: Desk, client: Client, scope: Scope) -> None:
    file = desk.write(client, scope, furnished(client))
    desk.init(client, scope)
    file.write_bytes(file.read_bytes().replace(b"what I use", b"what I use now"))
    desk.init(client, scope, "--undo")
    assert file.read_bytes() == furnished(client).replace("what I use", "what I use now").encode()
    assert len(desk.files()) == 3, "both backups are kept: they hold something else"


@EVERYWHERE
def test_a_broken_file_is_refused_and_nothing_is_written(desk: Desk, client: Client, scope: Scope) -> None:
    file = desk.write(client, scope, broken(client))
    reply = desk.init(client, scope, code=5)
    assert str(file) in reply["error"]["message"]
    assert reply["error"]["hint"]
    assert (file.read_text(encoding="utf-8"), desk.files()) == (broken(client), {file})


@EVERYWHERE
def test_a_read_only_file_is_left_alone(desk: Desk, client: Client, scope: Scope) -> None:
    file = desk.write(client, scope, furnished(client))
    file.chmod(0o444)
    reply = desk.init(client, scope, code=1)
    assert "read-only" in reply["error"]["message"]
    assert reply["written"] is False
    assert (file.read_bytes(), desk.files()) == (furnished(client).encode(), {file})


@EVERYWHERE
def test_a_dry_run_shows_the_change_and_writes_nothing(desk: Desk, client: Client, scope: Scope) -> None:
    file = desk.write(client, scope, furnished(client))
    result = desk.run("init", "--client", client.name, "--scope", scope.value, "--dry-run")
    assert result.exit_code == 0, result.output
    assert f"--- {file}" in result.stdout
    assert "would be added" in result.stderr
    assert (file.read_bytes(), desk.files()) == (furnished(client).encode(), {file})


def test_a_file_that_somebody_changes_meanwhile_is_not_overwritten(desk: Desk) -> None:
    file = desk.write(CLAUDE, Scope.PROJECT, "{}")
    change = entry_added(CLAUDE, Scope.PROJECT, desk.host, "handrail", OURS)
    file.write_text('{"new": 1}', encoding="utf-8")
    with pytest.raises(Conflict, match="in the meantime"):
        apply_change(change, desk.host)
    assert (file.read_text(encoding="utf-8"), desk.files()) == ('{"new": 1}', {file})


@pytest.mark.skipif(sys.platform == "win32", reason="rights and links are POSIX's")
def test_rights_are_kept_and_a_link_stays_a_link(desk: Desk) -> None:
    real = desk.home / "dotfiles" / "config.toml"
    real.parent.mkdir()
    real.write_text("model = 'm'\n", encoding="utf-8")
    real.chmod(0o640)
    link = desk.file(CODEX, Scope.USER)
    link.parent.mkdir()
    link.symlink_to(real)
    reply = desk.init(CODEX, Scope.USER)
    assert link.is_symlink()
    assert "handrail" in real.read_text(encoding="utf-8")
    assert [stat.S_IMODE(file.stat().st_mode) for file in (real, Path(reply["backup"]))] == [0o640, 0o640]
    desk.init(CODEX, Scope.USER, "--undo")
    assert (link.is_symlink(), real.read_text(encoding="utf-8")) == (True, "model = 'm'\n")


@pytest.mark.skipif(sys.platform == "win32", reason="rights are POSIX's")
def test_a_new_file_of_a_person_is_private_and_one_of_a_project_is_shared(desk: Desk) -> None:
    desk.init(CLAUDE, Scope.USER)
    desk.init(CLAUDE, Scope.PROJECT)
    modes = [stat.S_IMODE(desk.file(CLAUDE, scope).stat().st_mode) for scope in Scope]
    assert modes == [0o600, 0o644]


def test_all_clients_that_are_here_are_set_up_in_the_project_where_they_can_be(desk: Desk) -> None:
    (desk.home / ".cursor").mkdir()
    DESKTOP.folder(desk.host).mkdir(parents=True)
    result = desk.run("init", "--json")
    assert result.exit_code == 0, result.output
    reply = [(one["client"], one["scope"]) for one in json.loads(result.stdout)["clients"]]
    assert reply == [("cursor", "project"), ("desktop", "user")]


@pytest.mark.skipif(sys.platform == "win32", reason="commands have other names there")
def test_a_command_on_the_path_is_a_client_that_is_here(desk: Desk, tmp_path: Path) -> None:
    command = tmp_path / "bin" / "codex"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n", encoding="utf-8")
    command.chmod(0o755)
    result = desk.run("init", "--json")
    assert [one["client"] for one in json.loads(result.stdout)["clients"]] == ["codex"]


def test_without_any_client_it_names_those_that_it_knows(desk: Desk) -> None:
    result = desk.run("init")
    assert result.exit_code == 3
    assert "claude, cursor, vscode, codex, gemini, desktop, opencode, goose" in result.stderr


def test_one_broken_file_does_not_keep_the_others_from_it(desk: Desk) -> None:
    desk.write(CLAUDE, Scope.PROJECT, "{")
    result = desk.run("init", "--client", "claude", "--client", "cursor")
    assert result.exit_code == 5
    assert "Claude Code (project): invalid" in result.stderr
    assert desk.file(CURSOR, Scope.PROJECT).exists()
    assert desk.file(CLAUDE, Scope.PROJECT).read_text(encoding="utf-8") == "{"


def test_an_undo_looks_everywhere_and_says_where_it_found_something(desk: Desk) -> None:
    desk.init(CLAUDE, Scope.USER)
    desk.init(CODEX, Scope.PROJECT)
    result = desk.run("init", "--undo", "--json")
    reply = [(one["client"], one["scope"], one["written"]) for one in json.loads(result.stdout)["clients"]]
    assert reply == [("claude", "user", True), ("codex", "project", True)]
    assert desk.files() == set()
    again = desk.run("init", "--undo")
    assert (again.exit_code, "nothing to remove" in again.stderr) == (0, True)


def test_a_client_without_settings_of_a_project_says_so(desk: Desk) -> None:
    reply = desk.init(DESKTOP, Scope.PROJECT, code=5)
    assert reply["error"]["hint"] == "use --scope user"


def test_another_name_and_a_project_that_was_said_are_written_down(desk: Desk) -> None:
    folder = str(desk.project)
    result = desk.run("--project", folder, "init", "--client", "desktop", "--name", "rail")
    assert result.exit_code == 0, result.output
    found = entries(DESKTOP, desk.file(DESKTOP, Scope.USER).read_text(encoding="utf-8"))
    launch = launch_of(found["rail"])
    assert launch is not None
    assert launch.args[-3:] == ("mcp", "--project", folder)
    assert desk.run("init", "--name", "a b").exit_code == 5


def test_opencode_keeps_its_other_file_if_it_has_one(desk: Desk) -> None:
    (desk.project / "opencode.jsonc").write_text("{ // mine\n}\n", encoding="utf-8")
    assert desk.init(CLIENTS["opencode"], Scope.PROJECT)["file"].endswith("opencode.jsonc")


def test_a_mark_at_the_beginning_of_a_file_stays(desk: Desk) -> None:
    file = desk.file(CLAUDE, Scope.PROJECT)
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}\n')
    desk.init(CLAUDE, Scope.PROJECT)
    assert file.read_bytes().startswith(b"\xef\xbb\xbf{")
    desk.init(CLAUDE, Scope.PROJECT, "--undo")
    assert file.read_bytes() == b'\xef\xbb\xbf{"a": 1}\n'


def test_a_file_that_is_not_utf8_is_refused(desk: Desk) -> None:
    desk.file(CLAUDE, Scope.PROJECT).write_bytes(b'{"a": "\xff"}')
    assert "UTF-8" in desk.init(CLAUDE, Scope.PROJECT, code=5)["error"]["message"]


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal is POSIX's")
@pytest.mark.parametrize(("typed", "is_written"), [("y\n", True), ("n\n", False)])
def test_a_person_at_a_terminal_is_asked(desk: Desk, typed: str, is_written: bool) -> None:
    command = [sys.executable, "-m", "handrail", "init", "--client", "claude"]
    shown = in_terminal(command, desk.project, typed, {})
    assert "Write this?" in shown
    assert desk.file(CLAUDE, Scope.PROJECT).exists() is is_written
