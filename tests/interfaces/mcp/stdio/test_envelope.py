"""Every line is a message, or is refused with a reason; and what passes here can be read by the SDK."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as mt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.foundation.line_cutter import Overlong
from handrail.interfaces.mcp.stdio.envelope import (
    ClientResponse,
    Ignored,
    Notification,
    Refusal,
    Request,
    deeper_than,
    read_envelope,
)

CALL = b'{"jsonrpc":"2.0","id":4,"method":"tools/call","params":'

REFUSED: list[tuple[bytes, int, object, str]] = [
    (b"{oops", -32700, None, "not valid JSON"),
    (b'{"jsonrpc":"2.0"', -32700, None, "not valid JSON"),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}', -32700, None, "Extra data"),
    (b"\xff\xfe{}", -32700, None, "not UTF-8"),
    (b"\xed\xa0\x80", -32700, None, "not UTF-8"),
    (b"\xef\xbb\xbf{}", -32700, None, "not valid JSON"),
    (b"\x00", -32700, None, "not valid JSON"),
    (CALL + b'{"a":"\x00"}}', -32700, None, "control character"),
    (CALL + b'{"a":"\x1f"}}', -32700, None, "control character"),
    (CALL + b'{"a":NaN}}', -32700, None, "NaN"),
    (CALL + b'{"a":-Infinity}}', -32700, None, "Infinity"),
    (CALL + b'{"a":1e999}}', -32600, 4, "too large"),
    (CALL + b'{"a":' + b"9" * 5_000 + b"}}", -32600, 4, "digits"),
    (CALL + b'{"a":1,"a":2}}', -32600, 4, "twice"),
    (CALL + b'{"a":"\\ud800"}}', -32600, 4, "surrogate"),
    (CALL + b'{"\\uDFFF":1}}', -32600, 4, "surrogate"),
    (CALL + b"[" * 100_000, -32600, 4, "deeper than 100"),
    (b"[" * 100_000, -32600, None, "deeper than 100"),
    (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, -32600, None, "deeper than 100"),
    (b"[]", -32600, None, "batches"),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None, "batches"),
    (b"5", -32600, None, "object"),
    (b"null", -32600, None, "object"),
    (b"{}", -32600, None, "jsonrpc"),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1, "jsonrpc"),
    (b'{"jsonrpc":2.0,"id":1,"method":"ping"}', -32600, 1, "jsonrpc"),
    (b'{"jsonrpc":"2.0","id":1}', -32600, 1, "method"),
    (b'{"jsonrpc":"2.0","id":"k","method":5}', -32600, "k", "method"),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None, "id"),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None, "id"),
    (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', -32600, None, "id"),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None, "id"),
    (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600, None, "id"),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None, "id"),
    (b'{"jsonrpc":"2.0","id":"' + b"k" * 501 + b'","method":"ping"}', -32600, "k" * 501, "500"),
    (b'{"jsonrpc":"2.0","id":"' + b"k" * 100_001 + b'","method":"ping"}', -32600, None, "500"),
    (b'{"jsonrpc":"2.0","id":' + b"9" * 501 + b',"method":"ping"}', -32600, 10**501 - 1, "500"),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602, 1, "params"),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', -32602, 1, "params"),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', -32602, 1, "params"),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}', -32602, 1, "params"),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":null}}', -32602, 1, "arguments"),
    (b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"x","arguments":null}}', -32602, 1, "arguments"),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', -32600, 1, "both"),
    (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', -32600, 1, "method"),
    (b'{"jsonrpc":"2.0","id":1,"result":5}', -32600, None, "response"),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"m"}}', -32600, None, "error"),
]


@pytest.mark.parametrize(("line", "code", "request_id", "word"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_is_malformed_is_refused_with_a_reason(line: bytes, code: int, request_id: object, word: str) -> None:
    refusal = read_envelope(line)
    assert isinstance(refusal, Refusal), refusal
    assert (refusal.code, refusal.id) == (code, request_id)
    assert word in refusal.message
    assert len(refusal.message) < 200


@pytest.mark.parametrize("line", [b"", b"   ", b"\r", b"\t"])
def test_an_empty_line_is_ignored(line: bytes) -> None:
    assert isinstance(read_envelope(line), Ignored)


def test_what_is_clearly_a_notification_is_never_answered() -> None:
    assert isinstance(read_envelope(b'{"jsonrpc":"2.0","method":"x"}'), Notification)
    assert isinstance(read_envelope(b'{"jsonrpc":"2.0","method":"x","params":[]}'), Ignored)


def test_a_response_of_the_client_passes() -> None:
    assert isinstance(read_envelope(b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}'), ClientResponse)
    assert isinstance(read_envelope(b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}'), ClientResponse)


def test_brackets_in_strings_do_not_count_as_depth() -> None:
    flat = json.dumps({"text": "[{" * 500, 'quote"and\\': '\\"[[' * 100})
    assert not deeper_than(flat, 100)
    assert not deeper_than("[]" * 500, 100)
    assert not deeper_than("[" * 100 + "]" * 100, 100)
    assert deeper_than("[" * 101 + "]" * 101, 100)


LONG_REQUESTS = [
    (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":"x', b'x"}}', 7),
    (b'{"method":"tools/call","params":{"a":"x', b'x"}},"jsonrpc":"2.0","id":"k-1"}\r', "k-1"),
    (b'{"method":"tools/call","params":{"id":5,"a":"x', b'x"},"id":6 , "jsonrpc":"2.0" }', 6),
    (b'{"jsonrpc":"2.0","id":7,"result":{"a":"x', b'x"}}', None),  # an answer: its id is the server's
    (b'{"jsonrpc":"2.0","method":"x","params":{"id":7,"a":"x', b'x"}}', None),
    (b'{"jsonrpc":"2.0","method":"x","params":{"a":"x', b'x\\"id\\":7}', None),
    (b'{"jsonrpc":"2.0","id":"' + b"k" * 1_000, b'k","method":"x"}', None),
    (b'[{"jsonrpc":"2.0","id":7,"method":"x"}', b'"x"}]', None),
    (b'"xxx', b'xxx"', None),
    (b"-111", b"111", None),
    (b" " * 1_024, b'{"jsonrpc":"2.0","id":7,"method":"x"} ', 7),
]
LONG_NO_JSON = [
    (b"x" * 1_024, b"x" * 1_024),
    (b"{" * 1_024, b"{" * 1_024),
    (b"{oops", b"oops}"),
    (b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"x', b"xxx"),  # it ends in the middle
    (b"[1,", b"1,1"),
    (b'"xxx', b"xxx"),
    (b"\x00" * 1_024, b"\x00" * 1_024),
    (b" " * 1_024, b" " * 1_024),
]


@pytest.mark.parametrize(("head", "tail", "request_id"), LONG_REQUESTS)
def test_a_line_that_is_too_long_is_answered_to_the_request_that_it_is(
    head: bytes, tail: bytes, request_id: object
) -> None:
    refusal = read_envelope(Overlong(head, tail, is_whole=True))
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.id) == (-32600, request_id)
    assert "longer than 4194304" in refusal.message


@pytest.mark.parametrize(("head", "tail"), LONG_NO_JSON)
def test_a_line_that_is_too_long_and_no_json_is_a_parse_error(head: bytes, tail: bytes) -> None:
    refusal = read_envelope(Overlong(head, tail, is_whole=True))
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.id) == (-32700, None)


def test_null_params_of_a_notification_count_as_omitted() -> None:
    read = read_envelope(b'{"jsonrpc":"2.0","method":"notifications/initialized","params":null}')
    assert isinstance(read, Notification)
    assert read.params == {}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
members = st.fixed_dictionaries(
    {"jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", "1.0"]) | values},
    optional={
        "id": st.integers() | st.text(max_size=9) | values,
        "method": st.sampled_from(["ping", "tools/call"]) | values,
        "params": st.dictionaries(st.text(max_size=5), values, max_size=3) | values,
        "result": st.dictionaries(st.text(max_size=5), values, max_size=3) | values,
        "error": st.fixed_dictionaries({"code": st.integers(), "message": st.text(max_size=5)}) | values,
    },
)
KINDS: dict[type, Any] = {
    Request: mt.JSONRPCRequest,
    Notification: mt.JSONRPCNotification,
    ClientResponse: mt.JSONRPCResponse | mt.JSONRPCError,
}


@given(members)
def test_what_passes_is_read_alike_by_the_sdk(message: dict[str, Any]) -> None:
    envelope = read_envelope(json.dumps(message).encode())
    if isinstance(envelope, Request | Notification | ClientResponse):
        read = mt.jsonrpc_message_adapter.validate_json(envelope.text, by_name=False)
        assert isinstance(read, KINDS[type(envelope)])
        if isinstance(envelope, Request):
            assert isinstance(read, mt.JSONRPCRequest)
            assert (read.id, read.method) == (envelope.id, envelope.method)


@given(st.binary(max_size=200))
def test_no_bytes_break_it(line: bytes) -> None:
    read_envelope(line)
    read_envelope(CALL + line)
