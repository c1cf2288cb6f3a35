"""The file system of a sandbox: the system's folders, a few files of /etc, the project, and nothing else.

Builds the options of bubblewrap for it: folders that a command may change, folders that it may only read, and empty
folders in place of private ones. bubblewrap.py starts the sandbox; where the content of a folder comes from that is
thrown away afterwards is decided in overlay.py and project_copy.py."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from handrail.domain.definition.model import Category
from handrail.engine.sandbox import Job
from handrail.engine.tool import ToolFailed
from handrail.tools.files.rooted import OWN_FOLDER
from handrail.tools.sandbox.shown_places import ShownPlaces, Surroundings, shown_places

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")
NEEDED: Final = (
    *("alternatives", "ca-certificates", "crypto-policies", "debian_version", "fonts", "group", "host.conf", "hosts"),
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "maven/logging", "maven/m2.conf"),
    *("mime.types", "nsswitch.conf", "os-release", "passwd"),
    *("pki/ca-trust", "pki/tls/certs", "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "terminfo"),
)
"""Files of /etc that programs need: no keys, no passwords, no settings of services."""
NEEDED_FOR_NETWORK: Final = ("gai.conf", "resolv.conf")
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT: Final = {"HOME": "/tmp", "LANG": "C.UTF-8", "PATH": PATH, "TMPDIR": "/tmp"}  # noqa: S108 - the sandbox's own
OWN_CODE: Final = str(Path(__file__).parents[2])
EMPTY_BYTES: Final = 4_096
NEVER_ADDED: Final = (Path("/etc"), Path("/proc"), Path("/sys"), Path("/dev"), Path("/run"), Path("/boot"))
"""Folders of the machine in which nothing is shown because a tool is there."""
NO_SOURCES: Final[Mapping[Path, str]] = MappingProxyType({})


@dataclass(frozen=True)
class SandboxView:
    """The project, and the folders of this machine that its commands may see or not."""

    root: Path
    private: Sequence[Path] = ()
    """Folders that no command may see, wherever they are."""
    read: Sequence[Path] = ()
    """More folders that a command may read."""

    def options(self, job: Job, sources: Mapping[Path, str] = NO_SOURCES, covered: Sequence[Path] = ()) -> list[str]:
        """The options for the file system of a job; ToolFailed if that can't be done safely.

        `sources` says for some folders what is shown there instead of themselves; `covered` are files that are shown
        empty."""
        root = self.root.resolve()
        require_own_project(root)
        system = [Path(name) for name in SYSTEM if Path(name).is_dir()]
        shown = self.shown(job)
        read = self.readable(job)
        private = self.hidden()
        homes = [home for home in _homes() if _is_in_any(home, system)]
        beside = [path for path in private if _is_in_any(path, [*system, *read]) and not _is_in(path, root)]
        inside = [path for path in private if _is_in(path, root)]
        return [
            *_system(sources, network=job.bounds.network),
            *("--proc", "/proc", "--dev", "/dev"),
            *_temporary(job, sources),
            *_empty(homes),
            *_each("--ro-bind", read, sources),
            *_each("--ro-bind", shown.files),
            *_covered(covered),
            *_empty([*beside, *shown.covered_folders]),
            *_covered(shown.covered_files),
            *(word for link, target in shown.links for word in ("--symlink", str(target), str(link))),
            *_project(root, inside, job, sources),
            # /proc too: bubblewrap covers the kernel's settings only if their folder is writable, which it never is.
            *_closed([*homes, *beside, *shown.covered_folders, *inside, Path("/dev"), Path("/proc"), Path("/")]),
            *("--chdir", str(root / job.cwd)),
        ]

    def readable(self, job: Job) -> list[Path]:
        """The further folders that a command may read: those that a person allowed, and those of its own tools."""
        return [*self._allowed(), *self.shown(job).folders]

    def shown(self, job: Job) -> ShownPlaces:
        """The places of the command's own tools that may be shown."""
        visible = [
            *(Path(name) for name in SYSTEM if Path(name).is_dir()),
            *NEVER_ADDED,
            self.root.resolve(),
            *self._allowed(),
        ]
        return shown_places(job.shows, Surroundings(visible=visible, homes=_homes(), private=self.hidden()))

    def _allowed(self) -> list[Path]:
        root = self.root.resolve()
        found = (folder.expanduser().resolve() for folder in self.read)
        return [folder for folder in found if folder.is_dir() and not _is_in(folder, root)]

    def hidden(self) -> list[Path]:
        """The private folders that exist."""
        return [folder.resolve() for folder in self.private if folder.is_dir()]


def require_own_project(root: Path) -> None:
    """Refuse a project that contains the system, or a whole home folder."""
    holds = [Path(name) for name in (*SYSTEM, "/etc", "/proc") if Path(name).exists()]
    if any(_is_in(folder, root) for folder in (*holds, *_homes())):
        message = f"{root} contains more than a project; run handrail in a project folder below your home"
        raise ToolFailed(Category.PERMISSION, message)


def environment_options(job: Job) -> list[str]:
    """The options for the command's environment: a few default variables, and those of the job."""
    values = {**ENVIRONMENT, **job.env}
    return [option for name, value in values.items() for option in ("--setenv", name, value)]


def _system(sources: Mapping[Path, str], *, network: bool) -> Iterator[str]:
    for folder in map(Path, SYSTEM):
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from _each("--ro-bind", [folder], sources)
    java = [path.name for path in Path("/etc").glob("java-*-openjdk")]  # Debian's Java does not start without this
    for name in (*NEEDED, *java, *(NEEDED_FOR_NETWORK if network else ())):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _temporary(job: Job, sources: Mapping[Path, str]) -> Iterator[str]:
    """Folders for temporary files, in memory: together at most as much as the command may use."""
    for folder in ("/dev/shm", "/tmp"):  # noqa: S108 - the sandbox's own
        if Path(folder) in sources:
            yield from _each("--bind", [Path(folder)], sources)
        else:
            yield from _room(folder, job.bounds.memory_bytes // 2)


def _project(root: Path, hidden: Sequence[Path], job: Job, sources: Mapping[Path, str]) -> Iterator[str]:
    option = "--bind" if job.writable else "--ro-bind"
    yield from _each(option, [root], sources)
    if job.kept or root not in sources:
        yield from _guarded(root, hidden, writable=job.writable)
        return
    # Nothing needs a guard where all changes are thrown away; private folders must not even be seen.
    yield from _each(option, sorted(folder for folder in sources if root in folder.parents), sources)
    yield from _empty(sorted(hidden))


def _guarded(root: Path, hidden: Sequence[Path], *, writable: bool) -> Iterator[str]:
    """The options for what is in the project and must not be changed, or not even be seen."""
    kept = [_own_folder(root), *_own_code(root)]
    kept = [path for path in kept if path.exists() and not _is_in_any(path, hidden)]
    # A mount can't be renamed, but its parent folder can, and be replaced by another one: so that is mounted too.
    above = {parent for path in (*kept, *hidden) for parent in path.parents if _is_in(parent, root) and parent != root}
    yield from _each("--bind" if writable else "--ro-bind", sorted(above - {*kept, *hidden}))
    yield from _each("--ro-bind", sorted(kept))
    yield from _empty(sorted(hidden))


def _own_folder(root: Path) -> Path:
    """handrail's folder in the project, created before a command could do so: its configuration grants permissions."""
    folder = root / OWN_FOLDER
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        message = (
            f"{OWN_FOLDER} in the project is a link or a file; make it a folder, so that its settings are protected"
        )
        raise ToolFailed(Category.PERMISSION, message)
    try:
        folder.mkdir(exist_ok=True)
    except OSError:  # if it can't be created here, a command can't create it in the sandbox either
        return folder
    return folder


def _own_code(root: Path) -> Iterator[Path]:
    """handrail's code and its Python, if they are in the project: they run outside of the sandbox next time."""
    for name in {sys.prefix, sys.base_prefix, OWN_CODE}:
        place = Path(name).resolve()
        if _is_in(place, root) and place != root:
            yield place


def _homes() -> list[Path]:
    """The user's home folder, unless it is the root folder."""
    try:
        home = Path.home().resolve()
    except RuntimeError:  # the user is not in the user database
        return []
    return [home] if home != Path("/") else []


def _room(folder: str, size: int) -> Iterator[str]:
    """A folder in memory with a size limit."""
    yield from ("--size", str(size), "--tmpfs", folder)


def _empty(folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        yield from _room(str(folder), EMPTY_BYTES)


def _covered(files: Iterable[Path]) -> Iterator[str]:
    for file in files:
        yield from ("--ro-bind", "/dev/null", str(file))


def _closed(folders: Iterable[Path]) -> Iterator[str]:
    """Make folders read-only: done last, because other folders may have to be mounted into them first."""
    for folder in folders:
        yield from ("--remount-ro", str(folder))


def _each(option: str, folders: Iterable[Path], sources: Mapping[Path, str] = NO_SOURCES) -> Iterator[str]:
    for folder in folders:
        yield from (option, sources.get(folder, str(folder)), str(folder))


def _is_in_any(path: Path, folders: Iterable[Path]) -> bool:
    return any(_is_in(path, folder) for folder in folders)


def _is_in(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents
