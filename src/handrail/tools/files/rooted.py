"""Which paths a plan may use, and the failures for those that it may not.

Nothing outside of the project's folder: an absolute path or one with `..` is refused here, a link on the path by
foundation/rooted.py, which opens the folders. The operations on a path are in place.py."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolFailed
from handrail.foundation.rooted import (
    HAS_HANDLES,
    PATH_LENGTH_MAX,
    Blocked,
    EntryKind,
    Identity,
    entered,
    identities,
    identity,
    is_printable_path,
)
from handrail.tools.files.place import GuardedPath, own_folder, starts_programs, tool_failure

OWN_FOLDER: Final = ".handrail"
GIT_FOLDER: Final = ".git"
STARTERS: Final = frozenset(
    {
        *((".mcp.json",), (".envrc",), ("opencode.json",), ("opencode.jsonc",)),
        *((".claude", "settings.json"), (".claude", "settings.local.json")),
        *((".cursor", "mcp.json"), (".cursor", "hooks.json")),
        *((".vscode", "mcp.json"), (".vscode", "tasks.json"), (".vscode", "settings.json"), (".vscode", "launch.json")),
        *((".codex", "config.toml"), (".gemini", "settings.json"), (".devcontainer", "devcontainer.json")),
        *((".codex", "hooks.json"), (".qwen", "settings.json"), (".zed", "settings.json"), (".zed", "tasks.json")),
        *((".amazonq", "mcp.json"), (".roo", "mcp.json"), (".trae", "mcp.json"), (".vs", "mcp.json")),
        *((".kiro", "settings", "mcp.json"), (".junie", "mcp", "mcp.json")),
    }
)
"""The ends of paths of files that make a client, an editor or a shell start programs: a plan must not change them
unseen."""
STARTER_FOLDERS: Final = frozenset(ends[:depth] for ends in STARTERS for depth in range(1, len(ends)))
"""The ends of paths of the folders of such a file: `.kiro`, and `.kiro/settings`."""
STARTER_LENGTHS: Final = frozenset(map(len, STARTERS))
NAME_BYTES_MAX: Final = 255

_drive = re.compile(r"^[A-Za-z]:")
# Names that mean a device or another name on Windows, whatever their case and ending.
_windows_trap = re.compile(r'(?i)[<>:"|?*]|[ .]$|^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])(\..*)?$')


def path_parts(path: str, *, windows: bool = sys.platform == "win32") -> tuple[str, ...]:
    """The parts of a path; ToolFailed for a path that does not stay inside, whatever is on the disk."""
    if not is_printable_path(path):
        raise _refused("the path", f"has control characters or is longer than {PATH_LENGTH_MAX} characters")
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    flaws = (_way_flaw(path, parts), *(_name_flaw(part, windows=windows) for part in parts))
    if flaw := next(filter(None, flaws), ""):
        raise _refused(path or "the empty path", flaw)
    return parts


def _way_flaw(path: str, parts: tuple[str, ...]) -> str:
    if path.startswith("/") or _drive.match(path):
        return "is absolute"
    if "\\" in path:
        return "contains a backslash; write / between folders"
    if ".." in parts:
        return "contains `..`"
    return "" if parts else "is the project's folder itself"


def _name_flaw(name: str, *, windows: bool) -> str:
    is_trap = windows and _windows_trap.search(name)
    return "contains a name that the system does not allow" if is_trap or len(name.encode()) > NAME_BYTES_MAX else ""


class Root:
    """The project's folder, and the private folders in it that plans may not use."""

    def __init__(self, folder: Path, *, private: Sequence[Path] = (), by_handle: bool = HAS_HANDLES) -> None:
        self._folder = folder
        self._private = (*private,)
        self._by_handle = by_handle

    @contextmanager
    def place(self, path: str, *, writing: bool) -> Iterator[GuardedPath]:
        """A path with its folder held open; ToolFailed if a plan may not use it."""
        parts = path_parts(path)
        if writing:
            _require_harmless(path, parts)
        closed = self._closed(writing=writing)
        if not identities(self._private).isdisjoint(identities([self._folder, *self._folder.resolve().parents])):
            raise own_folder(path)  # no such project is registered; this holds for those of older versions
        with ExitStack() as held:
            try:
                entry = held.enter_context(entered(self._folder, parts, closed=closed, by_handle=self._by_handle))
            except Blocked as blocked:
                raise tool_failure(blocked) from None
            yield GuardedPath(entry)

    def require_movable(self, place: GuardedPath) -> None:
        """Refuse to move a folder that contains one of handrail's own, or that clients read what to start from."""
        named = (path for folder in self._private for path in (folder.absolute(), folder.resolve()))
        around = {parent for path in named for parent in path.parents}
        status = place.status()
        if status is not None and identity(status) in identities(around):
            raise own_folder(place.shown)

    def require_fit(self, moved: GuardedPath, source: str, target: str) -> None:
        """Refuse a name for a folder that would turn a file in it into one that starts programs. And the folder of such
        a file keeps its name: under another one its files could be changed, before an undo moves them back."""
        if moved.what() is EntryKind.FOLDER and (named := next(filter(_is_starter_folder, (target, source)), "")):
            raise starts_programs(named)

    def _closed(self, *, writing: bool) -> frozenset[Identity]:
        """The folders that may not be entered."""
        own = [self._folder / OWN_FOLDER, self._folder / GIT_FOLDER] if writing else []
        return identities([*self._private, *own])


def _require_harmless(path: str, parts: Sequence[str]) -> None:
    names = tuple(map(_folded, parts))
    # Anywhere, not only at the top: a folder below can be a project, too, and its files would count there.
    if OWN_FOLDER in names:
        raise own_folder(path)
    if _is_in_repository(names) or any(names[-length:] in STARTERS for length in STARTER_LENGTHS):
        raise starts_programs(path)


def _is_starter_folder(path: str) -> bool:
    names = tuple(map(_folded, path_parts(path)))
    return any(names[-length:] in STARTER_FOLDERS for length in STARTER_LENGTHS)


def _is_in_repository(names: Sequence[str]) -> bool:
    """Whether a path leads to what git may execute: all of a repository but the names of its branches and tags."""
    if GIT_FOLDER not in names:
        return False
    inside = tuple(names[tuple(names).index(GIT_FOLDER) + 1 :])
    return inside[:1] != ("refs",) or GIT_FOLDER in inside


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def _refused(path: str, why: str) -> ToolFailed:
    message = f"{path[:200]} {why}; file tools stay inside the project: use a path below its folder"
    return ToolFailed(Category.INVALID_INPUT, message)
