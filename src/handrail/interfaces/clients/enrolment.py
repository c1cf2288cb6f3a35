"""Adding handrail to clients' settings and removing it: finds installed clients, computes a change, and writes it.

Computing and writing are two steps, so that the user can see the diff first. No state is kept: removing works from the
file and its backups."""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from handrail.domain.errors import HandrailError, Invalid
from handrail.interfaces.clients.client import CLIENTS, Client, HostPaths, Scope
from handrail.interfaces.clients.entry import entries, put, with_entry, without_entry
from handrail.interfaces.clients.launch import LaunchCommand
from handrail.interfaces.clients.settings_file import SettingsFile, backups_of, read_file, remove_file, write_file
from handrail.interfaces.clients.settings_link import real_target

T = TypeVar("T")

ADDED: Final = "added"
UPDATED: Final = "updated"
REMOVED: Final = "removed"
NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """A change of a client's settings."""

    client: Client
    scope: Scope
    file: SettingsFile
    kind: str
    after: str | None
    """The new text; None: the file is removed."""
    is_known: bool = False
    """Whether `after` is exactly the text from before handrail was added."""
    stale: tuple[Path, ...] = ()
    """Backups that contain nothing beyond the new file; they are deleted."""

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty if there is none."""
        before = self.file.text.splitlines(keepends=True) if self.file.content is not None else []
        after = (self.after or "").splitlines(keepends=True)
        old = self.file.shown if self.file.content is not None else "/dev/null"
        new = self.file.shown if self.after is not None else "/dev/null"
        return "".join(_ended(difflib.unified_diff(before, after, old, new)))


def installed_clients(host: HostPaths) -> list[Client]:
    """The clients that are installed: their folder is there, or their command is on the PATH."""
    path = host.environment.get("PATH", "")
    return [
        client
        for client in CLIENTS.values()
        if client.folder(host).is_dir() or any(shutil.which(command, path=path) for command in client.commands)
    ]


def entry_added(client: Client, scope: Scope, host: HostPaths, name: str, launch: LaunchCommand) -> SettingsChange:
    """The change that adds or updates the entry."""
    file = _settings(client, scope, host)
    after = _named(file, lambda text: with_entry(client, text, name, launch))
    is_there = name in entries(client, file.text)
    kind = NONE if after == file.text else UPDATED if is_there else ADDED
    return SettingsChange(client, scope, file, kind, after)


def entry_removed(client: Client, scope: Scope, host: HostPaths, name: str) -> SettingsChange:
    """The change that removes the entry; it restores the text from before, if that is known."""
    file = _settings(client, scope, host)
    if _named(file, lambda text: entries(client, text).get(name)) is None:
        return SettingsChange(client, scope, file, NONE, None if file.content is None else file.text)
    backups = {path: read_file(path).text for path in backups_of(file.path)}
    # A string is the one from before handrail if adding our entry to it gives exactly the current text.
    known = [text for text in (*backups.values(), None) if _leads_to(client, text, file.text, name)]
    if known:
        before = known[0]
        stale = [path for path, text in backups.items() if text == before or _leads_to(client, before, text, name)]
        return SettingsChange(client, scope, file, REMOVED, before, is_known=True, stale=tuple(stale))
    return SettingsChange(client, scope, file, REMOVED, _named(file, lambda text: without_entry(client, text, name)))


def apply_change(change: SettingsChange, host: HostPaths) -> Path | None:
    """Write the change; returns the path of the backup, if one was made."""
    backup = None
    if change.kind == NONE:
        return None
    if change.after is None:
        remove_file(change.file, within=host.project if change.scope is Scope.PROJECT else None)
    else:
        is_private = change.scope is Scope.USER
        backup = write_file(change.file, change.after, is_private=is_private, backs_up=not change.is_known)
    for path in change.stale:
        path.unlink(missing_ok=True)
    return backup


def _settings(client: Client, scope: Scope, host: HostPaths) -> SettingsFile:
    files = client.files(host, scope)
    if not files:
        raise Invalid(f"{client.title} has no project settings", hint="use --scope user")
    path = next((file for file in files if os.path.lexists(file)), files[0])
    return read_file(path, real_target(path, scope, host))


def _named(file: SettingsFile, work: Callable[[str], T]) -> T:
    """The result of `work` on the file's text; its errors get the file's name."""
    try:
        return work(file.text)
    except HandrailError as error:
        raise type(error)(f"{file.path}: {error}", hint=error.hint) from error


def _leads_to(client: Client, before: str | None, after: str, name: str) -> bool:
    """Whether `before`, or an empty string, becomes `after` when the entry is added."""
    before = before or ""
    try:
        entry = entries(client, after).get(name)
        return name not in entries(client, before) and entry is not None and put(client, before, name, entry) == after
    except HandrailError:  # an unreadable backup can't be restored
        return False


def _ended(lines: Iterable[str]) -> Iterable[str]:
    """Lines of a diff, each with a line break."""
    return (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
