"""A failure taken apart: the status, the host, and what was said there, where the message of a tool has them.

Pure. The journal keeps the message as one text; only readers want its parts."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct

HTTP: Final = "http.request"
SAID_LENGTH_MAX: Final = 500
SAYING: Final = ("message", "error_description", "detail", "title", "error", "reason", "errors")
"""The keys under which servers say what is wrong, the plainest first."""
DEPTH_MAX: Final = 4

_answered = re.compile(r"(?P<status>[1-5]\d\d) from (?P<host>[^\s:]+|\[[^\]]+\])(?:: (?P<text>.*))?", re.DOTALL)
_reached = re.compile(r"(?P<host>[^\s:]+) (?:can't be reached: |did not answer in time)(?P<text>.*)", re.DOTALL)


class FailureParts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parts of a failure message; those that it does not have are empty."""

    said: str
    status: int = 0
    host: str = ""


def failure_parts(message: str, tool: str) -> FailureParts:
    """The parts of what a tool said: its own tools say which host answered, other servers are their own host."""
    if tool == HTTP:
        if found := _answered.fullmatch(message):
            said = _plainest(found["text"] or "")
            return FailureParts(status=int(found["status"]), host=found["host"], said=said)
        if found := _reached.fullmatch(message):
            return FailureParts(host=found["host"], said=message)
        return FailureParts(said=message)
    return FailureParts(said=_plainest(message))


def _plainest(text: str) -> str:
    """What is said in a string that may be JSON: its message, or the text as it is."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        found = _words(msgspec.json.decode(text), DEPTH_MAX)
    except (msgspec.DecodeError, RecursionError, UnicodeError):  # cut off, or no JSON after all
        return text
    return found[:SAID_LENGTH_MAX] if found else text


def _words(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value
    inside = _inside(value) if depth else []
    return next(filter(None, (_words(one, depth - 1) for one in inside)), "")


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value[key] for key in SAYING if key in value]
    return value[:1] if isinstance(value, list) else []
