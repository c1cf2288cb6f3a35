"""The supported clients: where each keeps its settings, and the shape of a server's entry.

Data and pure functions; nothing is read or written here. To add a client, add one value to CLIENTS."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from handrail.interfaces.clients.launch import LaunchCommand

WORKSPACE: Final = "${workspaceFolder}"
TITLE: Final = "Guides, runs and remembers long tasks"
GOOSE_TIMEOUT_S: Final = 300


class Scope(StrEnum):
    """Where a server is set up: for the user, or for the project."""

    USER = "user"
    PROJECT = "project"


class Format(StrEnum):
    """The format of a client's settings."""

    JSON = "json"
    TOML = "toml"
    YAML = "yaml"


@dataclass(frozen=True, slots=True)
class HostPaths:
    """Where the user's folders and the project are, and the platform."""

    home: Path
    project: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    platform: str = sys.platform

    @property
    def settings(self) -> Path:
        """The settings folder of desktop programs."""
        if self.platform == "win32":
            return Path(self.environment.get("APPDATA") or self.home / "AppData" / "Roaming")
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.dot_config

    @property
    def dot_config(self) -> Path:
        """The settings folder of terminal programs."""
        return Path(self.environment.get("XDG_CONFIG_HOME") or self.home / ".config")

    def chosen(self, variable: str, default: str) -> Path:
        """The folder in an environment variable, or a default one in the home folder."""
        return Path(self.environment.get(variable) or self.home / default)


@dataclass(frozen=True, slots=True)
class Client:
    """A program that runs agents and starts MCP servers."""

    name: str
    title: str
    commands: tuple[str, ...]
    """Its names on the PATH."""
    folder: Callable[[HostPaths], Path]
    """Exists once the client has been used."""
    user: Callable[[HostPaths], tuple[Path, ...]]
    """Where its settings may be; the first that exists is used."""
    project: tuple[str, ...]
    """The same in a project; empty: it has no settings there."""
    key: str
    """The key under which its servers are."""
    shape: Callable[[str, LaunchCommand], dict[str, Any]]
    next: str
    """What the user does after a change."""
    format: Format = Format.JSON
    project_word: str = ""
    """The variable for the project's folder in its settings; empty: it starts servers in that folder."""
    starts_in_project: bool = True

    def files(self, host: HostPaths, scope: Scope) -> tuple[Path, ...]:
        """Where its settings may be for this scope; none: it has no such scope."""
        if scope is Scope.USER:
            return self.user(host)
        return tuple(host.project / name for name in self.project)

    @property
    def scope(self) -> Scope:
        """The default scope."""
        return Scope.PROJECT if self.project else Scope.USER


def _plain(name: str, launch: LaunchCommand) -> dict[str, Any]:
    return {"command": launch.command, "args": list(launch.args)} | ({"env": dict(launch.env)} if launch.env else {})


def _vscode(name: str, launch: LaunchCommand) -> dict[str, Any]:
    return {"type": "stdio", **_plain(name, launch)}


def _opencode(name: str, launch: LaunchCommand) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "local", "command": [launch.command, *launch.args], "enabled": True}
    return entry | ({"environment": dict(launch.env)} if launch.env else {})


def _goose(name: str, launch: LaunchCommand) -> dict[str, Any]:
    return {
        "enabled": True,
        "type": "stdio",
        "name": name,
        "description": TITLE,
        "cmd": launch.command,
        "args": list(launch.args),
        "envs": dict(launch.env),
        "timeout": GOOSE_TIMEOUT_S,
    }


def _claude_user(host: HostPaths) -> tuple[Path, ...]:
    chosen = host.environment.get("CLAUDE_CONFIG_DIR")
    return ((Path(chosen) if chosen else host.home) / ".claude.json",)


def _goose_folder(host: HostPaths) -> Path:
    if host.platform == "win32":
        return host.settings / "Block" / "goose" / "config"
    return host.dot_config / "goose"


CLIENTS: Final[Mapping[str, Client]] = {
    client.name: client
    for client in (
        Client(
            name="claude",
            title="Claude Code",
            commands=("claude",),
            folder=lambda host: host.chosen("CLAUDE_CONFIG_DIR", ".claude"),
            user=_claude_user,
            project=(".mcp.json",),
            key="mcpServers",
            shape=_plain,
            next="start `claude` here, and approve the server when it asks; `/mcp` shows it",
        ),
        Client(
            name="cursor",
            title="Cursor",
            commands=("cursor", "cursor-agent"),
            folder=lambda host: host.home / ".cursor",
            user=lambda host: (host.home / ".cursor" / "mcp.json",),
            project=(".cursor/mcp.json",),
            key="mcpServers",
            shape=_plain,
            next="turn it on in Cursor's settings, under MCP",
            project_word=WORKSPACE,
            starts_in_project=False,
        ),
        Client(
            name="vscode",
            title="VS Code",
            commands=("code",),
            folder=lambda host: host.settings / "Code",
            user=lambda host: (host.settings / "Code" / "User" / "mcp.json",),
            project=(".vscode/mcp.json",),
            key="servers",
            shape=_vscode,
            next="run `MCP: List Servers` in VS Code, start it, and trust it",
            project_word=WORKSPACE,
        ),
        Client(
            name="codex",
            title="Codex",
            commands=("codex",),
            folder=lambda host: host.chosen("CODEX_HOME", ".codex"),
            user=lambda host: (host.chosen("CODEX_HOME", ".codex") / "config.toml",),
            project=(".codex/config.toml",),
            key="mcp_servers",
            shape=_plain,
            next="restart `codex`; a project's settings count once the project is trusted",
            format=Format.TOML,
        ),
        Client(
            name="gemini",
            title="Gemini CLI",
            commands=("gemini",),
            folder=lambda host: host.home / ".gemini",
            user=lambda host: (host.home / ".gemini" / "settings.json",),
            project=(".gemini/settings.json",),
            key="mcpServers",
            shape=_plain,
            next="restart `gemini` in a trusted folder; `/mcp` shows it",
        ),
        Client(
            name="desktop",
            title="Claude Desktop",
            commands=(),
            folder=lambda host: host.settings / "Claude",
            user=lambda host: (host.settings / "Claude" / "claude_desktop_config.json",),
            project=(),
            key="mcpServers",
            shape=_plain,
            next="restart Claude Desktop",
            starts_in_project=False,
        ),
        Client(
            name="opencode",
            title="opencode",
            commands=("opencode",),
            folder=lambda host: host.dot_config / "opencode",
            user=lambda host: tuple(
                host.dot_config / "opencode" / name for name in ("opencode.json", "opencode.jsonc")
            ),
            project=("opencode.json", "opencode.jsonc"),
            key="mcp",
            shape=_opencode,
            next="restart `opencode`; `opencode mcp list` shows it",
        ),
        Client(
            name="goose",
            title="Goose",
            commands=("goose",),
            folder=_goose_folder,
            user=lambda host: (_goose_folder(host) / "config.yaml",),
            project=(),
            key="extensions",
            shape=_goose,
            next="start a new Goose session",
            format=Format.YAML,
        ),
    )
}
