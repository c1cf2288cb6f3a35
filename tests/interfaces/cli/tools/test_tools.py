"""Tools from the command line: listed with what they say of themselves, and called by hand with care."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handrail.tools.python.plugin import Plugins
from interfaces.shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_tools_are_listed_with_effect_and_limits(shell: Shell) -> None:
    shell.write('[tools."file.read"]\nrate = "10/s"\ntimeout = "3s"\n', ".handrail/config.toml")
    shell.trust()
    tools = {tool["name"]: tool for tool in shell.json("tools", "list")["tools"]}
    assert (tools["file.write"]["effect"], tools["file.write"]["idempotent"]) == ("reversible", True)
    assert (tools["file.read"]["rate"], tools["file.read"]["timeout"]) == ("10/s", "3s")
    assert "path" in tools["file.read"]["args"]["properties"]
    words = shell.run("tools", "list").stdout
    assert "timeout 3s, rate 10/s" in words
    assert "compensatable" in words


def test_a_broken_plugin_is_reported_with_its_reason(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Plugins(tools={}, broken={"acme": "it can't be imported"})
    monkeypatch.setattr("handrail.tools.registry.Registry._plugins", broken)
    assert shell.json("tools", "list")["broken"] == {"acme": "it can't be imported"}
    assert "plugin acme can't be used" in shell.run("tools", "list").stderr


def test_a_tool_without_effect_is_just_called(shell: Shell) -> None:
    shell.write("some words", "a.txt")
    result = shell.run("tools", "call", "file.read", "-a", "path=a.txt")
    assert json.loads(result.stdout) == {"text": "some words"}
    assert "the call is not journaled" in result.stderr
    assert not (shell.home / "journal.db").exists()
    assert shell.json("tools", "call", "value.set", "--args", '{"value": [1]}') == [1]
    assert shell.run("tools", "call", "value.set", "-a", "value=words").stdout == "words\n"
    assert shell.json("tools", "call", "wait.for", "-a", "duration=5s")["again_in_ms"] == 5_000


def test_a_tool_with_an_effect_needs_a_yes(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("tools", "call", "file.write", "-a", "path=a.txt", "-a", "text=1")
    refused = shell.json(*words, code=1)["error"]
    assert (refused["name"], refused["hint"]) == ("forbidden", "add --yes to continue")
    assert not (shell.folder / "a.txt").exists()
    assert shell.json(*words, "--yes") == {"path": "a.txt", "bytes": 1}
    assert (shell.folder / "a.txt").read_text() == "1"
    monkeypatch.setattr("handrail.interfaces.cli.words.asking.can_ask", lambda: True)
    assert shell.run(*words, stdin="n\n").exit_code == 1
    assert shell.run(*words, stdin="y\n").exit_code == 0


@pytest.mark.parametrize(
    ("words", "code", "sign"),
    [
        (("nowhere.do",), 3, "nowhere.do"),
        (("file.read",), 5, "its arguments: path"),
        (("file.read", "-a", "path"), 5, "name=value"),
        (("file.read", "--args", "[]"), 5, "--args"),
        (("file.read", "-a", "path=missing"), 3, "not_found"),
        (("file.read", "-a", "path=../up"), 5, "inside the project"),
    ],
)
def test_what_can_not_be_called_is_reported_with_a_way_out(
    shell: Shell, words: tuple[str, ...], code: int, sign: str
) -> None:
    error = shell.json("tools", "call", *words, code=code)["error"]
    assert sign in json.dumps(error)
