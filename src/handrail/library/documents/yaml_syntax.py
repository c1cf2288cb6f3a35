"""Messages for errors of the YAML parser that say what to change. Nothing is read here."""

from __future__ import annotations

from typing import Final

import yaml
from msgspec import Struct

from handrail.domain.checks.finding import Position
from handrail.library.documents.document_tree import Tree


class Complaint(Struct, frozen=True):
    """What is wrong, how to fix it, and where."""

    message: str
    fix: str
    at: Position


class _Wording(Struct, frozen=True):
    """Our message for errors that contain a fragment; `{line}` is the line where the broken part starts."""

    fragment: str
    message: str
    fix: str
    at_start: bool = False
    """Whether to point to where the broken part starts, rather than to where the parser gave up."""


QUOTE: Final = "put the text in quotes"
INDENT: Final = "indent it like its neighbours"

# The first fragment that occurs wins. The C parser and the pure Python one have slightly different messages.
_WORDINGS: Final = (
    _Wording("document start", "this belongs to nothing above it", "start all keys of the document in the same column"),
    _Wording("a tab character", "a tab can't indent YAML", "indent with spaces"),
    _Wording("cannot start any token", "a string can't start with this character", QUOTE),
    _Wording(
        "mapping values are not allowed", "a `:` where no key can be", f"{INDENT}, or quote a string with `: ` in it"
    ),
    _Wording("keys are not allowed", "a `?` where no key can be", QUOTE),
    _Wording("sequence entries are not allowed", "a list can't start here", "start it on a line of its own"),
    _Wording(
        "simple key", "a key without its `:`", "write `key: value`, or indent the line under its text", at_start=True
    ),
    _Wording("end of stream", "the quote is never closed", "close it", at_start=True),
    _Wording("escape", "not an escape that YAML knows", "double the `\\`, or use single quotes"),
    _Wording("unexpected document", "the quote is never closed", "close it", at_start=True),
    _Wording(
        "flow sequence",
        "the list opened with `[` on line {line} is not closed",
        "add `]` or a comma, or quote the text",
    ),
    _Wording(
        "flow mapping",
        "the object opened with `{` on line {line} is not closed",
        "add `}` or a comma, or quote the text",
    ),
    _Wording("alias", "a string can't start with `*`", QUOTE),
    _Wording("anchor", "a string can't start with `&`", QUOTE),
    _Wording("block scalar", "not a text block that YAML knows", "write | or > alone, then indent all lines alike"),
    _Wording("block mapping", "this belongs to no key", f"{INDENT}; quote the whole of a string that has quotes in it"),
    _Wording("block collection", "this belongs to no list", f"{INDENT}, and start each item with `- `"),
    _Wording("tag", "a string can't start with `!`", QUOTE),
    _Wording("directive", "a line can't start with `%`", QUOTE),
    _Wording("incompatible", "not a version of YAML that is read here", "remove the %YAML line"),
    _Wording("node content", "no value can start here", QUOTE),
)


def complaint_of(error: yaml.MarkedYAMLError, text: str, tree: Tree) -> Complaint:
    """Our message for an error of the parser."""
    wording = _wording_of(error, text)
    start, gave_up = error.context_mark, error.problem_mark
    mark = start if wording.at_start else gave_up
    at = tree.position(mark.line + 1, mark.column + 1) if mark else tree.position(1, 1)
    message = wording.message.replace("{line}", str(start.line + 1)) if start else wording.message
    return Complaint(message, wording.fix, at)


def _wording_of(error: yaml.MarkedYAMLError, text: str) -> _Wording:
    problem = f"{error.context}: {error.problem}"
    if error.problem_mark and text.startswith("\t", error.problem_mark.index):
        problem = "a tab character"
    fitting = (wording for wording in _WORDINGS if wording.fragment in problem)
    return next(fitting, _Wording("", problem, "check this line"))
