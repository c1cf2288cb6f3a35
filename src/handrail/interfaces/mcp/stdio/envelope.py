"""Parses a line from a client: a request, a notification, a response, or an error to send back.

Pure, and needs only `json`. It is at least as strict as the SDK: the SDK answers every request that passes here.
What a method means, and whether its params make sense, is checked by the SDK."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

from handrail.foundation.line_cutter import EDGE_BYTES, Overlong
from handrail.interfaces.mcp.stdio.replies import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RequestId
from handrail.interfaces.mcp.stdio.stray_id import may_be_json, stray_id

LINE_BYTES_MAX: Final = 4 * 1024 * 1024
DEPTH_MAX: Final = 100
ID_CHARACTERS_MAX: Final = 500
ID_ECHOED_MAX: Final = 100_000
"""How long an id that is too long may be to be in the error, so that the client knows which request was refused."""
TAKE_ARGUMENTS: Final = ("tools/call", "prompts/get")

_BRACKETS: Final = re.compile(r'"(?>(?:[^"\\]++|\\.)*)"?+|[\[{]|[\]}]', re.DOTALL)
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


class Request(NamedTuple):
    """A call that needs an answer."""

    id: RequestId
    method: str
    params: dict[str, Any]
    text: str


class Notification(NamedTuple):
    """A call that must not be answered."""

    method: str
    params: dict[str, Any]
    text: str


class ClientResponse(NamedTuple):
    """A client's answer to a request from the server."""

    id: RequestId | None
    text: str


class Refusal(NamedTuple):
    """What is wrong with a line, and the id of the request to answer, if known."""

    code: int
    message: str
    id: RequestId | None = None


class Ignored(NamedTuple):
    """A line that is neither passed on nor answered."""

    why: str


Envelope = Request | Notification | ClientResponse | Refusal | Ignored


class _Refused(Exception):
    """Carries a Refusal up to read_envelope."""

    def __init__(self, code: int, message: str, request_id: RequestId | None = None) -> None:
        super().__init__(message)
        self.refusal = Refusal(code, message, request_id)


class _UnsafeJson(ValueError):
    """Valid JSON that different parsers read differently, or that could exhaust one."""


class _NotJson(ValueError):
    """A word that Python's parser accepts although it isn't JSON."""


def read_envelope(line: bytes | Overlong) -> Envelope:
    """Parse one line."""
    if isinstance(line, Overlong):
        return _overlong(line)
    line = line.strip(b" \t\r")
    if not line:
        return Ignored("an empty line")
    try:
        text = _text(line)
        return _envelope(_value(text), text)
    except _Refused as refused:
        return refused.refusal
    except _UnsafeJson as unsafe:
        return Refusal(INVALID_REQUEST, str(unsafe), stray_id(line[:EDGE_BYTES], line[-EDGE_BYTES:]))


def _overlong(line: Overlong) -> Refusal:
    message = f"the line is longer than {LINE_BYTES_MAX} bytes: send smaller messages"
    if not may_be_json(line.head, line.tail):
        return Refusal(PARSE_ERROR, f"not valid JSON, and {message}")
    return Refusal(INVALID_REQUEST, message, stray_id(line.head, line.tail))


def _text(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte {error.start} of the line can't be decoded; send JSON in UTF-8"
        raise _Refused(PARSE_ERROR, message) from error


def _value(text: str) -> object:
    """The JSON value of a string, if every parser would read the same value."""
    # Before decoding: Python's decoder recurses, and would raise RecursionError at some depth of its own.
    if deeper_than(text, DEPTH_MAX):
        raise _UnsafeJson(f"nested deeper than {DEPTH_MAX} levels: send flatter values")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg.removesuffix(' at')} at character {error.pos}; send one message per line"
        raise _Refused(PARSE_ERROR, message) from error
    except _NotJson as error:
        raise _Refused(PARSE_ERROR, str(error)) from error
    except _UnsafeJson:
        raise
    except ValueError as error:  # Python refuses integers with thousands of digits
        raise _UnsafeJson("a number has too many digits") from error
    if _has_lone_surrogate(text, value):
        raise _UnsafeJson("a string contains half of a surrogate pair (\\ud800 to \\udfff alone), which is not text")
    return value


def deeper_than(text: str, levels: int) -> bool:
    """Whether brackets are nested deeper than that; found without recursion."""
    if text.count("[") + text.count("{") <= levels:  # true for nearly every message, and much faster than the loop
        return False
    depth = 0
    for found in _BRACKETS.finditer(text):
        if found[0] in "[{":
            depth += 1
            if depth > levels:
                return True
        elif found[0] in "]}":
            depth -= 1
    return False


def _envelope(value: object, text: str) -> Envelope:
    if isinstance(value, list):
        raise _Refused(INVALID_REQUEST, "batches are not supported: send each message on a line of its own")
    if not isinstance(value, dict):
        raise _Refused(INVALID_REQUEST, "a message must be a JSON object")
    given = value.get("id")
    request_id = given if _is_id(given) else None
    if value.get("jsonrpc") != "2.0":
        raise _Refused(INVALID_REQUEST, 'a message must say "jsonrpc": "2.0"', request_id)
    if "method" in value:
        return _call(value, text, request_id)
    if ("result" in value) == ("error" in value):
        message = "a message must have a `method`, or else a `result` or an `error`"
        raise _Refused(INVALID_REQUEST, message, request_id)
    return _response(value, text, request_id)


def _call(value: dict[str, Any], text: str, request_id: RequestId | None) -> Envelope:
    if "id" in value and request_id is None:
        message = f"`id` must be a string of at most {ID_CHARACTERS_MAX} characters or an integer"
        raise _Refused(INVALID_REQUEST, message, _echoed(value["id"]))
    if not isinstance(value["method"], str):
        raise _Refused(INVALID_REQUEST, "`method` must be a string", request_id)
    if "result" in value or "error" in value:
        message = "a message can't be both a call and a response: remove `result` and `error`"
        raise _Refused(INVALID_REQUEST, message, request_id)
    if request_id is None:
        return _notification(value["method"], value.get("params"), text)
    return _request(value, value.get("params", {}), text)


def _notification(method: str, params: object, text: str) -> Envelope:
    # JSON-RPC forbids an answer to a notification, even to a malformed one. So null counts as omitted here: the
    # client would never learn why nothing happens.
    params = {} if params is None else params
    return Notification(method, params, text) if isinstance(params, dict) else Ignored("a notification with bad params")


def _request(value: dict[str, Any], params: object, text: str) -> Envelope:
    if not isinstance(params, dict):
        raise _Refused(INVALID_PARAMS, "`params` must be an object, or be omitted", value["id"])
    # The SDK takes null for no arguments; the protocol knows an object or nothing.
    if value["method"] in TAKE_ARGUMENTS and params.get("arguments", {}) is None:
        raise _Refused(INVALID_PARAMS, "`arguments` must be an object, or be omitted", value["id"])
    return Request(value["id"], value["method"], params, text)


def _response(value: dict[str, Any], text: str, request_id: RequestId | None) -> Envelope:
    """Pass a response on if the SDK can read it. Its id was chosen by the server, so a refusal must not carry it."""
    if "result" in value:
        if request_id is None or not isinstance(value["result"], dict):
            raise _Refused(INVALID_REQUEST, "a response needs an `id` and an object as its `result`")
    elif not _is_error(value["error"]) or "id" not in value or request_id != value["id"]:
        raise _Refused(INVALID_REQUEST, "an error needs an `id`, and an object with `code` and `message`")
    return ClientResponse(request_id, text)


def _is_error(value: object) -> bool:
    return isinstance(value, dict) and type(value.get("code")) is int and isinstance(value.get("message"), str)


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= ID_CHARACTERS_MAX
    return type(value) is int and abs(value) < 10**ID_CHARACTERS_MAX


def _echoed(value: object) -> RequestId | None:
    """An id that is refused, if it can be in the error."""
    if isinstance(value, str):
        return value if len(value) <= ID_ECHOED_MAX else None
    return value if type(value) is int else None


def _has_lone_surrogate(text: str, value: object) -> bool:
    if not _SURROGATE.search(text):
        return False
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _UnsafeJson("an object has the same key twice: use each key once")
    return value


def _float(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise _UnsafeJson("a number is too large")
    return number


def _constant(word: str) -> None:
    raise _NotJson(f"not valid JSON: {word} isn't a JSON value")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)
