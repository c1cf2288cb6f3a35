"""Git queries on an untrusted project: which files changed, and how much.

A repository can configure programs that git runs when it reads files (filters, monitors, drivers, transports), and
index flags that make git ignore changes. So only two queries use the repository's own configuration: where its parts
are, and which commit a name stands for. All other queries run in a temporary git folder of our own that uses the
repository's objects and a copy of its index: nothing that the repository configures is run or trusted. What the changes
mean is decided by the rules."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.rules.files.git_process import HOW_TO_GET, WORDS_MAX, GitUnavailable, run_git
from handrail.rules.files.project import ProjectFiles

INDEX_BYTES_MAX: Final = 500_000_000
EXCLUDE_BYTES_MAX: Final = 1_000_000
BRANCH_MAX: Final = 250
PASSED_ON: Final = ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP")
ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ALLOW_PROTOCOL": "none",  # never fetch a missing object, whatever the repository configures
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
}
ALONE: Final = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
OPTIONS: Final = (
    *("--no-pager", "--no-replace-objects", "--literal-pathspecs"),
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "core.pager=cat"),
)
NO_EXCLUDES: Final = ("-c", f"core.excludesFile={os.devnull}")
"""Its patterns are read by us: see `_ignored`."""
BORROWED: Final = ("autocrlf", "eol", "filemode", "ignorecase", "symlinks", "precomposeunicode")
"""The part of a repository's configuration that is used: how names and line ends are compared, but no programs."""
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
STATUS: Final = ("status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=dirty")
EXCLUDES: Final = "excludesfile"
NAME_ONE: Final = "write HEAD, a branch, a tag or a commit's hash"
REF_SCHEMA: Final = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[A-Za-z0-9_@]"}

_ref = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_@./{}~^+-]{0,199}")
_flagged = re.compile(rb"(?:^|\0)[a-zS] ")
"""An entry of the index that git would not look at, in the output of `ls-files -v`."""
_oid = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


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


class _Parts(Struct, frozen=True):
    """The object format of a repository, and where its parts are."""

    form: str
    top: Path
    index: Path
    objects: Path
    exclude: Path


@dataclass(frozen=True)
class Repository:
    """A repository, read through a git folder of our own."""

    project: ProjectFiles
    program: str
    base: str
    prefix: str
    env: Mapping[str, str]

    async def output(self, *words: str, exits: frozenset[int] = frozenset({0}), stdin: bytes = b"") -> bytes:
        """The output of a git command."""
        argv = (self.program, *OPTIONS, *NO_EXCLUDES, *words)
        exit_, said, complaint = await run_git(argv, self.project.root, self.env, stdin)
        if exit_ not in exits:
            raise GitUnavailable(f"git failed: {complaint or f'exit {exit_}'}", "fix the repository, then submit again")
        return said

    async def refresh(self) -> None:
        """Compare every file with the index: flags in it can make git treat a file as unchanged without looking."""
        await self.output("update-index", "-q", "--really-refresh", exits=frozenset({0, 1}))

    def paths(self, names: Iterable[str]) -> list[str]:
        """The names without those in private folders, which no rule may see."""
        return [name for name in sorted(names) if not self.project.is_private(self.project.root / name)]


async def changes(project: ProjectFiles, against: str = "HEAD") -> Changes:
    """The changes in the project since a commit, in tracked and untracked files."""
    words = ("diff", "--numstat", "-z", "--no-renames", "--relative", "--no-ext-diff", "--no-textconv")
    async with borrowed(project, against) as repository:
        ran = (*words, "--ignore-submodules=dirty", repository.base)
        listing = repository.output("ls-files", "--others", "--exclude-standard", "-z")
        counts, others = await _all(repository.output(*ran), listing)
        known, new = {one.path: one for one in _counted(counts)}, _names(others)
        every = {**{name: Changed(name, is_untracked=True) for name in new if name not in known}, **known}
        files = tuple(every[name] for name in repository.paths(every))
        return Changes(files=files, base=repository.base, version=await version_of(project), ran=("git", *ran))


async def uncommitted(project: ProjectFiles, *, untracked: bool) -> Changes:
    """The files that differ from a checkout of the latest commit."""
    async with borrowed(project, "HEAD") as repository:
        ran = (*STATUS, f"--untracked-files={'all' if untracked else 'no'}")
        files = _uncommitted(repository, await repository.output(*ran))
        return Changes(files=files, base=repository.base, version=await version_of(project), ran=("git", *ran))


def _uncommitted(repository: Repository, status: bytes) -> tuple[Changed, ...]:
    inside = [one for one in _names(status) if one[3:].startswith(repository.prefix)]
    marks = {one[3:].removeprefix(repository.prefix): one[:2] for one in inside}
    return tuple(Changed(name, is_untracked=marks[name] == "??") for name in repository.paths(marks))


async def present(project: ProjectFiles) -> Present:
    """Commit, branch, uncommitted files and all files of a project, in as few and as parallel queries as possible: an
    agent waits for this whenever it is given a step."""
    async with borrowed(project, "HEAD", refresh=False) as repository:
        asking = repository.output(*STATUS, "--untracked-files=all")
        listing = repository.output("ls-files", "-v", "--cached", "--others", "--exclude-standard", "-z")
        status, listed, branch = await _all(asking, listing, branch_of(project))
        if _flagged.search(listed):
            await repository.refresh()
            status = await repository.output(*STATUS, "--untracked-files=all")
        files = sorted({one[2:] for one in _names(listed)})
        return Present(repository.base, branch, _uncommitted(repository, status), files)


async def commit_of(project: ProjectFiles, against: str) -> str:
    """The commit that a name stands for."""
    program = _program(project)
    parts, oid = await _all(_parts(project, program), _oid_of(project, program, against))
    return _base(against, oid, parts.form)


async def branch_of(project: ProjectFiles) -> str:
    """The branch that is checked out; empty if none is."""
    words = ("symbolic-ref", "--quiet", "--short", "HEAD")
    _, said, _ = await run_git((_program(project), *OPTIONS, *words), project.root, _environment())
    return os.fsdecode(said).strip()[:BRANCH_MAX]


async def known_files(project: ProjectFiles) -> list[str]:
    """All files that git tracks or would add; GitUnavailable if there is no repository."""
    program = _program(project)
    parts, configured = await _all(_parts(project, program), _configured(project, program))
    ignored = await _ignored(configured, parts)
    with tempfile.TemporaryDirectory(prefix="handrail-git-") as folder:
        patterns = Path(folder) / "exclude"
        await asyncio.to_thread(patterns.write_bytes, ignored)
        # What `--exclude-standard` reads, but for the files that the repository may have replaced by pipes.
        words = ("--cached", "--others", "--exclude-per-directory=.gitignore", f"--exclude-from={patterns}", "-z")
        exit_, said, complaint = await run_git(
            (program, *OPTIONS, *NO_EXCLUDES, "ls-files", *words), project.root, _environment()
        )
    if exit_:
        raise _no_repository(complaint)
    return sorted(set(_names(said)))


async def version_of(project: ProjectFiles) -> str:
    """Git's own version."""
    program = _program(project)
    return await _version(program, project.root)


async def _version(program: str, root: Path) -> str:
    key = _stamp(program)
    if key not in _versions:
        _, said, _ = await run_git((program, "--version"), root, _environment())
        _versions.clear()
        _versions[key] = said.decode(errors="replace").removeprefix("git version ").strip()[:WORDS_MAX]
    return _versions[key]


def _stamp(program: str) -> tuple[str, int, int]:
    status = Path(program).stat()
    return program, status.st_mtime_ns, status.st_size


_versions: dict[tuple[str, int, int], str] = {}


@asynccontextmanager
async def borrowed(
    project: ProjectFiles, against: str, *, index: bool = True, refresh: bool = True
) -> AsyncIterator[Repository]:
    """The repository around a project, in a git folder of our own; without `index` only its history is read."""
    program = _program(project)
    parts, oid, configured = await _all(
        _parts(project, program), _oid_of(project, program, against), _configured(project, program)
    )
    base = _base(against, oid, parts.form)
    ignored = await _ignored(configured, parts)
    with tempfile.TemporaryDirectory(prefix="handrail-git-") as name:
        await asyncio.to_thread(_lay_out, Path(name), parts, base, ignored, index=index)
        env = {**_environment(), **ALONE, **_kept(configured), "GIT_DIR": name, "GIT_WORK_TREE": str(parts.top)}
        env["GIT_OBJECT_DIRECTORY"] = str(parts.objects)
        prefix = project.root.relative_to(parts.top).as_posix()
        repository = Repository(project, program, base, "" if prefix == "." else f"{prefix}/", env)
        if index and refresh and _flagged.search(await repository.output("ls-files", "-v", "-z")):
            await repository.refresh()
        yield repository


def _lay_out(folder: Path, parts: _Parts, base: str, ignored: bytes, *, index: bool) -> None:
    for name in ("objects", "refs", "info"):
        (folder / name).mkdir()
    head = "ref: refs/heads/none" if base == EMPTY[parts.form] else base
    (folder / "HEAD").write_text(f"{head}\n")
    (folder / "config").write_text(CONFIG.format(form=parts.form))
    if index:
        _copy(parts.index, folder / "index", bytes_max=INDEX_BYTES_MAX)
    # Overrides the repository's attributes: a file that they mark as binary is counted by lines like all others.
    (folder / "info" / "attributes").write_text("* diff\n")
    (folder / "info" / "exclude").write_bytes(ignored)


def _copy(source: Path, target: Path, *, bytes_max: int) -> None:
    if not source.is_file():
        return
    if source.stat().st_size > bytes_max:
        raise GitUnavailable(
            f"{source.name} of the repository is larger than {bytes_max:,} bytes", "use a smaller repository"
        )
    # With its times: git trusts the cached state of a file only if the index is newer than the file.
    shutil.copy2(source, target)


async def _oid_of(project: ProjectFiles, program: str, against: str) -> str:
    """The commit that a name stands for; empty if there is none."""
    if not _ref.fullmatch(against):
        raise GitUnavailable(f"{against[:80]!r} is not the name of a commit", NAME_ONE)
    words = ("rev-parse", "--verify", "--quiet", f"{against}^{{commit}}")
    exit_, said, _ = await run_git((program, *OPTIONS, *words), project.root, _environment())
    oid = said.decode(errors="replace").strip()
    return oid if exit_ == 0 and _oid.fullmatch(oid) else ""


def _base(against: str, oid: str, form: str) -> str:
    if not oid and against in {"HEAD", EMPTY[form]}:
        return EMPTY[form]  # nothing was committed yet
    if not oid:
        raise GitUnavailable(f"there is no commit `{against}` here", NAME_ONE)
    return oid


async def _parts(project: ProjectFiles, program: str) -> _Parts:
    """Where the parts of the repository are. The first query, so it also finds out whether there is a repository."""
    words = ["rev-parse", "--show-object-format", "--show-toplevel"]
    for name in ("index", "objects", "info/exclude"):
        words += ["--git-path", name]
    exit_, said, complaint = await run_git((program, *OPTIONS, *words), project.root, _environment())
    form, *lines = os.fsdecode(said).splitlines() or [""]
    found = [(project.root / line).resolve() for line in lines]
    if exit_ or form not in EMPTY or len(found) != 4 or not project.root.is_relative_to(found[0]):
        raise _no_repository(complaint)
    return _Parts(form, *found)


async def _configured(project: ProjectFiles, program: str) -> list[tuple[str, str]]:
    """The part of the repository's configuration that is used, by key."""
    words = ("config", "-z", "--get-regexp", rf"^core\.({'|'.join((*BORROWED, EXCLUDES))})$")
    _, said, _ = await run_git((program, *OPTIONS, *words), project.root, _environment())
    pairs = (one.partition("\n") for one in _names(said) if "\n" in one)
    return [(key, value) for key, _, value in pairs]


async def _ignored(configured: Sequence[tuple[str, str]], parts: _Parts) -> bytes:
    """The patterns of ignored files outside of the work tree: those of the user, then those of the repository.

    Git would wait for a pipe that the repository names, and read a file of any size. The files are opened here: what is
    not a regular file of sensible size holds no patterns."""
    named = [value for key, value in configured if key == f"core.{EXCLUDES}" and value]
    user = parts.top / _expanded(named[-1]) if named else _usual_ignore()
    return await asyncio.to_thread(lambda: _patterns(user) + b"\n" + _patterns(parts.exclude))


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:  # there is no such user
        return Path(path)


def _usual_ignore() -> Path:
    """Where git looks for the user's patterns if no file is named."""
    folder = os.environ.get("XDG_CONFIG_HOME") or Path(os.environ.get("HOME") or Path.home()) / ".config"
    return Path(folder) / "git" / "ignore"


def _patterns(file: Path) -> bytes:
    try:
        return read_plain(file, bytes_max=EXCLUDE_BYTES_MAX)
    except (OSError, NotPlain):
        return b""


def _kept(configured: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The harmless part of the repository's configuration, as environment variables for git."""
    pairs = [(key, value) for key, value in configured if key != f"core.{EXCLUDES}"]
    env = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for at, (key, value) in enumerate(pairs):
        env |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value}
    return env


def _counted(said: bytes) -> Iterator[Changed]:
    for one in _names(said):
        added, deleted, path = one.split("\t", 2)
        yield Changed(path, int(added), int(deleted))


def _names(said: bytes) -> list[str]:
    return [name for name in os.fsdecode(said).split("\0") if name]


def _no_repository(complaint: str) -> GitUnavailable:
    words = f": {complaint}" if complaint and "not a git repository" not in complaint else ""
    return GitUnavailable(
        f"the project is not in a readable git repository{words}", "create one with `git init` and commit"
    )


def _program(project: ProjectFiles) -> str:
    found = _on_path(os.environ.get("PATH", os.defpath), str(project.root))
    if not found:
        raise GitUnavailable("git is not installed here", HOW_TO_GET)
    return found


def _on_path(path: str, root: str) -> str:
    """The git of this machine; one inside the project is not trusted."""
    for folder in path.split(os.pathsep):
        found = shutil.which("git", path=folder) if Path(folder).is_absolute() else None
        if found and not Path(found).resolve().is_relative_to(root):
            return found
    return ""


def _environment() -> dict[str, str]:
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**passed, **ENVIRONMENT, "PATH": os.defpath}


async def _all(*asking: Coroutine[Any, Any, Any]) -> list[Any]:
    """The answers of queries that run at the same time; the first error, once all have ended."""
    answers = await asyncio.gather(*asking, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return answers
