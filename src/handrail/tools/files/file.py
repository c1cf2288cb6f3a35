"""`file.*`: tools that read and change files inside the project, with their own undo.

Here are the specs of the tools, and the threads they run in: a cancelled caller never leaves a change half-done. The
changes themselves are in file_content.py and file_tree.py."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Mapping, Sequence
from posixpath import normpath
from typing import Any, Final, Protocol

from handrail.domain.definition.model import Category, Effect
from handrail.engine.tool import ToolCall, ToolFailed, ToolSpec
from handrail.foundation.rooted import PATH_LENGTH_MAX
from handrail.tools.arguments import closed
from handrail.tools.files.content_store import ContentStore
from handrail.tools.files.file_content import ContentChange
from handrail.tools.files.file_tree import FileMove, FolderCreation
from handrail.tools.files.rooted import Root
from handrail.tools.files.turns import FileTurns
from handrail.tools.python.function_tool import CallHandler, FunctionTool

TEXT_BYTES_MAX: Final = 1_000_000
PATH: Final = {"type": "string", "minLength": 1, "maxLength": PATH_LENGTH_MAX}
TEXT: Final = {"type": "string", "maxLength": TEXT_BYTES_MAX}
WRITTEN: Final = {"path": PATH, "bytes": {"type": "integer"}}
REFUSED: Final = frozenset({errno.EINVAL, errno.ENAMETOOLONG, errno.EISDIR, errno.ENOTDIR, errno.EXDEV, errno.ELOOP})
"""Errors that a retry can't fix."""


class _FileChange(Protocol):
    def look(self, call: ToolCall) -> Any: ...
    def do(self, call: ToolCall) -> None: ...
    def undo(self, call: ToolCall) -> None: ...


def file_tools(root: Root, kept: ContentStore) -> list[FunctionTool]:
    """The tools of this family."""
    write = ContentChange(root=root, kept=kept, outcome=lambda args, _: _text(args), keeps=True)
    append = ContentChange(
        root=root, kept=kept, outcome=lambda args, before: (before or b"") + _text(args), keeps=False
    )
    delete = ContentChange(root=root, kept=kept, outcome=lambda _, __: None, keeps=True, takes_folders=True)
    turns = FileTurns()
    at_path, with_text = {"path": PATH}, {"path": PATH, "text": TEXT}
    return [
        FunctionTool(
            spec=_spec("read", "Read the text of a file.", at_path, {"text": TEXT}, effect=Effect.NONE),
            do=_in_thread(_reading(root)),
        ),
        _changing(_spec("write", "Write text to a file, new or not.", with_text, WRITTEN), write, _written, turns),
        _changing(
            _spec("append", "Add text at the end of a file, new or not.", with_text, WRITTEN),
            append,
            _written,
            turns,
        ),
        _changing(
            _spec("move", "Move a file or folder to a free name.", {"source": PATH, "target": PATH}, {"target": PATH}),
            FileMove(root),
            lambda args: {"target": args["target"]},
        ),
        _changing(_spec("delete", "Delete a file or an empty folder.", at_path, at_path), delete, _path_of, turns),
        _changing(
            _spec("mkdir", "Make a folder, and those above it that are missing.", at_path, at_path),
            FolderCreation(root),
            _path_of,
        ),
    ]


def _spec(
    name: str,
    description: str,
    args: Mapping[str, Any],
    output: Mapping[str, Any],
    *,
    effect: Effect = Effect.REVERSIBLE,
) -> ToolSpec:
    return ToolSpec(
        name=f"file.{name}",
        description=description,
        effect=effect,
        args=closed(args, required=list(args)),
        output=closed(output, required=list(output)),
        idempotent=True,
    )


def _changing(
    spec: ToolSpec, change: _FileChange, output: Callable[[Mapping[str, Any]], Any], turns: FileTurns | None = None
) -> FunctionTool:
    def do(call: ToolCall) -> Any:
        change.do(call)
        return output(call.args)

    handlers = (_in_thread(do), _in_thread(change.look), _in_thread(change.undo))
    doing, looking, undoing = handlers if turns is None else _taking_turns(turns, *handlers)
    return FunctionTool(spec=spec, do=doing, capture_with=looking, undo_with=undoing, flaws_of=_text_flaws)


def _taking_turns(turns: FileTurns, do: CallHandler, look: CallHandler, undo: CallHandler) -> Sequence[CallHandler]:
    """The same, one step after the other at each file: from its capture until its change is made, or has failed."""

    def in_turn(work: CallHandler, *, is_last: bool) -> CallHandler:
        async def handler(call: ToolCall) -> Any:
            file, owner = normpath(call.args["path"]), (call.run, call.step)
            await turns.take(file, owner)
            is_over = True
            try:
                made = await work(call)
                is_over = is_last
            finally:
                if is_over:
                    turns.release(file, owner)
            return made

        return handler

    return in_turn(do, is_last=True), in_turn(look, is_last=False), in_turn(undo, is_last=True)


def _reading(root: Root) -> Callable[[ToolCall], Any]:
    def read(call: ToolCall) -> Any:
        with root.place(call.args["path"], writing=False) as place:
            content = place.read(bytes_max=TEXT_BYTES_MAX)
            try:
                return {"text": content.decode("utf-8")}
            except UnicodeDecodeError as error:
                message = f"{place.shown} is not UTF-8 text (byte {error.start}); choose a text file"
                raise ToolFailed(Category.INVALID_INPUT, message) from None

    return read


def _in_thread(work: Callable[[ToolCall], Any]) -> CallHandler:
    """Run this in a thread, with errors of the system raised as ToolFailed."""

    async def handler(call: ToolCall) -> Any:
        under_way = asyncio.ensure_future(asyncio.to_thread(_translated, work, call))
        try:
            return await asyncio.shield(under_way)
        except asyncio.CancelledError:
            # A thread can't be stopped: a cancelled caller must not go on, perhaps with an undo, while it still writes.
            await asyncio.wait([under_way])
            if not under_way.cancelled():
                under_way.exception()  # retrieved, so that asyncio does not log it as unhandled
            raise

    return handler


def _translated(work: Callable[[ToolCall], Any], call: ToolCall) -> Any:
    try:
        return work(call)
    except OSError as error:
        raise ToolFailed(_category(error), f"{call.tool}: {error.strerror or error}") from error


def _category(error: OSError) -> Category:
    match error:
        case FileNotFoundError():
            return Category.NOT_FOUND
        case FileExistsError():
            return Category.CONFLICT
        case PermissionError():
            return Category.PERMISSION
        case OSError(errno=errno.ENOTEMPTY):
            return Category.CONFLICT
        case _:
            return Category.INVALID_INPUT if error.errno in REFUSED else Category.TRANSIENT


def _text_flaws(args: Mapping[str, Any]) -> Sequence[str]:
    if len(_text(args)) > TEXT_BYTES_MAX:
        return [f"`text` is larger than {TEXT_BYTES_MAX:,} bytes; split it"]
    return []


def _text(args: Mapping[str, Any]) -> bytes:
    return str(args.get("text", "")).encode()


def _written(args: Mapping[str, Any]) -> Any:
    return {"path": args["path"], "bytes": len(_text(args))}


def _path_of(args: Mapping[str, Any]) -> Any:
    return {"path": args["path"]}
