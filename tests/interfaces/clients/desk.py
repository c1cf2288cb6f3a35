"""A person's desk for tests: a home with clients in it, a project, and the commands `init` and `doctor`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from handrail.interfaces.cli.program import program
from handrail.interfaces.clients.client import Client, HostPaths, Scope


class Desk:
    """A home and a project of their own; nothing of the real ones is seen."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.project, self.state = folder / "me", folder / "work", folder / "state"
        self.home.mkdir()
        self.project.mkdir()
        for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "HANDRAIL_PROJECT", "HANDRAIL_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.setenv("USERPROFILE", str(self.home))
        monkeypatch.setenv("APPDATA", str(self.home / "AppData" / "Roaming"))
        monkeypatch.setenv("PATH", str(folder / "bin"))
        monkeypatch.setenv("HANDRAIL_HOME", str(self.state))
        monkeypatch.chdir(self.project)

    @property
    def host(self) -> HostPaths:
        return HostPaths(self.home, self.project, {"APPDATA": str(self.home / "AppData" / "Roaming")})

    def file(self, client: Client, scope: Scope) -> Path:
        """Where a client keeps its settings."""
        return client.files(self.host, scope)[0]

    def write(self, client: Client, scope: Scope, text: str) -> Path:
        file = self.file(client, scope)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(program, list(words), prog_name="handrail")

    def init(self, client: Client, scope: Scope, *words: str, code: int = 0) -> dict[str, Any]:
        """What `init` says of one client."""
        result = self.run("init", "--client", client.name, "--scope", scope.value, *words, "--json")
        assert result.exit_code == code, result.output
        reply: dict[str, Any] = json.loads(result.stdout)
        if "error" in reply:
            return reply
        (one,) = reply["clients"]
        assert isinstance(one, dict)
        return one

    def files(self) -> set[Path]:
        """All files on the desk."""
        folders = (self.home, self.project)
        return {file for folder in folders for file in folder.rglob("*") if file.is_file() or file.is_symlink()}
