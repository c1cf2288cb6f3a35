"""The files of HANDRAIL_HOME besides the journal, in and out of a tar archive.

Everything is taken that is not listed here as left out: a file that a later version adds is then backed up, too. Only
regular files and folders are taken and restored; names that lead out of the folder are refused."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final, Protocol

from handrail.domain.backups.manifest import ANOTHER
from handrail.domain.errors import IntegrityBroken
from handrail.domain.secrets.key_files import KEY_FILES, PUBLIC
from handrail.foundation.atomic_file import make_private_folder
from handrail.storage.sqlite.file import BEFORE_UPGRADE

LEFT_OUT: Final = frozenset(
    {
        *("journal.db", "journal.db-wal", "journal.db-shm"),  # the journal is a part of its own
        *("logs", "cache", "workers", "server", "server.json"),  # created again
        "console-sessions.json",  # people sign in again
        *("backups.json", "following.json", "pruned"),  # of this home, not of its content
    }
)
CHECKPOINTS: Final = "checkpoints"
PASSING: Final = (".part", ".lock")
LOCK: Final = "lock"
FILES_MAX: Final = 1_000_000


class Writable(Protocol):
    """Where an archive is written to."""

    def write(self, data: bytes, /) -> int:
        """Add bytes."""
        ...


def files_below(home: Path, names: Iterable[str]) -> list[Path]:
    """The regular files below some entries of a home, without locks and temporary files."""
    found: list[Path] = []
    for name in sorted(names):
        top = home / name
        inside = [top] if top.is_file() else sorted(top.rglob("*")) if top.is_dir() else []
        found += [file for file in inside if _is_kept(file)]
    return found


def names_of(home: Path, *, keys: bool) -> list[str]:
    """The entries of a home that are taken: keys, or everything else; checkpoints are taken before the journal."""
    names = {entry.name for entry in home.iterdir()} - LEFT_OUT - {CHECKPOINTS}
    names = {name for name in names if BEFORE_UPGRADE not in name}  # the journal is in the backup already
    return sorted(names & KEY_FILES if keys else names - KEY_FILES)


def archive(target: Writable, home: Path, files: Iterable[Path], *, also: Iterable[tuple[str, bytes]] = ()) -> int:
    """Write files of a home into an archive, and further ones by name; how many there were."""
    count = 0
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
        for name, content in also:
            _add(tar, name, content, 0)
            count += 1
        for file in files:
            try:
                with file.open("rb") as opened:
                    content = opened.read()
                    changed = os.fstat(opened.fileno()).st_mtime
            except FileNotFoundError:  # another process has replaced or removed it since it was listed
                continue
            _add(tar, file.relative_to(home).as_posix(), content, int(changed))
            count += 1
    return count


def archive_folder(target: Writable, folder: Path) -> None:
    """Write all files of a folder that belongs to this process into an archive; they may be large."""
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
        for file in sorted(folder.iterdir()):
            member = tarfile.TarInfo(file.name)
            member.size, member.mode = file.stat().st_size, stat.S_IRUSR | stat.S_IWUSR
            with file.open("rb") as opened:
                tar.addfile(member, opened)


def extract(chunks: Iterator[bytes], folder: Path) -> int:
    """Write the files of an archive into a folder, each readable by its owner only; how many there were."""
    count = 0
    try:
        with tarfile.open(fileobj=_Stream(chunks), mode="r|") as tar:
            for member in tar:
                count += 1
                if count > FILES_MAX:
                    raise IntegrityBroken("the archive has too many files", hint=ANOTHER)
                _write(tar, member, folder)
    except tarfile.TarError as error:
        raise IntegrityBroken(f"an archive in the backup can't be read: {error}", hint=ANOTHER) from error
    for _ in chunks:  # to the end: only there its digest is compared
        pass
    return count


class _Stream(io.RawIOBase):
    """Chunks as a file that is read once, from start to end."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._held = chunks, b""

    def readable(self) -> bool:
        """It is only read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        while len(self._held) < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._held += chunk
        out, self._held = self._held[:size], self._held[size:]
        return out


def _is_kept(file: Path) -> bool:
    is_passing = file.name == LOCK or file.suffix in PASSING
    return not is_passing and not file.is_symlink() and file.is_file()


def _add(tar: tarfile.TarFile, name: str, content: bytes, changed: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(content), stat.S_IRUSR | stat.S_IWUSR, changed
    tar.addfile(member, io.BytesIO(content))


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    name = PurePosixPath(member.name)
    if not member.isreg() or name.is_absolute() or ".." in name.parts or "\\" in member.name or ":" in name.parts[0]:
        raise IntegrityBroken(f"the archive has an entry that handrail does not write: {member.name!r}", hint=ANOTHER)
    content = tar.extractfile(member)
    target = folder.joinpath(*name.parts)
    make_private_folder(target.parent)
    file = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(file, "wb") as opened:
        while content is not None and (chunk := content.read(1 << 20)):
            opened.write(chunk)
        opened.flush()
        os.fsync(file)
    os.chmod(target, 0o644 if target.suffix == PUBLIC else 0o600)  # noqa: PTH101 - the mode of the file just written
