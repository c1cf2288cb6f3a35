"""Git's history of an untrusted project: the commits since another one, and what files contained.

Everything is asked as in git.py, in a git folder of our own. What it means is decided by the rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from handrail.domain.checks.finding import FixedBy
from handrail.rules.files.git import Repository, borrowed, commit_of
from handrail.rules.files.git_language import (
    EMPTY,
    Commit,
    FileVersion,
    commits,
    messages,
    objects,
    plain_files,
    texts,
    versions,
)
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.project import ProjectFiles

COMMITS_MAX: Final = 10_000
BLOB_BYTES_MAX: Final = 5_000_000
NAMED_MAX: Final = 200
"""How many files are named to git."""
CONTENT_BYTES_MAX: Final = 30_000_000
"""How many bytes of old files are read together."""


async def commits_since(project: ProjectFiles, commit: str) -> list[Commit]:
    """The commits that HEAD has and that one does not have, the latest first."""
    head = await commit_of(project, "HEAD")
    async with borrowed(project, commit, index=False) as repository:
        words = ("log", "-z", "--format=%H %s", f"--max-count={COMMITS_MAX}", *_range(repository, head))
        return commits(await repository.output(*words)) if head not in EMPTY.values() else []


async def messages_since(project: ProjectFiles, commit: str) -> dict[str, str]:
    """By commit, the message of each that HEAD has and that one does not have."""
    head = await commit_of(project, "HEAD")
    if head in EMPTY.values() or head == commit:
        return {}
    async with borrowed(project, commit, index=False) as repository:
        words = ("log", "-z", "--format=%H %B", f"--max-count={COMMITS_MAX}", *_range(repository, head))
        return messages(await repository.output(*words))


async def is_ancestor(project: ProjectFiles, commit: str, of: str) -> bool:
    """Whether a commit is another one, or before it; GitUnavailable if either does not exist."""
    older, newer = await commit_of(project, commit), await commit_of(project, of)
    if older == newer:
        return True
    async with borrowed(project, older, index=False) as repository:
        said = await repository.output("rev-list", "--max-count=1", older, f"^{newer}")
    return not said.strip()


async def is_empty(project: ProjectFiles, commit: str) -> bool:
    """Whether a commit changes nothing; not if it is a merge."""
    async with borrowed(project, commit, index=False) as repository:
        words = ("log", "--max-count=1", "--format=%P", "--name-only", "--no-renames")
        parents, *names = (await repository.output(*words, repository.base)).decode(errors="replace").split("\n")
    return len(parents.split()) < 2 and not any(names)


async def versions_since(project: ProjectFiles, commit: str) -> list[FileVersion]:
    """Every content that the commits since then gave a file, each once."""
    head = await commit_of(project, "HEAD")
    if head in EMPTY.values() or head == commit:
        return []
    words = ("log", "-m", "--root", "--raw", "-z", "--no-abbrev", "--no-renames", "--relative", "--format=%x01%H")
    async with borrowed(project, commit, index=False) as repository:
        said = texts(await repository.output(*words, *_range(repository, head)))
    found = {(one.path, one.oid): one for one in versions(said)}
    return [one for one in found.values() if not project.is_private(project.root / one.path)]


async def contents(project: ProjectFiles, oids: Iterable[str]) -> dict[str, bytes]:
    """What these objects contain, without those that are too large; GitUnavailable if all together are."""
    wanted = sorted(set(oids))
    if not wanted:
        return {}
    async with borrowed(project, "HEAD", index=False) as repository:
        sizes = texts(await repository.output("cat-file", "--batch-check", stdin=_lines(wanted)), "\n")
        kept = _fitting(sizes)
        said = await repository.output("cat-file", "--batch", stdin=_lines(kept)) if kept else b""
    return dict(objects(said))


async def files_at(project: ProjectFiles, commit: str, paths: Sequence[str]) -> dict[str, bytes | None]:
    """What these files contained in a commit; None if they were not there."""
    few = ("--", *paths) if 0 < len(paths) <= NAMED_MAX else ()  # else all are listed
    async with borrowed(project, commit, index=False) as repository:
        said = await repository.output("ls-tree", "-r", "-z", repository.base, *few)
    wanted = set(paths)
    oids = {path: oid for path, oid in plain_files(said) if path in wanted}
    known = await contents(project, oids.values())
    return {path: known.get(oids[path]) if path in oids else None for path in paths}


def _fitting(sizes: Iterable[str]) -> list[str]:
    """The objects that are files and not too large, from lines with name, kind and size."""
    known = [one.split(" ") for one in sizes if one.count(" ") == 2]
    kept = {oid: int(size) for oid, kind, size in known if kind == "blob" and int(size) <= BLOB_BYTES_MAX}
    if sum(kept.values()) > CONTENT_BYTES_MAX:
        message = f"the old files have more than {CONTENT_BYTES_MAX:,} bytes"
        raise GitUnavailable(message, "name fewer files in `paths`", FixedBy.AGENT)
    return list(kept)


def _range(repository: Repository, head: str) -> tuple[str, ...]:
    return (head,) if repository.base in EMPTY.values() else (head, f"^{repository.base}")


def _lines(oids: Iterable[str]) -> bytes:
    return "".join(f"{oid}\n" for oid in oids).encode()
