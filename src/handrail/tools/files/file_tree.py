"""Moving files and folders, and creating folders, with what is needed to undo that.

Contents of files are changed in file_content.py."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import Struct

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolCall, ToolFailed
from handrail.foundation.rooted import EntryKind
from handrail.tools.files.file_content import captured
from handrail.tools.files.place import GuardedPath
from handrail.tools.files.rooted import Root, path_parts

NOT_EMPTY: Final = frozenset({errno.ENOTEMPTY, errno.EEXIST})


class ItemIdentity(Struct, frozen=True, kw_only=True):
    """Identifies what is moved: a file by its content, a folder by its inode."""

    what: EntryKind
    bytes: int = 0
    sha256: str = ""
    inode: int = 0


ABSENT: Final = ItemIdentity(what=EntryKind.NOTHING)


class MoveCaptured(Struct, frozen=True, kw_only=True):
    """What a move will move, and whether the target was free."""

    path: str
    target: str
    thing: ItemIdentity
    is_free: bool


class FolderCaptured(Struct, frozen=True, kw_only=True):
    """The folders that were missing, the outermost first."""

    path: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class FileMove:
    """`file.move`: gives a file or folder a new name that is free."""

    root: Root

    def look(self, call: ToolCall) -> Mapping[str, Any]:
        """What will be moved."""
        source, target = call.args["source"], call.args["target"]
        with self.root.place(source, writing=True) as here, self.root.place(target, writing=True) as there:
            self.root.require_movable(here)
            self.root.require_fit(here, source, target)
            thing, is_free = item_at(here), there.status() is None
        if thing.what is EntryKind.OTHER:
            raise ToolFailed(Category.INVALID_INPUT, f"{source} is neither a plain file nor a folder; choose one")
        seen = MoveCaptured(path=source, target=target, thing=thing, is_free=is_free)
        found: Mapping[str, Any] = msgspec.to_builtins(seen)
        return found

    def do(self, call: ToolCall) -> None:
        """Move it, or finish a move that was interrupted."""
        capture = call.capture if call.capture is not None else self.look(call)
        seen = captured(msgspec.structs.replace(call, capture=capture), MoveCaptured)
        if seen.thing == ABSENT:
            raise ToolFailed(Category.NOT_FOUND, f"there is no {seen.path} to move")
        if not seen.is_free:
            message = f"{seen.target} already exists; move or delete it first, or choose another target"
            raise ToolFailed(Category.CONFLICT, message)
        self._carry(seen, (call.args["source"], call.args["target"]))

    def undo(self, call: ToolCall) -> None:
        """Move it back, or finish an interrupted move back."""
        seen = captured(call, MoveCaptured)
        if seen.is_free and seen.thing != ABSENT:  # otherwise nothing was moved
            self._carry(seen, (seen.target, seen.path))

    def _carry(self, seen: MoveCaptured, way: tuple[str, str]) -> None:
        with self.root.place(way[0], writing=True) as here, self.root.place(way[1], writing=True) as there:
            match item_at(here) == seen.thing, item_at(here) == ABSENT, item_at(there):
                case True, _, found if found == ABSENT:
                    here.move_to(there)
                case False, True, found if found == seen.thing:
                    return  # already moved
                case True, _, _ if _is_same_file(here, there):
                    here.remove()  # a move was interrupted between adding the new name and removing the old one
                case _:
                    message = f"{here.shown} or {there.shown} was changed by something else; nothing was moved"
                    raise ToolFailed(Category.CONFLICT, message)


@dataclass(frozen=True)
class FolderCreation:
    """`file.mkdir`: creates a folder and its missing parents."""

    root: Root

    def look(self, call: ToolCall) -> Mapping[str, Any]:
        """The folders that are missing."""
        path = call.args["path"]
        missing: list[str] = []
        for part in _prefixes(path):
            if missing or self._is_missing(part):
                missing.append(part)
        found: Mapping[str, Any] = msgspec.to_builtins(FolderCaptured(path=path, missing=tuple(missing)))
        return found

    def do(self, call: ToolCall) -> None:
        """Create the missing folders; existing ones are fine."""
        for part in _prefixes(call.args["path"]):
            if self._is_missing(part):
                with self.root.place(part, writing=True) as place, suppress(FileExistsError):
                    place.make_folder()
                self._is_missing(part)  # fails if something else created a file there in the meantime

    def undo(self, call: ToolCall) -> None:
        """Remove the folders that were missing, if they are empty; others may use the upper ones by now."""
        seen = captured(call, FolderCaptured)
        for part in reversed(seen.missing):
            try:
                self._remove(part)
            except OSError as error:
                if error.errno not in NOT_EMPTY:
                    raise
                if part == seen.missing[-1]:
                    message = f"the folder {part} is not empty; empty it, then undo again"
                    raise ToolFailed(Category.CONFLICT, message) from None
                return

    def _remove(self, part: str) -> None:
        try:
            if self._is_missing(part):
                return
        except ToolFailed as error:
            if error.category is Category.NOT_FOUND:
                return  # the folder above is gone, and this one with it
            raise
        with self.root.place(part, writing=True) as place:
            place.remove()

    def _is_missing(self, part: str) -> bool:
        with self.root.place(part, writing=True) as place:
            what = place.what()
        if what not in {EntryKind.FOLDER, EntryKind.NOTHING}:
            raise ToolFailed(Category.CONFLICT, f"{part} exists and is not a folder; choose another path")
        return what is EntryKind.NOTHING


def item_at(place: GuardedPath) -> ItemIdentity:
    """The identity of what is at a path, to recognise it after a move."""
    state, status = place.state(), place.status()
    inode = status.st_ino if status and state.what is EntryKind.FOLDER else 0
    return ItemIdentity(what=state.what, bytes=state.bytes, sha256=state.sha256, inode=inode)


def _is_same_file(one: GuardedPath, other: GuardedPath) -> bool:
    first, second = one.status(), other.status()
    return bool(first and second and first.st_ino and (first.st_ino, first.st_dev) == (second.st_ino, second.st_dev))


def _prefixes(path: str) -> list[str]:
    parts = path_parts(path)
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
