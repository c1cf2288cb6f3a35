"""What is known about a repository before it is asked anything: git itself, where its parts are, what of its
configuration is used, and which files it has.

Asked once, and again as soon as one of the files and folders changes that decide it: a process for each question,
several times in every check, was most of what a check cost. A repository whose configuration includes other files is
always asked."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from handrail.domain.metrics.cache_catalog import GIT_FACTS
from handrail.foundation.cache_use import use_of
from handrail.foundation.locked_cache import LockedCache
from handrail.foundation.program_search import programs_named
from handrail.rules.files.git_language import EXCLUDES, Hidden, configured
from handrail.rules.files.git_process import HOW_TO_GET, GitUnavailable, run_git
from handrail.rules.files.project import ProjectFiles

PASSED_ON: Final = ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP")
ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ALLOW_PROTOCOL": "none",  # never fetch a missing object, whatever the repository configures
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_PAGER": "cat",
}
OPTIONS: Final = (
    *("--no-pager", "--no-replace-objects", "--literal-pathspecs"),
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "core.pager=cat"),
)
BORROWED: Final = ("autocrlf", "eol", "filemode", "ignorecase", "symlinks", "precomposeunicode")
"""The part of a repository's configuration that is used: how names and line ends are compared, but no programs."""
USED: Final = frozenset({EXCLUDES, *(f"core.{name}" for name in BORROWED)})
FORMS: Final = frozenset({"sha1", "sha256"})
FILE: Final = "file:"
KNOWN_MAX: Final = 100
WATCHED_MAX: Final = 100
SETTLED_NS: Final = 2_000_000_000
"""Two changes within one tick of a clock may leave the same times; some file systems count whole seconds."""
TICK_NS: Final = 50_000_000
SECOND_NS: Final = 1_000_000_000
SYSTEM: Final = Path("/etc/gitconfig")

LISTINGS_WEIGHT_MAX: Final = 1_000_000
FOLDERS_MAX: Final = 5_000
"""How many folders are watched for new and deleted files."""
NO_ENTRIES: Final[tuple[str, ...]] = ()

Stamp: TypeAlias = tuple[int, int, int, int] | None


class RepositoryParts(Struct, frozen=True):
    """The object format of a repository, and where its parts are."""

    form: str
    top: Path
    index: Path
    objects: Path
    exclude: Path


class RepositoryFacts(Struct, frozen=True):
    """Where a repository is, and what of its configuration is used, by key."""

    parts: RepositoryParts
    configured: tuple[tuple[str, str], ...]


class _Known(Struct, frozen=True):
    """Facts, and the files that decided them as they were then."""

    facts: RepositoryFacts
    watched: tuple[Path, ...]
    stamps: tuple[Stamp, ...]


class FileListing(Struct, frozen=True):
    """All files that git tracks or would add: as `ls-files -v -z` says it, and their names in order."""

    said: bytes
    names: list[str]
    hidden: tuple[Hidden, ...] | None = ()
    """What git ignores, but for what tools fill by themselves; None if that is too much."""


class _KnownListing(Struct, frozen=True):
    """A listing, and what decided it as it was then."""

    listing: FileListing
    decided: tuple[RepositoryFacts, bytes]
    watched: tuple[str, ...]
    stamps: tuple[Stamp, ...]


class FolderWatch(Struct, frozen=True):
    """Folders and patterns of a project whose change may give it other files, as they were at some time."""

    at_ns: int
    stamps: dict[str, Stamp] = field(default_factory=dict)

    def add(self, paths: Iterable[str]) -> None:
        """Watch these, too."""
        for path in paths:
            self.stamps[path] = _exact_stamp(path)


USE: Final = use_of(GIT_FACTS)
_facts: LockedCache[tuple[str, ...], _Known] = USE.keeps(LockedCache(KNOWN_MAX))
_listings: LockedCache[str, _KnownListing] = USE.keeps(LockedCache(LISTINGS_WEIGHT_MAX))


def known_listing(project: ProjectFiles, facts: RepositoryFacts, ignored: bytes) -> FileListing | None:
    """The files of a project if nothing has changed that decides which they are; else None."""
    known = _listings.get(str(project.root))
    if known is None or known.decided != (facts, ignored):
        return None
    if tuple(map(_exact_stamp, known.watched)) != known.stamps:
        return None
    USE.hit()
    return known.listing


def watch_from_now(project: ProjectFiles, facts: RepositoryFacts) -> FolderWatch:
    """What decides the listing of a project outside of its folders: to be called before git is asked."""
    watch = FolderWatch(time.time_ns())
    watch.add([str(facts.parts.index)])
    above = (folder for folder in project.root.parents if folder.is_relative_to(facts.parts.top))
    watch.add(str(folder / ".gitignore") for folder in above)
    return watch


def watch_folders(project: ProjectFiles, listing: FileListing, start: Sequence[str], watch: FolderWatch) -> list[str]:
    """Watch these folders and all below them that have listed files. The others are returned: git ignores most of them,
    and then what is in them does not matter."""
    lit = {folder for name in listing.names for folder in _above(name)}
    lit |= {f"{name.rstrip('/')}/" for name in listing.names}  # a repository inside is listed as one name
    waiting: list[str] = list(start)
    dark: list[str] = []
    while waiting and len(watch.stamps) <= FOLDERS_MAX:
        folder = waiting.pop()
        at = f"{project.root}/{folder}".rstrip("/")
        watch.add([at])
        for name in _folders_in(at, watch) if not folder or not os.path.lexists(f"{at}/.git") else NO_ENTRIES:
            inside = f"{folder}{name}/"
            (waiting if inside in lit else dark).append(inside)
    return dark


def keep_listing(
    project: ProjectFiles, facts: RepositoryFacts, ignored: bytes, listing: FileListing, watch: FolderWatch
) -> FileListing:
    """Remember a listing, if a later change would show."""
    stamps = tuple(watch.stamps.values())
    # A change within the tick of a clock leaves the same time: what is younger than that can't be trusted later.
    if len(stamps) <= FOLDERS_MAX and all(_has_settled(stamp, watch.at_ns) for stamp in stamps):
        known = _KnownListing(listing, (facts, ignored), tuple(watch.stamps), stamps)
        _listings.put(str(project.root), known, weight=len(listing.names) + len(stamps))
    return listing


def _above(name: str) -> Iterator[str]:
    """The folders of a file, each with a slash at its end."""
    while (end := name.rstrip("/").rfind("/")) >= 0:
        name = name[: end + 1]
        yield name


def _folders_in(folder: str, watch: FolderWatch) -> list[str]:
    """The folders in a folder; the patterns in it are watched, too."""
    try:
        with os.scandir(folder) as entries:
            found = list(entries)
    except OSError:  # removed meanwhile, or not readable: then it is not known what may be in it
        watch.stamps[folder] = (watch.at_ns, watch.at_ns, 0, 0)
        return []
    watch.add(entry.path for entry in found if entry.name == ".gitignore")
    return [one.name for one in found if one.name != ".git" and one.is_dir(follow_symlinks=False)]


def _exact_stamp(path: str) -> Stamp:
    """When a file or a folder changed last; of a link, the time is now, because what it leads to is not looked at."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return (time.time_ns(), 0, 0, 0)
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def _has_settled(stamp: Stamp, now_ns: int) -> bool:
    """Whether a later change would show in the times."""
    if stamp is None:
        return True
    coarse = SETTLED_NS if stamp[0] % SECOND_NS == 0 else TICK_NS
    return max(stamp[0], stamp[1]) < now_ns - coarse


async def facts_of(project: ProjectFiles) -> RepositoryFacts:
    """The facts about the repository around a project; GitUnavailable if there is none."""
    program, environment = git_program(project), git_environment()
    # Everything that git would answer differently by; the folder alone is not enough.
    key = (str(project.root), program, *(environment.get(name, "") for name in PASSED_ON))
    known = _facts.get(key)
    if known is not None and _stamps(known.watched) == known.stamps:
        USE.hit()
        return known.facts
    started_ns = time.time_ns()
    with USE.making():
        parts, (used, origins) = await asked_together(_parts(project, program), _configured(project, program))
    facts = RepositoryFacts(parts, used)
    watched = tuple(_watched(project, parts, origins or frozenset()))
    stamps = _stamps(watched)
    if origins is not None and _may_be_kept(stamps, started_ns):
        _facts.put(key, _Known(facts, watched, stamps))
    return facts


def _watched(project: ProjectFiles, parts: RepositoryParts, origins: frozenset[Path]) -> Iterator[Path]:
    """The files and folders by whose change the facts may be others: also those that are not there yet."""
    for folder in (project.root, *project.root.parents):
        # Also what is not there: that a file appears is a change, too.
        yield folder / ".git"  # a repository may be made between the project and the one that was found
        if folder == parts.top:
            break
    own, shared = parts.index.parent, parts.objects.parent
    yield from (own / "config.worktree", own / "commondir", shared / "config")
    home = Path(os.environ.get("HOME") or Path.home())
    yield SYSTEM
    yield from (home / ".gitconfig", Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config")
    yield from sorted(origins)


def _stamps(watched: tuple[Path, ...]) -> tuple[Stamp, ...]:
    return tuple(map(_stamp, watched))


def _stamp(path: Path) -> Stamp:
    """When it changed last. A folder, such as `.git`, changes all the time: which one it is counts."""
    try:
        status = path.stat()
    except OSError:
        return None
    if path.is_dir():
        return (0, 0, status.st_dev, status.st_ino)
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def _may_be_kept(stamps: tuple[Stamp, ...], now_ns: int) -> bool:
    """Whether a later change would show, in so many files."""
    changed = [max(stamp[0], stamp[1]) for stamp in stamps if stamp is not None]
    return len(stamps) <= WATCHED_MAX and max(changed, default=0) < now_ns - SETTLED_NS


async def _parts(project: ProjectFiles, program: str) -> RepositoryParts:
    """Where the parts of the repository are. The first query, so it also finds out whether there is a repository."""
    words = ["rev-parse", "--show-object-format", "--show-toplevel"]
    for name in ("index", "objects", "info/exclude"):
        words += ["--git-path", name]
    exit_, said, complaint = await run_git((program, *OPTIONS, *words), project.root, git_environment())
    form, *lines = os.fsdecode(said).splitlines() or [""]
    found = [(project.root / line).resolve() for line in lines]
    if exit_ or form not in FORMS or len(found) != 4 or not project.root.is_relative_to(found[0]):
        raise no_repository(complaint, project.root)
    return RepositoryParts(form, *found)


async def _configured(
    project: ProjectFiles, program: str
) -> tuple[tuple[tuple[str, str], ...], frozenset[Path] | None]:
    """The part of the configuration that is used, and the files that all of it comes from; None instead of these if it
    includes other files, which may come and go."""
    words = ("config", "-z", "--show-origin", "--list")
    exit_, said, _ = await run_git((program, *OPTIONS, *words), project.root, git_environment())
    pairs, sources = configured(said if not exit_ else b"")
    used = tuple((key, value) for key, value in pairs if key in USED)
    if exit_ or any(key.startswith("include") for key, _ in pairs):
        return used, None
    origins = {one.removeprefix(FILE) for one in sources if one.startswith(FILE)}
    return used, frozenset((project.root / one).resolve() for one in origins)


class NoRepository(GitUnavailable):
    """The project is in no repository, as far as can be seen."""


def no_repository(complaint: str, root: Path) -> GitUnavailable:
    """The error that a project is in no repository that can be read, with what git says about that."""
    words = f": {complaint}" if complaint and "not a git repository" not in complaint else ""
    kind = GitUnavailable if words or is_marked(root) else NoRepository
    return kind(f"the project is not in a readable git repository{words}", "create one with `git init` and commit")


def is_marked(root: Path) -> bool:
    """Whether there is something at or above a folder that makes it part of a repository, readable or not."""
    return any(os.path.lexists(folder / ".git") for folder in (root, *root.parents))


def git_program(project: ProjectFiles) -> str:
    """The git of this machine; GitUnavailable if there is none."""
    for found in programs_named("git"):
        if not Path(found).resolve().is_relative_to(project.root):  # one inside the project is not trusted
            return found
    raise GitUnavailable("git is not installed here", HOW_TO_GET)


def git_environment() -> dict[str, str]:
    """The environment of every git process."""
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**passed, **ENVIRONMENT, "PATH": os.defpath}


async def asked_together(*asking: Coroutine[Any, Any, Any]) -> list[Any]:
    """The answers of queries that run at the same time; the first error, once all have ended."""
    answers = await asyncio.gather(*asking, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return answers
