"""The same request has the same answer whether the snapshot or the SDK is there to give it, in both eras."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interfaces.mcp.stdio.client import META, MODERN, Client, connected, until

METHODS = (
    *("ping", "tools/list", "prompts/list", "resources/list", "resources/templates/list"),
    *("tools/call", "prompts/get", "resources/read", "completion/complete", "no/such"),
)


def requests(*, modern: bool) -> Iterator[dict[str, Any]]:
    """Requests whose params or arguments are missing, null, empty or of another kind."""
    envelope = {"_meta": META} if modern else {}
    for method in METHODS:
        yield {"method": method}
        yield {"method": method, "params": None}
        yield {"method": method, "params": envelope}
        yield {"method": method, "params": {"_meta": None}}
        yield {"method": method, "params": []}
    kinds: list[Any] = [None, {}, [], "x"]
    for given in ({}, *({"arguments": value} for value in kinds)):
        yield {"method": "tools/call", "params": {"name": "echo", **given, **envelope}}
        yield {"method": "prompts/get", "params": {"name": "x", **given, **envelope}}
    yield {"method": "tools/list", "params": {"cursor": None, **envelope}}


def opened(client: Client, *, modern: bool) -> None:
    if modern:
        client.ask("hello", "server/discover")
        client.answer("hello")
    else:
        client.shake_hands()


def answers(client: Client, *, modern: bool) -> list[object]:
    asked = list(requests(modern=modern))
    for number, request in enumerate(asked):
        client.send({"jsonrpc": "2.0", "id": number, **request})
    given = {answer["id"]: answer for answer in (client.next() for _ in asked)}
    return [given[number].get("error") or given[number]["result"] for number in range(len(asked))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a snapshot."""
    folder = tmp_path_factory.mktemp("phases")
    with connected(folder) as client:
        client.ask("first", "tools/list")
        client.answer("first")
        until(lambda: list(folder.rglob("*snapshot*")))
        assert client.end() == 0
    return folder


@pytest.mark.parametrize("modern", [False, True], ids=["handshake", MODERN])
def test_both_phases_give_the_same_answers(folder: Path, modern: bool) -> None:
    with connected(folder) as client:
        opened(client, modern=modern)
        early = answers(client, modern=modern)
    with connected(folder) as client:
        opened(client, modern=modern)
        client.tool("warm", "echo", modern=modern)
        client.answer("warm")  # only the SDK can call a tool
        late = answers(client, modern=modern)
    pairs = zip(requests(modern=modern), early, late, strict=True)
    assert not [(request, one, other) for request, one, other in pairs if one != other]


@pytest.mark.parametrize("modern", [False, True], ids=["handshake", MODERN])
def test_null_is_invalid_and_missing_arguments_are_none(folder: Path, modern: bool) -> None:
    with connected(folder) as client:
        opened(client, modern=modern)
        given = answers(client, modern=modern)
    for request, answer in zip(requests(modern=modern), given, strict=True):
        params = request.get("params", {})
        takes = request["method"] in {"tools/call", "prompts/get"}
        if params is None or (takes and "arguments" in params and params["arguments"] is None):
            assert isinstance(answer, dict)
            assert (answer["code"], "must be an object, or be omitted" in answer["message"]) == (-32602, True), request
        if request["method"] == "tools/call" and params and params.get("arguments", {}) == {} and "name" in params:
            assert isinstance(answer, dict)
            assert "content" in answer, request
