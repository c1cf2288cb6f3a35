"""The snapshot answers usual requests, and leaves everything else to the SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handrail.interfaces.mcp.stdio.envelope import Request
from handrail.interfaces.mcp.stdio.snapshot_answers import (
    HANDSHAKES,
    LISTS,
    META_CAPABILITIES,
    META_CLIENT,
    META_VERSION,
    MODERN,
    SnapshotAnswer,
    SnapshotAnswers,
)

METHODS = ("initialize", "ping", *LISTS)
ANSWERS = {(version, method): f'"{version} {method}"'.encode() for version in HANDSHAKES for method in METHODS}
ANSWERS |= {(MODERN, method): f'"modern {method}"'.encode() for method in ("server/discover", *LISTS)}
META: dict[str, Any] = {META_VERSION: MODERN, META_CAPABILITIES: {"elicitation": {}}}
CLIENT = {"name": "c", "version": "1"}
HELLO: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": CLIENT}


def request(method: str, **params: Any) -> Request:
    return Request(1, method, params, "")


def greeted() -> SnapshotAnswers:
    snapshot = SnapshotAnswers(ANSWERS)
    assert snapshot.answer(request("initialize", **HELLO)) is not None
    return snapshot


@pytest.mark.parametrize("method", ["server/discover", *LISTS])
def test_a_usual_modern_request_is_answered(method: str) -> None:
    known = SnapshotAnswers(ANSWERS).answer(request(method, _meta={**META, META_CLIENT: CLIENT}))
    assert known is not None
    assert known.result == f'"modern {method}"'.encode()


@pytest.mark.parametrize(
    "params",
    [
        {"_meta": META, "cursor": "x"},
        {"_meta": {**META, META_VERSION: "2027-01-01"}},
        {"_meta": {META_VERSION: MODERN}},
        {"_meta": {**META, META_CAPABILITIES: []}},
        {"_meta": {**META, META_CAPABILITIES: {"roots": 5}}},
        {"_meta": {**META, META_CLIENT: {"name": "c"}}},
        {"_meta": {**META, META_CLIENT: None}},
        {"_meta": []},
        {},
    ],
)
def test_an_unusual_first_request_is_left_to_the_sdk(params: dict[str, Any]) -> None:
    assert SnapshotAnswers(ANSWERS).answer(request("tools/list", **params)) is None


@pytest.mark.parametrize("version", HANDSHAKES)
def test_after_a_usual_handshake_the_version_decides(version: str) -> None:
    snapshot = SnapshotAnswers(ANSWERS)
    assert snapshot.answer(request("tools/list")) is None, "not before the handshake"
    for method, params in (("initialize", {**HELLO, "protocolVersion": version}), ("tools/list", {}), ("ping", {})):
        known = snapshot.answer(request(method, **params))
        assert known is not None
        assert known.result == f'"{version} {method}"'.encode()


@pytest.mark.parametrize(
    "change",
    [
        {"protocolVersion": "1999-01-01"},
        {"protocolVersion": 5},
        {"capabilities": None},
        {"capabilities": {"roots": True}},
        {"clientInfo": {"name": "c"}},
        {"extra": 1},
        {"_meta": {"x": 1}},
    ],
)
def test_an_unusual_handshake_and_all_after_it_are_left_to_the_sdk(change: dict[str, Any]) -> None:
    snapshot = SnapshotAnswers(ANSWERS)
    assert snapshot.answer(request("initialize", **{**HELLO, **change})) is None
    assert snapshot.answer(request("tools/list")) is None


def test_a_second_handshake_is_left_to_the_sdk() -> None:
    assert greeted().answer(request("initialize", **HELLO)) is None


@pytest.mark.parametrize("params", [{"cursor": "x"}, {"_meta": META}, {"_meta": 5}])
def test_unusual_params_after_the_handshake_are_left_to_the_sdk(params: dict[str, Any]) -> None:
    assert greeted().answer(request("tools/list", **params)) is None


def test_a_ping_is_answered_before_and_after_the_handshake_and_never_in_the_modern_era() -> None:
    assert SnapshotAnswers(ANSWERS).answer(request("ping")) is not None
    assert greeted().answer(request("ping", _meta={"progressToken": 1})) is not None
    assert SnapshotAnswers(ANSWERS).answer(request("ping", _meta=META)) is None


def test_only_the_opening_request_and_the_handshake_are_replayed_to_the_sdk() -> None:
    snapshot = SnapshotAnswers(ANSWERS)
    asked = [request("ping"), request("initialize", **HELLO), request("tools/list"), request("ping")]
    known = [snapshot.answer(one) for one in asked]
    replayed = [json.loads(one.replay) for one in known if isinstance(one, SnapshotAnswer) and one.replay is not None]
    assert [(message["method"], message.get("params", {})) for message in replayed] == [
        ("ping", {}),
        ("initialize", HELLO),
    ]
    assert len({message["id"] for message in replayed}) == 2
    assert all(message["id"].startswith("handrail:") for message in replayed)
