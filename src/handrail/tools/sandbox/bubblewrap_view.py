"""The file system of a sandbox: the system's folders, a few files of /etc, the project, and nothing else.

Builds the options of bubblewrap for it: folders that a command may change, folders that it may only read, and empty
folders in place of private ones. bubblewrap.py starts the sandbox."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from handrail.domain.definition.model import Category
from handrail.engine.sandbox import Job
from handrail.engine.tool import ToolFailed
from handrail.tools.files.rooted import OWN_FOLDER

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store")
NEEDED: Final = (
    *("alternatives", "ca-certificates", "crypto-policies", "debian_version", "fonts", "group", "host.conf", "hosts"),
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf", "os-release", "passwd"),
    *("pki/ca-trust", "pki/tls/certs", "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "terminfo"),
)
"""Files of /etc that programs need: no keys, no passwords, no settings of services."""
NEEDED_FOR_NETWORK: Final = ("gai.conf", "resolv.conf")
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT: Final = {"HOME": "/tmp", "LANG": "C.UTF-8", "PATH": PATH, "TMPDIR": "/tmp"}  # noqa: S108 - the sandbox's own
OWN_CODE: Final = str(Path(__file__).parents[2])
EMPTY_BYTES: Final = 4_096


@dataclass(frozen=True)
class SandboxView:
    """The project, and the folders of this machine that its commands may see or not."""

    root: Path
    private: Sequence[Path] = ()
    """Folders that no command may see, wherever they are."""
    read: Sequence[Path] = ()
    """More folders that a command may read."""

    def options(self, job: Job) -> list[str]:
        """The options for the file system of a job; ToolFailed if that can't be done safely."""
        root = self.root.resolve()
        require_own_project(root)
        system = [Path(name) for name in SYSTEM if Path(name).is_dir()]
        read = self._read(root)
        private = [folder.resolve() for folder in self.private if folder.is_dir()]
        homes = [home for home in _homes() if _is_in_any(home, system)]
        beside = [path for path in private if _is_in_any(path, [*system, *read]) and not _is_in(path, root)]
        inside = [path for path in private if _is_in(path, root)]
        return [
            *_system(network=job.bounds.network),
            *("--proc", "/proc", "--dev", "/dev"),
            *_room("/dev/shm", job.bounds.memory_bytes // 2),  # noqa: S108 - the sandbox's own
            *_room("/tmp", job.bounds.memory_bytes // 2),  # noqa: S108 - the sandbox's own
            *_empty(homes),
            *_each("--ro-bind", read),
            *_empty(beside),
            *_each("--bind" if job.writable else "--ro-bind", [root]),
            *_guarded(root, inside, writable=job.writable),
            # /proc too: bubblewrap covers the kernel's settings only if their folder is writable, which it never is.
            *_closed([*homes, *beside, *inside, Path("/dev"), Path("/proc"), Path("/")]),
            *("--chdir", str(root / job.cwd)),
        ]

    def _read(self, root: Path) -> list[Path]:
        found = (folder.expanduser().resolve() for folder in self.read)
        return [folder for folder in found if folder.is_dir() and not _is_in(folder, root)]


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


def _system(*, network: bool) -> Iterator[str]:
    for folder in map(Path, SYSTEM):
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), str(folder))
        elif folder.is_dir():
            yield from ("--ro-bind", str(folder), str(folder))
    java = [path.name for path in Path("/etc").glob("java-*-openjdk")]  # Debian's Java does not start without this
    for name in (*NEEDED, *java, *(NEEDED_FOR_NETWORK if network else ())):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


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


def _closed(folders: Iterable[Path]) -> Iterator[str]:
    """Make folders read-only: done last, because other folders may have to be mounted into them first."""
    for folder in folders:
        yield from ("--remount-ro", str(folder))


def _each(option: str, folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        yield from (option, str(folder), str(folder))


def _is_in_any(path: Path, folders: Iterable[Path]) -> bool:
    return any(_is_in(path, folder) for folder in folders)


def _is_in(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents
