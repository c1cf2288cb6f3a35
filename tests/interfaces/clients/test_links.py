"""`init` and links: none is followed in a project; in the user's home only one that leads to what is the user's."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from handrail.domain.errors import Conflict, Forbidden
from handrail.interfaces.clients.client import CLIENTS, HostPaths, Scope
from handrail.interfaces.clients.enrolment import apply_change, entry_added
from handrail.interfaces.clients.launch import LaunchCommand
from handrail.interfaces.clients.settings_link import real_target
from interfaces.clients.desk import Desk

CLAUDE, CODEX, CURSOR = CLIENTS["claude"], CLIENTS["codex"], CLIENTS["cursor"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


def refused(desk: Desk, client: str, scope: Scope, *words: str) -> str:
    reply = desk.init(CLIENTS[client], scope, *words, code=1)
    assert reply["error"]["name"] == "forbidden"
    assert reply["error"]["hint"]
    return str(reply["error"]["message"])


@pytest.mark.parametrize("words", [(), ("--dry-run",), ("--undo",)])
def test_a_projects_settings_are_not_touched_through_a_link(desk: Desk, words: tuple[str, ...]) -> None:
    secret = desk.home / ".profile.json"
    secret.write_text('{"secret": "hunter2"}')
    desk.file(CLAUDE, Scope.PROJECT).symlink_to(secret)
    message = refused(desk, "claude", Scope.PROJECT, *words)
    assert str(secret) in message, "the real target is shown"
    assert "hunter2" not in message
    assert secret.read_text() == '{"secret": "hunter2"}'
    assert "hunter2" not in desk.run("init", "--client", "claude", "--scope", "project", *words).output


def test_a_link_that_leads_nowhere_creates_nothing(desk: Desk) -> None:
    desk.file(CLAUDE, Scope.PROJECT).symlink_to(desk.home / "new.json")
    refused(desk, "claude", Scope.PROJECT)
    assert not (desk.home / "new.json").exists()


def test_a_folder_of_the_project_that_is_a_link_is_refused(desk: Desk) -> None:
    file = desk.file(CURSOR, Scope.PROJECT)
    assert file.parent != desk.project
    (desk.home / "elsewhere").mkdir()
    file.parent.symlink_to(desk.home / "elsewhere")
    refused(desk, "cursor", Scope.PROJECT)
    assert not any((desk.home / "elsewhere").iterdir())


def test_a_project_that_was_opened_by_a_link_is_fine(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "shortcut").symlink_to(desk.project)
    result = desk.run("--project", str(tmp_path / "shortcut"), "init", "--client", "claude", "--scope", "project")
    assert result.exit_code == 0, result.output
    assert desk.file(CLAUDE, Scope.PROJECT).is_file()


def test_a_link_of_the_user_is_followed_within_the_home_and_shown(desk: Desk) -> None:
    real = desk.home / "dotfiles" / "codex.toml"
    real.parent.mkdir()
    real.write_text("model = 'm'\n")
    link = desk.file(CODEX, Scope.USER)
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    shown = desk.run("init", "--client", "codex", "--scope", "user").output
    assert f"{link} -> {real}" in shown
    assert link.is_symlink()
    assert "handrail" in real.read_text()


def test_a_link_of_the_user_out_of_the_home_is_refused(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside.toml"
    outside.write_text("a = 1\n")
    link = desk.file(CODEX, Scope.USER)
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    assert str(outside) in refused(desk, "codex", Scope.USER)
    assert outside.read_text() == "a = 1\n"


def test_a_link_to_what_belongs_to_someone_else_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    real = desk.home / "theirs.toml"
    real.write_text("a = 1\n")
    link = desk.file(CODEX, Scope.USER)
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    monkeypatch.setattr(os, "getuid", lambda: real.stat().st_uid + 1)
    with pytest.raises(Forbidden, match="not yours"):
        real_target(link, Scope.USER, desk.host)


def test_a_folder_that_the_user_chose_outside_the_home_is_used(desk: Desk, tmp_path: Path) -> None:
    host = HostPaths(desk.home, desk.project, {"CODEX_HOME": str(tmp_path / "chosen")})
    path = CODEX.files(host, Scope.USER)[0]
    assert path.is_relative_to(tmp_path / "chosen")
    assert real_target(path, Scope.USER, host) == Path(os.path.realpath(path))


def test_a_link_that_is_turned_after_it_was_shown_is_a_conflict(desk: Desk) -> None:
    first, second = desk.home / "first.toml", desk.home / "second.toml"
    for file in (first, second):
        file.write_text("a = 1\n")
    link = desk.file(CODEX, Scope.USER)
    link.parent.mkdir(parents=True)
    link.symlink_to(first)
    change = entry_added(CODEX, Scope.USER, desk.host, "handrail", LaunchCommand("handrail", ("mcp",)))
    link.unlink()
    link.symlink_to(second)
    with pytest.raises(Conflict, match="leads to another file"):
        apply_change(change, desk.host)
    assert (first.read_text(), second.read_text()) == ("a = 1\n", "a = 1\n")


def test_a_pipe_in_place_of_the_settings_is_refused_at_once(desk: Desk) -> None:
    os.mkfifo(desk.file(CLAUDE, Scope.PROJECT))
    reply = desk.init(CLAUDE, Scope.PROJECT, code=5)
    assert "is not a file" in reply["error"]["message"]
