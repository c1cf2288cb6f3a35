"""The first answers come from a snapshot that the SDK made, and are those that the SDK would give."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interfaces.mcp.stdio.client import Client, connected, until

OLD_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
HEAVY = {"asyncio", "click", "jsonschema_rs", "logging", "mcp", "mcp_types", "msgspec", "pathlib", "pydantic", "yaml"}
HEAVY |= {
    "anyio",
    "dataclasses",
    "inspect",
    "argparse",
    "importlib.metadata",
    "hashlib",
    "tomllib",
    "rich",
    "cryptography",
}
ALONE = "from handrail.interfaces.mcp.stdio.program import run; import sys; sys.exit(run(sys.argv[1:], 'no.such.part'))"
WATCHED = """
import sys
from handrail import __main__
from handrail.interfaces.mcp.stdio import program
def watched(name):
    sys.stderr.write("\\n".join(sys.modules))
    sys.exit(0)
program.import_module = watched
program.run(sys.argv[1:])
"""


def take_snapshot(folder: Path, *words: str) -> None:
    """A first start, which leaves a snapshot."""
    with connected(folder, *words) as client:
        client.ask(1, "tools/list")
        client.answer(1)
        assert client.end() == 0, client.stderr
    assert snapshots(folder)


def snapshots(folder: Path) -> list[Path]:
    return list((folder / "home" / "cache" / "mcp").glob("*"))


def without_sdk(folder: Path, *words: str) -> Client:
    """A server whose heavy part can't be loaded: what it answers well comes from the snapshot."""
    chosen = ["mcp", "--home", str(folder / "home"), "--project", str(folder), *words]
    return Client([sys.executable, "-c", ALONE, *chosen], folder)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    take_snapshot(folder)
    return folder


def conversation(client: Client, version: str | None) -> dict[str, Any]:
    """The first answers that a client gets, by method."""
    answers: dict[str, Any] = {}
    if version is None:
        client.ask("d", "server/discover")
        answers["server/discover"] = client.answer("d")
    else:
        answers["initialize"] = client.shake_hands(version)
    for method in (*LISTS, *(("ping",) if version else ())):
        client.ask(method, method, modern=version is None)
        answers[method] = client.answer(method)
    return answers


@pytest.mark.parametrize("version", [None, "2025-06-18"])
def test_the_snapshot_answers_word_for_word_as_the_sdk_does(
    version: str | None, recorded: Path, tmp_path: Path
) -> None:
    with connected(tmp_path) as client:
        by_sdk = conversation(client, version)
    with connected(recorded) as client:
        by_snapshot = conversation(client, version)
    assert by_snapshot == by_sdk
    assert all("result" in answer for answer in by_snapshot.values())


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_each_older_version_is_answered_from_the_snapshot(version: str, recorded: Path) -> None:
    with without_sdk(recorded) as client:
        answer = client.shake_hands(version)
        client.ask(1, "tools/list", modern=False)
        assert answer["result"]["protocolVersion"] == version
        assert len(client.answer(1)["result"]["tools"]) == 7


def test_until_the_first_answer_nothing_heavy_is_imported(recorded: Path) -> None:
    chosen = ["mcp", "--home", str(recorded / "home"), "--project", str(recorded)]
    with Client([sys.executable, "-c", WATCHED, *chosen], recorded, bare=True) as client:
        client.ask(1, "tools/list")
        assert client.answer(1)["result"]["tools"]
        assert client.code() == 0
        loaded = set(client.stderr.splitlines())
    assert "handrail.interfaces.mcp.stdio.front" in loaded
    assert HEAVY & loaded == set()


def test_what_the_snapshot_does_not_know_waits_for_the_sdk(recorded: Path) -> None:
    with connected(recorded) as client:
        client.tool("call", "echo", text="hi")
        client.ask("list", "tools/list")
        client.ask("page", "tools/list", {"cursor": "x"})
        client.ask("strange", "no/such/method")
        assert client.next()["id"] == "list", "it is answered before the SDK is there"
        assert client.answer("call")["result"]["content"][0]["text"] == "hi"
        assert "result" in client.answer("page")
        assert client.answer("strange")["error"]["code"] == -32601


def test_after_the_handshake_from_the_snapshot_the_sdk_goes_on(recorded: Path) -> None:
    with connected(recorded) as client:
        client.shake_hands("2025-03-26")
        client.tool(1, "echo", text="hi", modern=False)
        assert client.answer(1)["result"]["content"][0]["text"] == "hi"
        client.ask(2, "tools/list", modern=True)
        assert client.answer(2)["error"]["code"] == -32600, "this connection is of the older era"
        client.hang_up()
        assert client.rest() == [], "the SDK's own answer to the handshake is dropped"


def test_the_era_is_decided_by_a_request_that_the_snapshot_answered(recorded: Path) -> None:
    with connected(recorded) as client:
        client.ask(1, "server/discover")
        assert "result" in client.answer(1)
        client.ask(2, "initialize", {"protocolVersion": "2025-06-18"}, modern=False)
        assert client.answer(2)["error"]["code"] == -32022


def test_a_handshake_that_is_not_usual_is_left_to_the_sdk(recorded: Path) -> None:
    with connected(recorded) as client:
        hello = {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        client.ask(1, "initialize", hello, modern=False)
        assert client.answer(1)["result"]["protocolVersion"] == "2025-11-25"
        client.ask(2, "initialize", {"protocolVersion": "2025-06-18"}, modern=False)
        assert client.answer(2)["error"]["code"] == -32602


def test_a_snapshot_is_not_used_when_a_workflow_has_changed(tmp_path: Path) -> None:
    take_snapshot(tmp_path)
    (tmp_path / ".handrail" / "workflows").mkdir(parents=True)
    (tmp_path / ".handrail" / "workflows" / "new.yaml").write_text("", encoding="utf-8")
    with connected(tmp_path) as client:
        client.ask(1, "prompts/list")
        assert [prompt["name"] for prompt in client.answer(1)["result"]["prompts"]] == ["new"]
        until(lambda: len(snapshots(tmp_path)) == 2)  # taken in a quiet moment, while the client is connected


def test_other_toolsets_have_a_snapshot_of_their_own(recorded: Path) -> None:
    with without_sdk(recorded, "--toolsets", "run") as client:
        client.ask(1, "tools/list")
        assert client.answer(1)["error"]["code"] == -32603
    with connected(recorded, "--toolsets", "guide,journal,run") as client:
        client.ask(1, "tools/list")
        assert client.answer(1)["result"]["tools"][0]["description"] == "For guide,run,journal."


def test_a_damaged_snapshot_is_not_used(recorded: Path) -> None:
    (file,) = snapshots(recorded)
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    try:
        with without_sdk(recorded) as client:
            client.ask(1, "tools/list")
            assert client.answer(1)["error"]["code"] == -32603
    finally:
        file.write_bytes(whole)


def test_only_so_many_snapshots_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "cache" / "mcp"
    folder.mkdir(parents=True)
    for number in range(30):
        (folder / f"{number:08x}.snapshot").write_text("old", encoding="utf-8")
    take_snapshot(tmp_path)
    assert len(snapshots(tmp_path)) == 20


def test_a_home_that_can_not_be_written_to_costs_only_the_snapshot(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "cache").write_text("in the way", encoding="utf-8")
    with connected(tmp_path) as client:
        client.ask(1, "tools/list")
        assert "result" in client.answer(1)
        assert client.end() == 0


def test_a_client_that_only_lists_is_not_kept_waiting_for_the_sdk(recorded: Path) -> None:
    chosen = ["mcp", "--home", str(recorded / "home"), "--project", str(recorded)]
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}})
    ran = subprocess.run([sys.executable, "-c", ALONE, *chosen], input=line, capture_output=True, text=True, timeout=30)
    assert (ran.returncode, ran.stderr) == (0, ""), "the heavy part was never asked for"
    assert "result" in json.loads(ran.stdout)
