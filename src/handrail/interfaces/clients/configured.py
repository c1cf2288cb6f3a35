"""The handrail servers in clients' settings, each as that client would start it.

Only reads. probe.py tests whether they answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, Final

from handrail.domain.errors import HandrailError
from handrail.interfaces.clients import jsonc_text
from handrail.interfaces.clients.client import Client, HostPaths, Scope
from handrail.interfaces.clients.entry import entries, is_off, launch_of
from handrail.interfaces.clients.launch import NAME, LaunchCommand
from handrail.interfaces.clients.settings_file import read_file

LOCAL: Final = "local"
"""Claude Code's third scope: a project's servers, kept in the user's own file."""
PASSED_ON: Final = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
PASSED_ON_WINDOWS: Final = (
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
    *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
)
_variable = re.compile(r"\$\{([^}:]+)(?::-?([^}]*))?\}|\{env:([^}]+)\}")


@dataclass(frozen=True, slots=True)
class ConfiguredEntry:
    """An entry, or the error that prevents reading the settings."""

    client: Client
    scope: str
    file: Path
    name: str = ""
    launch: LaunchCommand | None = None
    """None: the entry has no command."""
    is_off: bool = False
    error: HandrailError | None = None

    @property
    def is_of_project(self) -> bool:
        """Whether it is in a file of the project, which others may have written."""
        return self.scope == Scope.PROJECT.value


def configured(clients: Iterable[Client], host: HostPaths) -> list[ConfiguredEntry]:
    """Every handrail entry, in all scopes of these clients."""
    return [one for client in clients for one in _of_client(client, host)]


def host_environment(host: HostPaths) -> dict[str, str]:
    """The environment variables that clients pass on to servers."""
    names = PASSED_ON_WINDOWS if host.platform == "win32" else PASSED_ON
    return {name: host.environment[name] for name in names if name in host.environment}


def _of_client(client: Client, host: HostPaths) -> Iterator[ConfiguredEntry]:
    for scope in Scope:
        for file in client.files(host, scope):
            yield from _of_file(client, scope, file, host)


def _of_file(client: Client, scope: Scope, file: Path, host: HostPaths) -> Iterator[ConfiguredEntry]:
    try:
        read = read_file(file)
        found = {} if read.content is None else entries(client, read.text)
        yield from _ours(client, scope.value, file, found, host)
        if client.name == "claude" and scope is Scope.USER and read.content is not None:
            yield from _ours(client, LOCAL, file, _local(read.text, host), host)
    except HandrailError as error:
        yield ConfiguredEntry(client, scope.value, file, error=error)


def _local(text: str, host: HostPaths) -> Mapping[str, Any]:
    """Claude Code's entries for this project only."""
    found: Any = jsonc_text.read(text)
    for key in ("projects", str(host.project), "mcpServers"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _ours(
    client: Client, scope: str, file: Path, found: Mapping[str, Any], host: HostPaths
) -> Iterator[ConfiguredEntry]:
    for name, entry in found.items():
        launch = launch_of(entry)
        if name == NAME or (launch and _is_ours(launch)):
            started = _expanded(client, launch, host) if launch else None
            yield ConfiguredEntry(client, scope, file, name, started, is_off=isinstance(entry, dict) and is_off(entry))


def _is_ours(launch: LaunchCommand) -> bool:
    program = PurePath(launch.command.replace("\\", "/")).stem
    return program == NAME or any(re.split("[@=<>~]", word)[0] == NAME for word in launch.args)


def _expanded(client: Client, launch: LaunchCommand, host: HostPaths) -> LaunchCommand:
    """The launch as the client does it: with variables filled in, and a working folder."""
    fill = _filler(host)
    folder = fill(launch.cwd) if launch.cwd else str(host.project if client.starts_in_project else host.home)
    return replace(
        launch,
        command=fill(launch.command),
        args=tuple(map(fill, launch.args)),
        env={name: fill(value) for name, value in launch.env.items()},
        cwd=str(host.project / folder),
    )


def _filler(host: HostPaths) -> Callable[[str], str]:
    """Fills in `${workspaceFolder}`, `${env:NAME}`, `${NAME:-default}` and `{env:NAME}`, as clients write them."""
    known = {**host.environment, "workspaceFolder": str(host.project), "userHome": str(host.home)}

    def value_of(found: re.Match[str]) -> str:
        name, more, other = found.groups(default="")
        if name == "env":
            name, more = more, ""
        return known.get(name or other, more)

    return lambda text: _variable.sub(value_of, text)
