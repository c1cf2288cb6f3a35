"""What people may write in tools.json, and what they are told about the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.definition.model import Effect
from handrail.domain.errors import Invalid
from handrail.tools.mcp.declaration import (
    FILE_BYTES_MAX,
    PATTERNS_MAX,
    RULES_MAX,
    SERVERS_MAX,
    Declared,
    ToolRule,
    UndoRule,
    declared_servers,
)

GIT: Mapping[str, Any] = {
    "command": "uvx",
    "args": ["mcp-server-git"],
    "env": {"TOKEN": "${secret:GIT}"},
    "cwd": "sub",
    "allow": ["git_*"],
    "deny": ["git_push"],
    "timeout": "30s",
    "start_timeout": "9s",
    "concurrency": 4,
    "rate": "10/s",
    "retry": {"attempts": 3, "first": "1s"},
    "effect": "compensatable",
    "idempotent": False,
    "autoApprove": ["git_log"],
    "description": "a key that other clients write",
    "type": "stdio",
    "tools": {
        "create_branch": {
            "idempotent": True,
            "undo": {"tool": "delete_branch", "args": {"name": "{{ args.name }}", "sha": "{{ output.sha }}"}},
        }
    },
}


def written(folder: Path, servers: Any, name: str = "tools.json") -> Path:
    file = folder / name
    file.write_text(servers if isinstance(servers, str) else json.dumps({"mcpServers": servers}), encoding="utf-8")
    return file


def only(folder: Path, entry: Mapping[str, Any]) -> Declared:
    return declared_servers([written(folder, {"git": entry})])["git"]


def refusal(folder: Path, servers: Any) -> tuple[str, str]:
    file = written(folder, servers)
    with pytest.raises(Invalid) as refused:
        declared_servers([file])
    assert str(file) in str(refused.value)
    return str(refused.value).removeprefix(f"{file}").removeprefix(": "), refused.value.hint


def test_everything_that_may_be_said_of_a_server_is_read(tmp_path: Path) -> None:
    git = only(tmp_path, GIT)
    assert (git.name, git.origin, git.command, git.args) == (
        "git",
        str(tmp_path / "tools.json"),
        "uvx",
        ("mcp-server-git",),
    )
    assert (git.env, git.cwd, git.allow, git.deny) == ({"TOKEN": "${secret:GIT}"}, "sub", ("git_*",), ("git_push",))
    assert (git.start_timeout, git.rule.timeout, git.rule.concurrency, git.rule.rate) == ("9s", "30s", 4, "10/s")
    assert git.rule.retry is not None
    assert (git.rule.retry.attempts, git.rule.effect, git.rule.idempotent) == (3, Effect.COMPENSATABLE, False)
    undo = UndoRule(tool="delete_branch", args={"name": "{{ args.name }}", "sha": "{{ output.sha }}"})
    assert git.tools == {"create_branch": ToolRule(idempotent=True, undo=undo)}


@pytest.mark.parametrize("kind", [None, "http", "streamable-http", "streamableHttp"])
def test_a_server_may_be_reached_by_its_address(tmp_path: Path, kind: str | None) -> None:
    more = {"type": kind} if kind else {}
    found = only(tmp_path, {"url": "https://host/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}"}, **more})
    assert (found.url, found.headers) == ("https://host/mcp", {"Authorization": "Bearer ${env:TOKEN}"})
    assert only(tmp_path, {"url": "${env:WHERE}/mcp"}).url == "${env:WHERE}/mcp"


def test_an_earlier_file_wins_name_by_name_and_any_file_may_disable(tmp_path: Path) -> None:
    users = written(tmp_path, {"git": {"command": "one"}, "other": {"command": "two"}}, "user.json")
    project = written(tmp_path, {"git": {"command": "three"}}, "project.json")
    found = declared_servers([users, tmp_path / "missing.json", project])
    assert {name: one.command for name, one in found.items()} == {"git": "one", "other": "two"}
    assert (found["git"].origin, found["git"].shadows) == (str(users), (str(project),))
    assert found["other"].shadows == ()
    off = written(tmp_path, {"git": {"command": "three", "disabled": True}, "other": {"enabled": False}}, "off.json")
    assert declared_servers([users, off]) == declared_servers([off, users]) == {}


def test_a_file_that_says_nothing_declares_nothing(tmp_path: Path) -> None:
    assert declared_servers([]) == declared_servers([tmp_path / "no" / "such.json"]) == {}
    assert declared_servers([written(tmp_path, "\ufeff{}")]) == {}
    assert declared_servers([written(tmp_path, '{"$schema": "x", "mcpServers": {}}')]) == {}
    assert declared_servers([written(tmp_path, "{}") / "below-a-file.json"]) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{\n  "mcpServers": {,}}', ":2:18: "),
        ('{"mcpServers": {"git": {"command": "a", "command": "b"}}}', "`command` appears twice"),
        ('{"mcpServers": NaN}', "NaN"),
        ("[" * 100_000, "can't be read as JSON"),
        ('{"mcpServers": {"git": {"command": "\\ud800"}}}', "can't be read as JSON"),
        ("[]", "this is not an object"),
        ('{"servers": {}}', "unknown key `servers`"),
        ('{"mcpServers": []}', "mcpServers: this is not an object"),
        ('{"mcpServers": {"git": []}}', "mcpServers.git: this is not an object"),
        (" " * FILE_BYTES_MAX + "{}", "is larger than 1,000,000 bytes"),
    ],
)
def test_a_file_that_can_not_be_read_is_refused_with_its_position(tmp_path: Path, text: str, words: str) -> None:
    message, hint = refusal(tmp_path, text)
    assert words in message
    assert hint


def test_a_file_in_another_encoding_and_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes(b'{"mcpServers": {"\xe4": {}}}')
    for file in (tmp_path / "latin.json", tmp_path):
        with pytest.raises(Invalid, match=r"can.t be read|is not a regular file"):
            declared_servers([file])


@pytest.mark.parametrize(
    ("key", "value"),
    [("args", ["--token", "x${secret:GIT}"]), ("command", "run-${secret:GIT}"), ("cwd", "${secret:GIT}")],
)
def test_a_secret_is_refused_where_other_users_can_see_it(tmp_path: Path, key: str, value: Any) -> None:
    for spelled in ("GIT", "env:GITHUB_TOKEN"):
        named = f"${{{spelled}}}" if ":" in spelled else "${secret:GIT}"
        written_value = json.loads(json.dumps(value).replace("${secret:GIT}", named))
        message, hint = refusal(tmp_path, json.dumps({"mcpServers": {"git": {"command": "git", key: written_value}}}))
        assert f"mcpServers.git.{key}: `{named}` can't be in `{key}`" in message
        assert f'in env: {{"{named[2:-1].partition(":")[2]}": "{named}"}}' in hint
    kept = only(tmp_path, {"command": "git", "args": ["${env:HOME}/x"], "env": {"TOKEN": "${secret:GIT}"}})
    assert kept.args == ("${env:HOME}/x",)


UNDO = {"tool": "b", "args": {"deep": ["{{ args.a }}", {"x": "{{ outputs.b }}"}]}}


@pytest.mark.parametrize(
    ("entry", "place", "hint"),
    [
        ({"comand": "x"}, "mcpServers.git: unknown key `comand`", "did you mean `command`?"),
        ({}, "mcpServers.git: it has neither", "`url` for one to reach"),
        ({"command": "x", "url": "http://h/"}, "mcpServers.git: it has both", "`url` for one to reach"),
        ({"command": ""}, "mcpServers.git.command: this is not valid", ""),
        ({"command": "x", "type": "http"}, "mcpServers.git.type: `http` does not fit", "leave it out"),
        ({"url": "http://h/", "type": "stdio"}, "mcpServers.git.type: `stdio` does not fit", "leave it out"),
        ({"url": "http://h/sse", "type": "sse"}, "mcpServers.git.type: HTTP+SSE is deprecated", "streamable HTTP"),
        ({"command": "x", "type": "ws"}, "mcpServers.git.type: Invalid enum value 'ws'", "stdio, http"),
        ({"command": "x", "headers": {"a": "b"}}, "mcpServers.git.headers: a server that is started", "leave it out"),
        ({"url": "http://h/", "env": {"a": "b"}}, "mcpServers.git.env: a server that is reached", "leave it out"),
        ({"url": "ftp://h/"}, "mcpServers.git.url: this is not valid", "full address"),
        ({"url": "https://me:word@h/"}, "mcpServers.git.url: the URL must not contain a user", "headers"),
        ({"url": "http://h/", "headers": {"a": "b\r\nc: d"}}, "mcpServers.git.headers[...]", "Authorization"),
        ({"url": "http://h/", "headers": {"a b": "c"}}, "mcpServers.git", ""),
        ({"command": "x", "args": [1]}, "mcpServers.git.args[0]: Expected `str`, got `int`", "a list of strings"),
        ({"command": "x", "args": ["\0"]}, "mcpServers.git.args[0]", "a list of strings"),
        ({"command": "x", "env": {"A": 1}}, "mcpServers.git.env[...]", "write strings"),
        ({"command": "x", "env": {"A=B": "1"}}, "mcpServers.git", ""),
        ({"command": "x", "deny": "all"}, "mcpServers.git.deny: Expected `array`", "patterns"),
        ({"command": "x", "deny": ["a"] * (PATTERNS_MAX + 1)}, "mcpServers.git.deny", "patterns"),
        ({"command": "x", "timeout": 30}, "mcpServers.git.timeout: Expected `str", "a duration like"),
        ({"command": "x", "timeout": "30 seconds"}, "mcpServers.git.timeout: this is not valid", "a duration like"),
        ({"command": "x", "start_timeout": "now"}, "mcpServers.git.start_timeout", "a duration like"),
        ({"command": "x", "rate": "10"}, "mcpServers.git.rate", "a rate like"),
        ({"command": "x", "concurrency": 0}, "mcpServers.git.concurrency", "whole number"),
        ({"command": "x", "retry": {"atempts": 3}}, "mcpServers.git.retry: unknown key", "did you mean `attempts`?"),
        ({"command": "x", "retry": {"first": 3}}, "mcpServers.git.retry.first", "attempts"),
        ({"command": "x", "effect": "bad"}, "mcpServers.git.effect", "irreversible"),
        ({"command": "x", "undo": {"tool": "b"}}, "mcpServers.git: unknown key `undo`", ""),
        ({"command": "x", "tools": []}, "mcpServers.git.tools: this is not an object", ""),
        ({"command": "x", "tools": {"a b": {}}}, "mcpServers.git.tools", "tool names have letters"),
        ({"command": "x", "tools": {"a": 1}}, "mcpServers.git.tools.a: this is not an object", ""),
        ({"command": "x", "tools": {"a": {"efect": 1}}}, "mcpServers.git.tools.a: unknown", "did you mean `effect`?"),
        ({"command": "x", "tools": {"a": {"rate": "x"}}}, "mcpServers.git.tools.a.rate", "a rate like"),
        ({"command": "x", "tools": {"a": {"undo": "b"}}}, "mcpServers.git.tools.a.undo: this is not an object", ""),
        ({"command": "x", "tools": {"a": {"undo": {}}}}, "mcpServers.git.tools.a.undo", "delete_branch"),
        ({"command": "x", "tools": {"a": {"undo": {"tol": "b"}}}}, "mcpServers.git.tools.a.undo", "did you mean"),
        ({"command": "x", "tools": {"a": {"undo": UNDO}}}, "mcpServers.git.tools.a.undo: args.deep[1].x", "`output`"),
        (
            {"command": "x", "tools": {"a": {"effect": "none", "undo": {"tool": "b"}}}},
            "mcpServers.git.tools.a.undo: the tool's effect is `none`",
            "leave the undo out",
        ),
        ({"command": "x", "tools": {str(number): {} for number in range(RULES_MAX + 1)}}, "mcpServers.git.tools", ""),
    ],
)
def test_what_does_not_fit_is_refused_with_file_place_and_hint(
    tmp_path: Path, entry: Mapping[str, Any], place: str, hint: str
) -> None:
    message, told = refusal(tmp_path, {"git": entry})
    assert message.startswith(place), message
    assert hint in told
    assert told


@pytest.mark.parametrize("name", ["Git", "a.b", "", "-a", "a" * 65, "a\n", "file", "shell"])
def test_a_name_that_plans_could_not_call_is_refused(tmp_path: Path, name: str) -> None:
    message, hint = refusal(tmp_path, {name: {"command": "x"}})
    assert message.startswith("mcpServers: `")
    assert hint


def test_the_number_of_servers_is_bounded_in_a_file_and_over_all(tmp_path: Path) -> None:
    many = {f"s{number}": {"command": "x"} for number in range(SERVERS_MAX)}
    full = written(tmp_path, many, "full.json")
    assert len(declared_servers([full])) == SERVERS_MAX
    assert "too many" in refusal(tmp_path, {**many, "more": {"command": "x"}})[0]
    with pytest.raises(Invalid, match="201 tool servers"):
        declared_servers([full, written(tmp_path, {"more": {"command": "x"}}, "more.json")])
