"""What git is asked and what it says: names, counts, commits and the contents of files. Pure; git.py and git_history.py
run it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

SUBJECT_MAX: Final = 500
MESSAGE_MAX: Final = 100_000
CONFIG: Final = """[core]
\trepositoryformatversion = 1
\tbare = false
\ttrustctime = true
\tsparseCheckout = true
[extensions]
\tobjectFormat = {form}
"""
EMPTY: Final = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The empty tree, compared with if there is no commit yet."""
LISTING: Final = ("ls-files", "-v", "--cached", "--others", "--exclude-standard", "-z")
STATUS: Final = ("status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=dirty")
IGNORED: Final = (
    *("status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all"),
    *("--ignored=matching", "--untracked-files=all"),
)
EXCLUDES: Final = "core.excludesfile"
PLAIN: Final = "100"
"""How the mode of a plain file starts."""

HEAVY: Final = frozenset(
    {
        *(".git", ".hg", ".svn", ".handrail", "node_modules", ".venv", "venv", ".tox", ".nox", "site-packages"),
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".gradle", ".idea", ".next", ".cache"),
        *("target", "build", "dist", "coverage", "htmlcov"),
    }
)
"""The folders that tools fill by themselves."""

_flagged = re.compile(rb"(?:^|\0)[a-zS] ")
_raw = re.compile(r":\d{6} (\d{6}) [0-9a-f]+ ([0-9a-f]+) [A-Z]\d*")


class Changed(Struct, frozen=True):
    """A changed file, with the number of added and deleted lines."""

    path: str
    added: int = 0
    deleted: int = 0
    is_untracked: bool = False


class Changes(Struct, frozen=True, kw_only=True):
    """All changes since a commit, by path, and the git command that was run."""

    files: tuple[Changed, ...]
    base: str
    version: str
    ran: tuple[str, ...]


class Present(Struct, frozen=True):
    """A project as it is now."""

    commit: str
    branch: str
    uncommitted: tuple[Changed, ...]
    files: list[str]
    """All files that git tracks or would add."""
    apart: list[str]
    """Those of them that a sparse checkout leaves out."""


class Hidden(Struct, frozen=True):
    """A file or folder that git ignores, and why: the pattern, and the file that it is in, from the top."""

    path: str
    source: str
    pattern: str


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


def as_environment(configured: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The harmless part of the repository's configuration, as environment variables for git."""
    pairs = [(key, value) for key, value in configured if key != EXCLUDES]
    env = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for at, (key, value) in enumerate(pairs):
        env |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
    return env


def texts(said: bytes, between: str = "\0") -> list[str]:
    """The parts of an output, as names of files are decoded."""
    return [text for text in said.decode(errors="surrogateescape").split(between) if text]


def counted(said: bytes) -> Iterator[Changed]:
    """The changed files, from `diff --numstat -z`."""
    for one in texts(said):
        added, deleted, path = one.split("\t", 2)
        yield Changed(path, int(added), int(deleted))


def linked(said: bytes) -> list[str]:
    """The folders with submodules, from `ls-files --stage -z`."""
    return [one.partition("\t")[2] for one in texts(said) if one.startswith("160000 ")]


def others(listed: bytes) -> list[str]:
    """The files that git does not track, from `ls-files -v -z`."""
    return [one[2:].decode(errors="surrogateescape") for one in listed.split(b"\0") if one.startswith(b"? ")]


def apart(listed: bytes) -> list[str]:
    """The files that are in the index and left out of the work tree, from `ls-files -v -z`: of a sparse checkout."""
    return [one[2:].decode(errors="surrogateescape") for one in listed.split(b"\0") if one[:2] in {b"S ", b"s "}]


def ignored_names(said: bytes) -> list[str]:
    """What git ignores, from the top, from `status --ignored=matching -z`: a folder if a pattern matches it."""
    return [one[3:] for one in texts(said) if one.startswith("!! ")]


def explained(said: bytes) -> Iterator[Hidden]:
    """Why files are ignored, from `check-ignore -v -z`."""
    fields = said.decode(errors="surrogateescape").split("\0")
    for source, _, pattern, path in zip(*(fields[at::4] for at in range(4)), strict=False):
        yield Hidden(path.removeprefix("./"), source, pattern)


def is_flagged(listed: bytes) -> bool:
    """Whether there is an entry in the index that git would not look at, in the output of `ls-files -v -z`."""
    return _flagged.search(listed) is not None


def configured(said: bytes) -> tuple[list[tuple[str, str]], list[str]]:
    """The settings by key, and where each comes from, from `config -z --show-origin --list`."""
    fields = said.decode(errors="surrogateescape").split("\0")[:-1]
    pairs = [one.partition("\n") for one in fields[1::2] if "\n" in one]
    return [(key, value) for key, _, value in pairs], fields[::2]


def commits(said: bytes) -> list[Commit]:
    """The commits, from `log -z --format=%H %s`."""
    parts = [line.partition(" ") for line in texts(said)]
    return [Commit(oid, subject[:SUBJECT_MAX]) for oid, _, subject in parts]


def messages(said: bytes) -> dict[str, str]:
    """The messages by commit, from `log -z --format=%H %B`."""
    parts = [line.partition(" ") for line in texts(said)]
    return {oid: message[:MESSAGE_MAX] for oid, _, message in parts}


def versions(said: Sequence[str]) -> Iterator[FileVersion]:
    """What each commit gave a file, from `log --raw -z` with commits marked by \\x01."""
    commit, parts = "", iter(said)
    for part in parts:
        if part.startswith("\x01"):
            commit = part[1:]
        elif found := _raw.fullmatch(part.lstrip("\n")):
            path = next(parts, "")
            if found[1].startswith(PLAIN):  # not deleted
                yield FileVersion(commit, path, found[2])


def plain_files(said: bytes) -> Iterator[tuple[str, str]]:
    """The plain files of a tree by path, each with its object, from `ls-tree -z`."""
    for line in texts(said):
        about, _, path = line.partition("\t")
        mode, _, oid = about.split(" ")
        if mode.startswith(PLAIN):
            yield path, oid


def objects(said: bytes) -> Iterator[tuple[str, bytes]]:
    """The contents by object, from `cat-file --batch`."""
    at = 0
    while at < len(said):
        end = said.index(b"\n", at)
        oid, _, size = said[at:end].decode().split(" ")
        yield oid, said[end + 1 : end + 1 + int(size)]
        at = end + 2 + int(size)
