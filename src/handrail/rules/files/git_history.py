"""Git's history of an untrusted project: the commits since another one, and what files contained.

Everything is asked as in git.py, in a git folder of our own. What it means is decided by the rules."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from handrail.rules.files.git import EMPTY, Repository, borrowed, commit_of
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.project import ProjectFiles

COMMITS_MAX: Final = 10_000
SUBJECT_MAX: Final = 500
MESSAGE_MAX: Final = 100_000
BLOB_BYTES_MAX: Final = 5_000_000
CONTENT_BYTES_MAX: Final = 30_000_000
"""How many bytes of old files are read together."""

_raw = re.compile(r":\d{6} (\d{6}) [0-9a-f]+ ([0-9a-f]+) [A-Z]\d*")


class Commit(Struct, frozen=True):
    """A commit, with the first line of its message."""

    oid: str
    subject: str

    def __str__(self) -> str:
        return f"{self.oid[:12]} {self.subject}"


class FileVersion(Struct, frozen=True):
    """What a file contained in a commit."""

    commit: str
    path: str
    oid: str


async def commits_since(project: ProjectFiles, commit: str) -> list[Commit]:
    """The commits that HEAD has and that one does not have, the latest first."""
    head = await commit_of(project, "HEAD")
    async with borrowed(project, commit, index=False) as repository:
        words = ("log", "-z", "--format=%H %s", f"--max-count={COMMITS_MAX}", *_range(repository, head))
        lines = _texts(await repository.output(*words)) if head not in EMPTY.values() else []
    return [Commit(line.partition(" ")[0], line.partition(" ")[2][:SUBJECT_MAX]) for line in lines]


async def messages_since(project: ProjectFiles, commit: str) -> dict[str, str]:
    """By commit, the message of each that HEAD has and that one does not have."""
    head = await commit_of(project, "HEAD")
    if head in EMPTY.values():
        return {}
    async with borrowed(project, commit) as repository:
        words = ("log", "-z", "--format=%H %B", f"--max-count={COMMITS_MAX}", *_range(repository, head))
        said = _texts(await repository.output(*words))
    return {one.partition(" ")[0]: one.partition(" ")[2][:MESSAGE_MAX] for one in said}


async def is_ancestor(project: ProjectFiles, commit: str, of: str) -> bool:
    """Whether a commit is another one, or before it; GitUnavailable if either does not exist."""
    older, newer = await commit_of(project, commit), await commit_of(project, of)
    async with borrowed(project, "HEAD", index=False) as repository:
        said = await repository.output("rev-list", "--max-count=1", older, f"^{newer}")
    return not said.strip()


async def versions_since(project: ProjectFiles, commit: str) -> list[FileVersion]:
    """Every content that the commits since then gave a file, each once."""
    head = await commit_of(project, "HEAD")
    if head in EMPTY.values():
        return []
    words = ("log", "-m", "--root", "--raw", "-z", "--no-abbrev", "--no-renames", "--relative", "--format=%x01%H")
    async with borrowed(project, commit, index=False) as repository:
        said = _texts(await repository.output(*words, *_range(repository, head)))
    found = {(one.path, one.oid): one for one in _versions(said)}
    return [one for one in found.values() if not project.is_private(project.root / one.path)]


async def contents(project: ProjectFiles, oids: Iterable[str]) -> dict[str, bytes]:
    """What these objects contain, without those that are too large; GitUnavailable if all together are."""
    wanted = sorted(set(oids))
    if not wanted:
        return {}
    async with borrowed(project, "HEAD", index=False) as repository:
        sizes = _texts(await repository.output("cat-file", "--batch-check", stdin=_lines(wanted)), "\n")
        kept = _fitting(sizes)
        said = await repository.output("cat-file", "--batch", stdin=_lines(kept)) if kept else b""
    return dict(_objects(said))


async def files_at(project: ProjectFiles, commit: str, paths: Sequence[str]) -> dict[str, bytes | None]:
    """What these files contained in a commit; None if they were not there."""
    async with borrowed(project, commit, index=False) as repository:
        said = _texts(await repository.output("ls-tree", "-r", "-z", repository.base))
    wanted = set(paths)
    oids: dict[str, str] = {}
    for line in said:
        about, _, path = line.partition("\t")
        mode, _, oid = about.split(" ")
        if path in wanted and mode.startswith("100"):
            oids[path] = oid
    known = await contents(project, oids.values())
    return {path: known.get(oids[path]) if path in oids else None for path in paths}


def _fitting(sizes: Iterable[str]) -> list[str]:
    """The objects that are files and not too large, from lines with name, kind and size."""
    known = [one.split(" ") for one in sizes if one.count(" ") == 2]
    kept = {oid: int(size) for oid, kind, size in known if kind == "blob" and int(size) <= BLOB_BYTES_MAX}
    if sum(kept.values()) > CONTENT_BYTES_MAX:
        message = f"the old files have more than {CONTENT_BYTES_MAX:,} bytes"
        raise GitUnavailable(message, "name fewer files in `paths`")
    return list(kept)


def _range(repository: Repository, head: str) -> tuple[str, ...]:
    return (head,) if repository.base in EMPTY.values() else (head, f"^{repository.base}")


def _versions(said: Sequence[str]) -> Iterator[FileVersion]:
    commit, parts = "", iter(said)
    for part in parts:
        if part.startswith("\x01"):
            commit = part[1:]
        elif found := _raw.fullmatch(part.lstrip("\n")):
            path = next(parts, "")
            if found[1].startswith("100"):  # a plain file that was not deleted
                yield FileVersion(commit, path, found[2])


def _objects(said: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(said):
        end = said.index(b"\n", at)
        oid, _, size = said[at:end].decode().split(" ")
        yield oid, said[end + 1 : end + 1 + int(size)]
        at = end + 2 + int(size)


def _texts(said: bytes, between: str = "\0") -> list[str]:
    return [text for text in os.fsdecode(said).split(between) if text]


def _lines(oids: Iterable[str]) -> bytes:
    return "".join(f"{oid}\n" for oid in oids).encode()
