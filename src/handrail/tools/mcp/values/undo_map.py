"""The undo map: which call of the same server undoes a call, as written in tools.json.

The rule at the time of the call counts: it is captured with the attempt, and read from there when the call is undone.
server_tool.py makes that call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.finding import Path
from handrail.domain.definition.model import Category
from handrail.domain.errors import Invalid
from handrail.domain.language.template import Template, ValueTemplate, compile_value
from handrail.domain.secrets.scrubbing import holds_mark
from handrail.domain.secrets.secret_reference import reference_places
from handrail.engine.tool import ToolCall, ToolFailed
from handrail.tools.mcp.declaration import UNDO_SCOPE, UndoRule

BY_HAND: Final = "undo it by hand, then record the compensation"

_one_path = re.compile(r"\{\{\s*[A-Za-z_][\w.\[\]'\"-]*\s*\}\}")


class Undo(Struct, frozen=True):
    """The captured undo of a call: the tool of its server that undoes it, and the templates of its arguments."""

    tool: str
    args: Mapping[str, Any]


def captured(rule: UndoRule, server: str, *, idempotent: bool) -> Mapping[str, Any]:
    """The capture that is journaled with a call, so that it can be undone by the current rule."""
    return {"undo": {"tool": f"{server}.{rule.tool}", "args": rule.args, "idempotent": idempotent}}


def undo_of(capture: Any, server: str) -> Undo | None:
    """The captured undo by a tool of this server; None if there is none."""
    undo = capture.get("undo") if isinstance(capture, Mapping) else None
    match undo:
        case {"tool": str(tool), "args": Mapping() as args} if tool.startswith(f"{server}."):
            return Undo(tool.removeprefix(f"{server}."), args)
    return None


def undo_call(call: ToolCall, undo: Undo, *, server: str, output: Any) -> ToolCall:
    """The call that undoes a call; ToolFailed if its arguments can't be determined."""
    try:
        template = compile_value(undo.args, UNDO_SCOPE)
        if output is None and any(path[0] == "output" for path in template.paths):
            message = f"{undo.tool} needs the output of {call.tool}, which is not known; {BY_HAND}"
            raise ToolFailed(Category.INVALID_INPUT, message)
        args = template.render({"args": call.args, "output": output})
    except Invalid as error:
        message = f"the arguments of {undo.tool} can't be determined: {error}; {BY_HAND}"
        raise ToolFailed(Category.INVALID_INPUT, message) from error
    if holds_mark(args):
        message = f"{undo.tool} needs a secret that handrail no longer has; {BY_HAND}"
        raise ToolFailed(Category.INVALID_INPUT, message)
    assert isinstance(args, Mapping)  # noqa: S101 - rendering keeps the shape, which undo_of has checked
    written = reference_places(undo.args, args, is_top=False)
    carried = _carried(template, call.references)
    references = tuple(dict.fromkeys((*written, *carried)))
    return replace(call, tool=f"{server}.{undo.tool}", args=args, references=references, capture=None, output=None)


def _carried(template: ValueTemplate, references: tuple[Path, ...]) -> Iterator[Path]:
    """The new locations of references in the undone call's arguments: passed on unchanged, they may be filled in."""
    if not references:
        return
    for place, part in _templates(template.parts, ()):
        if not _one_path.fullmatch(part.source) or len(part.paths) != 1 or part.paths[0][0] != "args":
            continue
        source = part.paths[0][1:]
        yield from ((*place, *one[len(source) :]) for one in references if one[: len(source)] == source)


def _templates(part: Any, place: Path) -> Iterator[tuple[Path, Template]]:
    match part:
        case Template():
            yield place, part
        case dict():
            for key, item in part.items():
                yield from _templates(item, (*place, key))
        case list():
            for index, item in enumerate(part):
                yield from _templates(item, (*place, index))
