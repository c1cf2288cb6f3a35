"""Where clients keep their settings on each system, and how this handrail is started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from handrail.domain.errors import Conflict
from handrail.interfaces.clients.client import CLIENTS, HostPaths, Scope
from handrail.interfaces.clients.configured import PASSED_ON_WINDOWS, host_environment
from handrail.interfaces.clients.launch import own_launch, require_lasting
from handrail.settings import read_settings

HOME = Path("home")
SETTINGS = {
    "linux": HOME / ".config",
    "darwin": HOME / "Library" / "Application Support",
    "win32": HOME / "AppData" / "Roaming",
}


@pytest.mark.parametrize("platform", SETTINGS)
def test_settings_of_programs_with_windows_lie_where_the_system_wants_them(platform: str) -> None:
    host = HostPaths(HOME, Path("work"), {}, platform)
    files = {name: client.files(host, Scope.USER)[0] for name, client in CLIENTS.items()}
    assert files["vscode"] == SETTINGS[platform] / "Code" / "User" / "mcp.json"
    assert files["desktop"] == SETTINGS[platform] / "Claude" / "claude_desktop_config.json"
    goose = SETTINGS[platform] / "Block" / "goose" / "config" if platform == "win32" else HOME / ".config" / "goose"
    assert files["goose"] == goose / "config.yaml"
    assert files["claude"] == HOME / ".claude.json"


def test_folders_that_a_person_chose_are_honoured() -> None:
    chosen = {"XDG_CONFIG_HOME": "xdg", "CODEX_HOME": "codex", "CLAUDE_CONFIG_DIR": "claude"}
    host = HostPaths(HOME, Path("work"), chosen, "linux")
    files = {name: client.files(host, Scope.USER)[0] for name, client in CLIENTS.items()}
    assert files["opencode"] == Path("xdg/opencode/opencode.json")
    assert files["codex"] == Path("codex/config.toml")
    assert files["claude"] == Path("claude/.claude.json")


def test_hosts_pass_on_few_variables() -> None:
    environment = {"PATH": "p", "HOME": "h", "SECRET": "s", "SYSTEMROOT": "r"}
    assert host_environment(HostPaths(HOME, HOME, environment, "linux")) == {"PATH": "p", "HOME": "h"}
    assert host_environment(HostPaths(HOME, HOME, environment, "win32")) == {"PATH": "p", "SYSTEMROOT": "r"}
    assert "PATHEXT" in PASSED_ON_WINDOWS


def test_a_home_is_written_down_only_if_a_person_chose_it(tmp_path: Path) -> None:
    assert own_launch(read_settings({}, {"XDG_DATA_HOME": str(tmp_path)})).env == {}
    home = str(tmp_path / "h")
    for flags, environment in (({"home": home}, {}), ({}, {"HANDRAIL_HOME": home})):
        assert own_launch(read_settings(flags, environment)).env == {"HANDRAIL_HOME": home}


def test_without_a_script_python_itself_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read_settings({}, {"XDG_DATA_HOME": str(tmp_path)})
    assert Path(own_launch(settings).command).stem == "handrail"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    started = own_launch(settings)
    assert (started.command, started.args) == (str(tmp_path / "python"), ("-P", "-m", "handrail", "mcp"))


def test_an_environment_that_uvx_borrowed_is_not_relied_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "uv"
    (cache / "archive-v0" / "abc").mkdir(parents=True)
    (cache / "CACHEDIR.TAG").touch()
    monkeypatch.setattr(sys, "prefix", str(cache / "archive-v0" / "abc"))
    with pytest.raises(Conflict) as refused:
        require_lasting()
    assert "uv tool install ." in refused.value.hint
    started = own_launch(read_settings({}, {"XDG_DATA_HOME": str(tmp_path)}))
    assert "uvx" not in started.command, "a name that we have not published may be anybody's"
