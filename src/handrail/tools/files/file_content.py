"""Contents of files: writing, appending and deleting, each as one change from a captured state to another.

A call finds the state before (then it makes the change), the state after (it was made already), or neither: then
something else has changed the file, and nothing is done. An undo uses the same two states the other way round. So both
can be repeated at any time, also after a crash in the middle. file_tree.py moves files and creates folders."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolCall, ToolFailed
from handrail.foundation.rooted import EntryKind
from handrail.tools.files.content_store import ContentStore
from handrail.tools.files.place import NOTHING, GuardedPath, State, file_state
from handrail.tools.files.rooted import Root

FILE_BYTES_MAX: Final = 100_000_000
"""Limited, because the whole content is read into memory."""

Capture = TypeVar("Capture", bound=Struct)
Content: TypeAlias = bytes | None
"""None: nothing is there."""


class Captured(Struct, frozen=True, kw_only=True):
    """The state of a path before a call and after it."""

    path: str
    existed: bool
    what: EntryKind
    bytes: int
    sha256: str
    mode: int
    kept: str
    """The name of the stored content; empty if the undo does not need it."""
    after: State

    @property
    def before(self) -> State:
        """The state before the call."""
        return State(what=self.what, bytes=self.bytes, sha256=self.sha256)


@dataclass(frozen=True, kw_only=True)
class ContentChange:
    """One kind of change to the file at `args.path`."""

    root: Root
    kept: ContentStore
    outcome: Callable[[Mapping[str, Any], Content], Content]
    """The new content, from the arguments and the old content."""
    keeps: bool
    """Whether the undo needs the old content."""
    takes_folders: bool = False

    def look(self, call: ToolCall) -> Mapping[str, Any]:
        """The capture; the old content is stored first."""
        found: Mapping[str, Any] = msgspec.to_builtins(self._captured(call, keeping=self.keeps))
        return found

    def do(self, call: ToolCall) -> None:
        """Change the file from the state before to the state after."""
        seen = captured(call, Captured) if call.capture is not None else self._captured(call, keeping=False)
        with self.root.place(call.args["path"], writing=True) as place, place.alone():
            now = place.state()
            if seen.before == seen.after == NOTHING:
                raise ToolFailed(Category.NOT_FOUND, f"there is no {place.shown}")
            # A repeated call: the first one has done it, and only its answer was lost.
            if now == seen.after:
                place.discard(part_name(call))
                return
            # Somebody else has changed the file since it was captured: writing would destroy that, and the undo, too.
            if now != seen.before:
                raise _changed(place, "nothing was done")
            if seen.after.what is EntryKind.NOTHING:
                place.remove()
                return
            content = self.outcome(call.args, self._content(place, now.what)) or b""
            if file_state(content) != seen.after:
                raise ToolFailed(Category.INVALID_INPUT, f"{place.shown}: the arguments do not match the capture")
            mode = seen.mode if seen.existed else None
            place.write(content, mode=mode, part=part_name(call), is_new=not seen.existed)

    def undo(self, call: ToolCall) -> None:
        """Change the file from the state after back to the state before."""
        seen = captured(call, Captured)
        try:
            with self.root.place(seen.path, writing=True) as place, place.alone():
                place.discard(part_name(call))
                self._restore(place, seen, call)
        except ToolFailed as error:
            if error.category is not Category.NOT_FOUND or seen.existed:
                raise  # otherwise its whole folder is gone, so there is nothing to undo

    def _restore(self, place: GuardedPath, seen: Captured, call: ToolCall) -> None:
        now = place.state()
        if now == seen.before:
            return
        if now != seen.after:
            # Neither before nor after: it is not our change any more, and putting the old content back would take
            # theirs away.
            raise self._not_undone(place, seen)
        match seen.what:
            case EntryKind.NOTHING:
                place.remove()
            case EntryKind.FOLDER:
                place.make_folder(seen.mode)
            case _:
                content = self._from_before(place, seen, call)
                is_new = now.what is EntryKind.NOTHING
                place.write(content, mode=seen.mode, part=part_name(call), is_new=is_new)

    def _not_undone(self, place: GuardedPath, seen: Captured) -> ToolFailed:
        """Why an undo can't be made now: it may be, once what was appended after it is undone."""
        failed = _changed(place, "it was not undone; check the file, then record the compensation")
        if self.keeps or place.what() is not EntryKind.FILE:
            return failed
        start = place.read(bytes_max=FILE_BYTES_MAX)[: seen.after.bytes]
        return ToolFailed(Category.TRANSIENT, failed.message) if file_state(start) == seen.after else failed

    def _from_before(self, place: GuardedPath, seen: Captured, call: ToolCall) -> bytes:
        if seen.kept:
            return self.kept.get(call.run, seen.kept, sha256=seen.sha256)
        content = place.read(bytes_max=FILE_BYTES_MAX)[: seen.bytes]  # without the appended part
        if hashlib.sha256(content).hexdigest() != seen.sha256:
            raise ToolFailed(Category.NOT_FOUND, f"the old content of {place.shown} was not kept; restore a backup")
        return content

    def _captured(self, call: ToolCall, *, keeping: bool) -> Captured:
        path = call.args["path"]
        with self.root.place(path, writing=True) as place:
            status, what = place.status(), place.what()
            if what is EntryKind.OTHER or (what is EntryKind.FOLDER and not self.takes_folders):
                raise ToolFailed(Category.INVALID_INPUT, f"{place.shown} is not a plain file; choose one")
            content = self._content(place, what)
            before = State(what=what) if content is None else file_state(content)
            outcome = self.outcome(call.args, content)
            return Captured(
                path=path,
                existed=status is not None,
                what=what,
                bytes=before.bytes,
                sha256=before.sha256,
                mode=stat.S_IMODE(status.st_mode) if status else 0,
                kept=self.kept.put(call.run, call.step, content) if keeping and content is not None else "",
                after=NOTHING if outcome is None else file_state(outcome),
            )

    def _content(self, place: GuardedPath, what: EntryKind) -> Content:
        return place.read(bytes_max=FILE_BYTES_MAX) if what is EntryKind.FILE else None


def part_name(call: ToolCall) -> str:
    """The name of the temporary file of a step: the same for all attempts, so that none is left behind."""
    return f".handrail-{hashlib.sha256(f'{call.run}/{call.step}'.encode()).hexdigest()[:16]}.part"


def captured(call: ToolCall, shape: type[Capture]) -> Capture:
    """The capture of a call."""
    try:
        return msgspec.convert(call.capture, shape)
    except msgspec.ValidationError as error:
        message = f"the capture of {call.step} can't be read: {error}; undo it by hand, then record the compensation"
        raise ToolFailed(Category.INTERNAL, message) from None


def _changed(place: GuardedPath, consequence: str) -> ToolFailed:
    return ToolFailed(Category.CONFLICT, f"{place.shown} was changed by something else in the meantime; {consequence}")
