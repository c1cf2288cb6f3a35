"""Files that a command finds with another content: written into its view of the project before it starts.

In a sandbox a script does that, because the view exists only there; a copy on disk is written to directly. Nothing
here may touch the project itself, not even through a link that leads out of the copy."""

from __future__ import annotations

import base64
import io
import shutil
import stat
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from handrail.engine.sandbox import Job

SCRIPT: Final = """set -e
cd "$1"
head -c "$2" | base64 -d | xargs -0 -r rm -f --
head -c "$3" | base64 -d | tar -xmf -
cd "$4"
shift 4
exec "$@"
"""
"""Reads the names of files to remove and an archive of files to write, each of a given length, then runs the command
with the rest of the input. The files are written as new: a build must notice that they are not those it was made of."""


def replacing(job: Job) -> Job:
    """The same command, which first replaces the files itself; it must be able to write into its view."""
    if not job.replaced:
        return job
    gone = "\0".join(path for path, content in job.replaced.items() if content is None)
    removed, archive = _encoded(gone.encode(errors="surrogateescape")), _encoded(_archive(job.replaced))
    depth = len(job.cwd.split("/")) if job.cwd else 0
    up, down = "/".join([".."] * depth) or ".", job.cwd or "."
    words = ("/bin/sh", "-c", SCRIPT, "sh", up, str(len(removed)), str(len(archive)), down)
    return replace(job, argv=(*words, *job.argv), stdin=removed + archive + job.stdin, writable=True, replaced={})


def _archive(contents: Mapping[str, bytes | None]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, content in contents.items():
            if content is not None:
                entry = tarfile.TarInfo(f"./{path}")
                entry.size, entry.mode = len(content), _mode(content)
                archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _mode(content: bytes) -> int:
    return 0o755 if content.startswith(b"#!") else 0o644


def write_replaced(copy: Path, replaced: Mapping[str, bytes | None]) -> None:
    """Replace files in a copy in which no command runs yet; ValueError for a path that leads out of it."""
    for path, content in replaced.items():
        parts = [part for part in path.split("/") if part not in {"", "."}]
        if not parts or ".." in parts:
            raise ValueError(f"{path} is not a path in the project")
        if content is None:
            _remove(copy, parts)
        else:
            _write(copy, parts, content)


def _remove(folder: Path, parts: Sequence[str]) -> None:
    for part in parts[:-1]:
        folder /= part
        if not _is_folder(folder):
            return  # nothing is there, or a link, which may lead out of the copy
    if not _is_folder(folder / parts[-1]):
        (folder / parts[-1]).unlink(missing_ok=True)


def _write(folder: Path, parts: Sequence[str], content: bytes) -> None:
    for part in parts[:-1]:
        folder /= part
        if not _is_folder(folder):
            folder.unlink(missing_ok=True)  # a file, or a link, which may lead out of the copy
            folder.mkdir()
    place = folder / parts[-1]
    if _is_folder(place):
        shutil.rmtree(place)  # it was a file then, so nothing in the folder was there
    place.unlink(missing_ok=True)  # not written in place: it may be a link
    place.write_bytes(content)
    place.chmod(_mode(content))


def _is_folder(place: Path) -> bool:
    try:
        return stat.S_ISDIR(place.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
