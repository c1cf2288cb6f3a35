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
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from handrail.domain.checks.finding import FixedBy
from handrail.foundation.locked_cache import LockedCache
from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.rules.files.git_facts import (
    OPTIONS,
    USE,
    FileListing,
    RepositoryFacts,
    RepositoryParts,
    asked_together,
    facts_of,
    git_environment,
    git_program,
    keep_listing,
    known_listing,
    watch_folders,
    watch_from_now,
)
from handrail.rules.files.git_language import (
    CONFIG,
    EMPTY,
    EXCLUDES,
    HEAVY,
    IGNORED,
    LISTING,
    STATUS,
    Changed,
    Changes,
    Hidden,
    Present,
    apart,
    as_environment,
    counted,
    explained,
    ignored_names,
    is_flagged,
    linked,
    others,
    texts,
)
from handrail.rules.files.git_process import WORDS_MAX, GitUnavailable, run_git
from handrail.rules.files.project import ProjectFiles

INDEX_BYTES_MAX: Final = 500_000_000
LINK_MODE: Final = (0o160000).to_bytes(4, "big")
SHARED_INDEX: Final = "sharedindex.*"
SHARED_MAX: Final = 20
EXCLUDE_BYTES_MAX: Final = 1_000_000
BRANCH_MAX: Final = 250
HIDDEN_MAX: Final = 50_000
DARK_ROUNDS_MAX: Final = 5
COMMITS_KNOWN_MAX: Final = 10_000
ALONE: Final = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
NO_EXCLUDES: Final = ("-c", f"core.excludesFile={os.devnull}")
"""Its patterns are read by us: see `_ignored`."""
NAME_ONE: Final = "write HEAD, a branch, a tag or a commit's hash"
REF_SCHEMA: Final = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[A-Za-z0-9_@]"}

_ref = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_@./{}~^+-]{0,199}")
_oid = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_commits: LockedCache[tuple[str, str], str] = LockedCache(COMMITS_KNOWN_MAX)
"""By repository and whole hash: the commit that it stands for."""


@dataclass(frozen=True)
class Repository:
    """A repository, read through a git folder of our own."""

    project: ProjectFiles
    program: str
    base: str
    prefix: str
    env: Mapping[str, str]
    facts: RepositoryFacts
    ignored: bytes

    async def output(self, *words: str, exits: frozenset[int] = frozenset({0}), stdin: bytes = b"") -> bytes:
        """The output of a git command."""
        argv = (self.program, *OPTIONS, *NO_EXCLUDES, *words)
        exit_, said, complaint = await run_git(argv, self.project.root, self.env, stdin)
        if exit_ not in exits:
            raise GitUnavailable(f"git failed: {complaint or f'exit {exit_}'}", "fix the repository, then submit again")
        return said

    async def compared(self, *words: str) -> tuple[bytes, bytes]:
        """The output of a command that compares files with the index, and the list of all files with their marks.

        Both are asked at the same time. Flags in the index can make git treat a file as unchanged without looking: then
        every file is compared first, and the command is repeated."""
        said, listing = await asked_together(self.output(*words), self.listing())
        if is_flagged(listing.said):
            await self.output("update-index", "-q", "--really-refresh", exits=frozenset({0, 1}))
            said = await self.output(*words)
        return said, listing.said

    async def listing(self) -> FileListing:
        """All files that git tracks or would add; asked for if that may have changed."""
        known = await asyncio.to_thread(known_listing, self.project, self.facts, self.ignored)
        if known is not None:
            return known
        with USE.making():
            return await self._listed_now()

    async def _listed_now(self) -> FileListing:
        watch = watch_from_now(self.project, self.facts)
        said, status = await asked_together(self.output(*LISTING), self.output(*IGNORED))
        hidden = await self._hidden(ignored_names(status))
        listing = FileListing(said, sorted({one[2:] for one in texts(said)}), hidden)
        folders = [""]
        for _ in range(DARK_ROUNDS_MAX):
            dark = await asyncio.to_thread(watch_folders, self.project, listing, folders, watch)
            folders = await self._not_ignored(dark)
            if not folders:
                return keep_listing(self.project, self.facts, self.ignored, listing, watch)
        return listing

    async def _hidden(self, names: Sequence[str]) -> tuple[Hidden, ...] | None:
        """Why these are ignored, without those that tools fill by themselves."""
        inside = [name.removeprefix(self.prefix) for name in names if name.startswith(self.prefix)]
        telling = [name for name in inside if HEAVY.isdisjoint(name.split("/"))]
        if not telling or len(telling) > HIDDEN_MAX:
            return None if telling else ()
        asked = "".join(f"./{name}\0" for name in telling).encode(errors="surrogateescape")
        words = ("--no-literal-pathspecs", "check-ignore", "-v", "-z", "--stdin")
        return tuple(explained(await self.output(*words, exits=frozenset({0, 1}), stdin=asked)))

    async def _not_ignored(self, folders: Sequence[str]) -> list[str]:
        """Those of these folders in which git would find a new file."""
        if not folders:
            return []
        asked = "".join(f"./{folder}\0" for folder in folders).encode(errors="surrogateescape")
        words = ("--no-literal-pathspecs", "check-ignore", "-z", "--stdin")  # it takes names as they are
        # Where git does not say, all are taken: too many are watched rather than too few.
        said = await self.output(*words, exits=frozenset({0, 1, 128}), stdin=asked)
        ignored = set(texts(said))
        return [folder for folder in folders if f"./{folder}" not in ignored]

    def paths(self, names: Iterable[str]) -> list[str]:
        """The names without those in private folders, which no rule may see."""
        return self.project.not_private(names)


async def changes(project: ProjectFiles, against: str = "HEAD") -> Changes:
    """The changes in the project since a commit, in tracked and untracked files."""
    if project.looks is None:
        return await _changes(project, against)
    return await project.looks.once(("changes", project, against), partial(_changes, project, against))


async def _changes(project: ProjectFiles, against: str) -> Changes:
    words = ("diff", "--numstat", "-z", "--no-renames", "--relative", "--no-ext-diff", "--no-textconv")
    async with borrowed(project, against) as repository:
        ran = (*words, "--ignore-submodules=dirty", repository.base)
        counts, listed = await repository.compared(*ran)
        inner = {one.path: one for one in await _in_submodules(repository)}
        known, new = {**inner, **{one.path: one for one in counted(counts)}}, others(listed)
        every = {**{name: Changed(name, is_untracked=True) for name in new if name not in known}, **known}
        files = tuple(every[name] for name in repository.paths(every))
        return Changes(files=files, base=repository.base, version=await version_of(project), ran=("git", *ran))


async def uncommitted(project: ProjectFiles, *, untracked: bool) -> Changes:
    """The files that differ from a checkout of the latest commit."""
    async with borrowed(project, "HEAD") as repository:
        ran = (*STATUS, f"--untracked-files={'all' if untracked else 'no'}")
        status, _ = await repository.compared(*ran)
        files = await asyncio.to_thread(_uncommitted, repository, status)
        files += await _in_submodules(repository)
        return Changes(files=files, base=repository.base, version=await version_of(project), ran=("git", *ran))


async def _in_submodules(repository: Repository) -> tuple[Changed, ...]:
    """The uncommitted files of submodules. Each is asked like a project: git itself would run what it configures."""
    if not await asyncio.to_thread(_has_links, Path(repository.env["GIT_DIR"])):
        return ()
    project, found = repository.project, list[Changed]()
    for folder in linked(await repository.output("ls-files", "--stage", "-z")):
        inner = ProjectFiles(project.root / folder, project.private)
        if _is_checked_out(inner.root):
            inside = await uncommitted(inner, untracked=True)
            found += (replace(one, path=f"{folder}/{one.path}") for one in inside.files)
    return tuple(found)


def _is_checked_out(root: Path) -> bool:
    """Whether a submodule has files: if not, git would find the repository around it."""
    return root.resolve() == root and os.path.lexists(root / ".git")


def _has_links(folder: Path) -> bool:
    """Whether the bytes of a submodule's mode are in the index: if not, there is none."""
    return any(LINK_MODE in file.read_bytes() for file in folder.glob("*index*") if file.is_file())


def _uncommitted(repository: Repository, status: bytes) -> tuple[Changed, ...]:
    inside = [one for one in texts(status) if one[3:].startswith(repository.prefix)]
    marks = {one[3:].removeprefix(repository.prefix): one[:2] for one in inside}
    return tuple(Changed(name, is_untracked=marks[name] == "??") for name in repository.paths(marks))


async def present(project: ProjectFiles) -> Present:
    """Commit, branch, uncommitted files and all files of a project, in as few and as parallel queries as possible: an
    agent waits for this whenever it is given a step."""
    async with borrowed(project, "HEAD") as repository:
        asking = repository.compared(*STATUS, "--untracked-files=all")
        (status, listed), branch = await asked_together(asking, branch_of(project))
        files = sorted({one[2:] for one in texts(listed)})
        dirty = await asyncio.to_thread(_uncommitted, repository, status)
        dirty += await _in_submodules(repository)
        return Present(repository.base, branch, dirty, files, apart(listed))


async def commit_of(project: ProjectFiles, against: str) -> str:
    """The commit that a name stands for."""
    parts = (await facts_of(project)).parts
    return _base(against, await _oid_of(project, parts, against), parts.form)


async def branch_of(project: ProjectFiles) -> str:
    """The branch that is checked out; empty if none is."""
    words = ("symbolic-ref", "--quiet", "--short", "HEAD")
    _, said, _ = await run_git((git_program(project), *OPTIONS, *words), project.root, git_environment())
    return os.fsdecode(said).strip()[:BRANCH_MAX]


async def known_files(project: ProjectFiles) -> list[str]:
    """All files that git tracks or would add; GitUnavailable if there is no repository."""
    facts = await facts_of(project)
    known = await asyncio.to_thread(known_listing, project, facts, await _ignored(facts))
    if known is not None:
        return known.names
    async with borrowed(project, "HEAD") as repository:
        return (await repository.listing()).names


async def outer_patterns(project: ProjectFiles) -> bytes:
    """The patterns of ignored files outside of the work tree."""
    return await _ignored(await facts_of(project))


async def hidden_files(project: ProjectFiles) -> tuple[Hidden, ...]:
    """What git ignores in a project; GitUnavailable if that is too much."""
    facts = await facts_of(project)
    listing = await asyncio.to_thread(known_listing, project, facts, await _ignored(facts))
    if listing is None:
        async with borrowed(project, "HEAD") as repository:
            listing = await repository.listing()
    if listing.hidden is None:
        message = f"git ignores more than {HIDDEN_MAX:,} files one by one"
        raise GitUnavailable(message, "let it ignore their folders", FixedBy.AGENT)
    return listing.hidden


async def apart_files(project: ProjectFiles) -> list[str]:
    """The files that a sparse checkout leaves out."""
    facts = await facts_of(project)
    listing = await asyncio.to_thread(known_listing, project, facts, await _ignored(facts))
    if listing is None:
        async with borrowed(project, "HEAD") as repository:
            listing = await repository.listing()
    return apart(listing.said)


async def version_of(project: ProjectFiles) -> str:
    """Git's own version."""
    program = git_program(project)
    return await _version(program, project.root)


async def _version(program: str, root: Path) -> str:
    key = _stamp(program)
    if key not in _versions:
        _, said, _ = await run_git((program, "--version"), root, git_environment())
        _versions.clear()
        _versions[key] = said.decode(errors="replace").removeprefix("git version ").strip()[:WORDS_MAX]
    return _versions[key]


def _stamp(program: str) -> tuple[str, int, int]:
    status = Path(program).stat()
    return program, status.st_mtime_ns, status.st_size


_versions: dict[tuple[str, int, int], str] = {}


@asynccontextmanager
async def borrowed(project: ProjectFiles, against: str, *, index: bool = True) -> AsyncIterator[Repository]:
    """The repository around a project, in a git folder of our own; without `index` only its history is read."""
    program, facts = git_program(project), await facts_of(project)
    parts = facts.parts
    base = _base(against, await _oid_of(project, parts, against), parts.form)
    ignored = await _ignored(facts)
    with tempfile.TemporaryDirectory(prefix="handrail-git-") as name:
        await asyncio.to_thread(_lay_out, Path(name), parts, base, ignored, index=index)
        env = {
            **git_environment(),
            **ALONE,
            **as_environment(facts.configured),
            "GIT_DIR": name,
            "GIT_WORK_TREE": str(parts.top),
        }
        env["GIT_OBJECT_DIRECTORY"] = str(parts.objects)
        prefix = project.root.relative_to(parts.top).as_posix()
        yield Repository(project, program, base, "" if prefix == "." else f"{prefix}/", env, facts, ignored)


def _lay_out(folder: Path, parts: RepositoryParts, base: str, ignored: bytes, *, index: bool) -> None:
    for name in ("objects", "refs", "info"):
        (folder / name).mkdir()
    head = "ref: refs/heads/none" if base == EMPTY[parts.form] else base
    (folder / "HEAD").write_text(f"{head}\n")
    (folder / "config").write_text(CONFIG.format(form=parts.form))
    if index:
        _copy(parts.index, folder / "index", bytes_max=INDEX_BYTES_MAX)
        for shared in islice(parts.index.parent.glob(SHARED_INDEX), SHARED_MAX):  # an index in two parts
            _copy(shared, folder / shared.name, bytes_max=INDEX_BYTES_MAX)
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


async def _oid_of(project: ProjectFiles, parts: RepositoryParts, against: str) -> str:
    """The commit that a name stands for; empty if there is none."""
    if not _ref.fullmatch(against):
        raise GitUnavailable(f"{against[:80]!r} is not the name of a commit", NAME_ONE, FixedBy.AGENT)
    if against in EMPTY.values():
        return ""  # a branch may have such a name
    key = (str(parts.objects), against)
    asking = partial(_asked_oid, project, against)
    together = asking if project.looks is None else partial(project.looks.once, ("commit", project, against), asking)
    oid = _commits.get(key) or await together()
    # What a whole hash stands for never changes. The length is that of this repository's: another one is a branch.
    return _commits.put(key, oid) if len(oid) == len(against) and _oid.fullmatch(against) else oid


async def _asked_oid(project: ProjectFiles, against: str) -> str:
    words = ("rev-parse", "--verify", "--quiet", f"{against}^{{commit}}")
    exit_, said, _ = await run_git((git_program(project), *OPTIONS, *words), project.root, git_environment())
    oid = said.decode(errors="replace").strip()
    return oid if exit_ == 0 and _oid.fullmatch(oid) else ""


def _base(against: str, oid: str, form: str) -> str:
    if not oid and against in {"HEAD", *EMPTY.values()}:
        return EMPTY[form]  # nothing was committed yet
    if not oid:
        raise GitUnavailable(f"there is no commit `{against}` here", NAME_ONE, FixedBy.AGENT)
    return oid


async def _ignored(facts: RepositoryFacts) -> bytes:
    """The patterns of ignored files outside of the work tree: those of the user, then those of the repository.

    Git would wait for a pipe that the repository names, and read a file of any size. The files are opened here: what is
    not a regular file of sensible size holds no patterns."""
    parts = facts.parts
    named = [value for key, value in facts.configured if key == EXCLUDES and value]
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
