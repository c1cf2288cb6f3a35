"""A client's settings file: read, backed up, and replaced as a whole.

entry.py reads its entries. Whether a link may be followed is decided in settings_link.py: the file that it points to is
changed, the link stays."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from handrail.domain.errors import Conflict, Forbidden, Invalid, Limited, Unavailable
from handrail.foundation.atomic_file import write_whole
from handrail.foundation.open_flags import BINARY
from handrail.foundation.plain_file import NotPlain, read_plain

BYTES_MAX: Final = 50_000_000
MARK: Final = "\ufeff"
"""The byte order mark that some editors write; it is kept, and is not part of the text."""
PRIVATE: Final = 0o600
SHARED: Final = 0o644
_backup = re.compile(r".*\.handrail-backup-([0-9]+)")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The content of a file when it was read; None: there was no file."""

    path: Path
    content: bytes | None
    target: Path | None = None
    """The file that the path leads to, if that was checked; None: whatever it leads to."""

    @property
    def shown(self) -> str:
        """The path, and where it really leads."""
        is_link = self.target is not None and self.path.is_symlink()
        return f"{self.path} -> {self.target}" if is_link else str(self.path)

    @property
    def text(self) -> str:
        """The content as text."""
        try:
            return (self.content or b"").decode("utf-8").removeprefix(MARK)
        except UnicodeDecodeError as error:
            raise Invalid(
                f"{self.path} is not UTF-8: {error}", hint="save it as UTF-8, then repeat the call"
            ) from error

    def bytes_of(self, text: str) -> bytes:
        """The bytes that this text is stored as."""
        marked = (self.content or b"").startswith(MARK.encode())
        return ((MARK if marked else "") + text).encode("utf-8")


def read_file(path: Path, target: Path | None = None) -> SettingsFile:
    """The file as it is now; `target` is where the path may lead."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):  # a pipe would block, a device may never end
            raise Invalid(f"{path} is not a file", hint="remove it, or change the client's settings by hand")
        if found.st_size > BYTES_MAX:
            raise Limited(f"{path} is larger than {BYTES_MAX:,} bytes", hint="change it by hand")
        return SettingsFile(path, read_plain(path, bytes_max=BYTES_MAX), target)
    except FileNotFoundError:
        return SettingsFile(path, None, target)
    except NotPlain as error:
        raise Unavailable(str(error), hint="make it a readable, regular file") from error
    except OSError as error:
        raise Unavailable(f"{path} can't be read: {error.strerror}", hint="check its permissions") from error


def write_file(file: SettingsFile, text: str, *, is_private: bool, backs_up: bool = True) -> Path | None:
    """Replace the file with this text; returns the path of the backup, if there was a file."""
    new_mode = PRIVATE if is_private else SHARED
    try:
        _require_unchanged(file)
        # Where a link leads, so that a file in a folder of dotfiles stays a link to it.
        target = file.target or Path(os.path.realpath(file.path))
        target.parent.mkdir(parents=True, exist_ok=True)
        backup = _back_up(file) if backs_up and file.content is not None else None
        _replace(target, file.bytes_of(text), None if file.content is None else target.stat(), new_mode)
    except OSError as error:
        raise Unavailable(f"{file.path} can't be written: {error.strerror}", hint="check its permissions") from error
    return backup


def remove_file(file: SettingsFile, *, within: Path | None = None) -> None:
    """Remove a file that has only our entry, and its folder if that is empty and inside `within`."""
    try:
        _require_unchanged(file)
        file.path.unlink()
        folder = file.path.parent
        if within is not None and folder != within and not any(folder.iterdir()):
            folder.rmdir()
    except OSError as error:
        raise Unavailable(f"{file.path} can't be removed: {error.strerror}", hint="check its permissions") from error


def backups_of(path: Path) -> list[Path]:
    """The backups that earlier changes left, newest first."""
    numbered = {}
    for other in path.parent.glob(f"{_escaped(path.name)}.handrail-backup-*"):
        if found := _backup.fullmatch(other.name):
            numbered[int(found[1])] = other
    return [numbered[number] for number in sorted(numbered, reverse=True)]


def _escaped(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def _require_unchanged(file: SettingsFile) -> None:
    # Clients write these files, too, while they run: what they changed since we read must not be lost.
    if read_file(file.path).content != file.content:
        raise Conflict(f"{file.path} was changed by another program in the meantime", hint="repeat the call")
    if file.target is not None and Path(os.path.realpath(file.path)) != file.target:
        raise Conflict(f"{file.path} leads to another file than before", hint="repeat the call")
    if file.content is None:
        return
    if not file.path.stat().st_mode & stat.S_IWUSR:
        raise Forbidden(f"{file.path} is read-only", hint=f"make it writable if you mean it: chmod u+w {file.path}")


def _back_up(file: SettingsFile) -> Path:
    newest = backups_of(file.path)
    number = 1 + (int(newest[0].name.rpartition("-")[2]) if newest else 0)
    backup = file.path.with_name(f"{file.path.name}.handrail-backup-{number}")
    mode = stat.S_IMODE(file.path.stat().st_mode)
    # With the mode of the original from the start: settings of clients often hold tokens.
    descriptor = os.open(backup, os.O_CREAT | os.O_EXCL | os.O_WRONLY | BINARY, mode)
    with os.fdopen(descriptor, "wb") as writer:
        writer.write(file.content or b"")
    return backup


def _replace(target: Path, content: bytes, old: os.stat_result | None, new_mode: int) -> None:
    """Replace a file atomically; the new one has the mode and the owner of the old one."""

    def keep_owner(part: str) -> None:
        if old and hasattr(os, "chown") and (old.st_uid, old.st_gid) != (os.getuid(), os.getgid()):
            os.chown(part, old.st_uid, old.st_gid)

    write_whole(target, content, mode=stat.S_IMODE(old.st_mode) if old else new_mode, finish=keep_owner)
