"""Entries in the texts of clients' settings: everything else stays, to the letter."""

from __future__ import annotations

import json
import sys
from subprocess import run
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.errors import Conflict, HandrailError, Invalid
from handrail.interfaces.clients import jsonc_text
from handrail.interfaces.clients.client import CLIENTS, Client
from handrail.interfaces.clients.entry import entries, launch_of, with_entry, without_entry
from handrail.interfaces.clients.launch import LaunchCommand, merged_args
from interfaces.clients.samples import ALL, MOVED, OURS, broken, furnished, place_id

CLAUDE, CODEX, GOOSE, OPENCODE = CLIENTS["claude"], CLIENTS["codex"], CLIENTS["goose"], CLIENTS["opencode"]


@pytest.mark.parametrize("client", ALL, ids=place_id)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_an_entry_comes_changes_and_goes_and_no_other_letter_moves(client: Client, newline: str) -> None:
    text = furnished(client).replace("\n", newline)
    added = with_entry(client, text, "handrail", OURS)
    assert set(text.splitlines()) - set(added.splitlines()) == set(), "every line is still there"
    assert added.count("\n") == added.count(newline), "line ends are all of one kind"
    assert launch_of(entries(client, added)["handrail"]) == OURS
    assert with_entry(client, added, "handrail", OURS) == added, "twice is once"
    moved = with_entry(client, added, "handrail", MOVED)
    assert launch_of(entries(client, moved)["handrail"]) == MOVED
    assert set(text.splitlines()) - set(moved.splitlines()) == set()
    assert without_entry(client, moved, "handrail") == text
    assert without_entry(client, text, "handrail") == text, "what is not there can't go"


@pytest.mark.parametrize("client", ALL, ids=place_id)
@pytest.mark.parametrize("text", ["", "\n", "  \n\n"])
def test_an_empty_file_becomes_one_with_our_entry_alone(client: Client, text: str) -> None:
    added = with_entry(client, text, "handrail", OURS)
    assert list(entries(client, added)) == ["handrail"]
    assert added.endswith("\n")
    assert entries(client, without_entry(client, added, "handrail")) == {}


@pytest.mark.parametrize("client", ALL, ids=place_id)
def test_a_file_that_can_not_be_read_is_refused_with_the_place(client: Client) -> None:
    with pytest.raises(Invalid, match=r"line \d+"):
        with_entry(client, broken(client), "handrail", OURS)


@pytest.mark.parametrize("client", ALL, ids=place_id)
def test_what_a_person_added_to_our_entry_stays(client: Client) -> None:
    text = with_entry(
        client, furnished(client), "handrail", LaunchCommand("/old/handrail", ("mcp", "--toolsets", "guide"))
    )
    known = entries(client, text)["handrail"]
    again = with_entry(client, text, "handrail", OURS)
    launch = launch_of(entries(client, again)["handrail"])
    assert launch is not None
    assert (launch.command, launch.args) == (OURS.command, ("mcp", "--toolsets", "guide"))
    assert set(entries(client, again)["handrail"]) == set(known)


def test_keys_and_remarks_inside_our_entry_stay() -> None:
    text = '{"mcpServers": {\n  "handrail": {\n    "trust": true, // mine\n    "command": "old" // why\n  }\n}}\n'
    added = with_entry(CLAUDE, text, "handrail", OURS)
    assert entries(CLAUDE, added)["handrail"] == {"trust": True, "command": OURS.command, "args": ["mcp"]}
    assert "// mine" in added
    assert "// why" in added
    toml = '[mcp_servers.handrail]\ncommand = "old" # why\nstartup_timeout_sec = 20 # slow\n'
    added = with_entry(CODEX, toml, "handrail", OURS)
    assert entries(CODEX, added)["handrail"]["startup_timeout_sec"] == 20
    assert "# why" in added
    assert "# slow" in added


def test_a_server_that_a_person_turned_off_stays_off() -> None:
    text = with_entry(OPENCODE, "", "handrail", OURS).replace('"enabled": true', '"enabled": false')
    assert entries(OPENCODE, with_entry(OPENCODE, text, "handrail", MOVED))["handrail"]["enabled"] is False


def test_variables_of_other_people_stay_in_the_environment() -> None:
    for text in (
        '[mcp_servers.handrail]\ncommand = "h"\nargs = ["mcp"]\nenv = { A = "1" }\n',
        '[mcp_servers.handrail]\ncommand = "h"\nargs = ["mcp"]\n\n[mcp_servers.handrail.env]\nA = "1"\n',
    ):
        added = with_entry(CODEX, text, "handrail", MOVED)
        assert entries(CODEX, added)["handrail"]["env"] == {"A": "1", "HANDRAIL_HOME": "/data"}
        assert entries(CODEX, without_entry(CODEX, added, "handrail")) == {}


@pytest.mark.parametrize(
    ("client", "text"),
    [
        (CLAUDE, '{"mcpServers": {"handrail": {"type": "http", "url": "http://127.0.0.1:1/mcp"}}}'),
        (CODEX, '[mcp_servers.handrail]\nurl = "http://127.0.0.1:1/mcp"\n'),
    ],
)
def test_an_entry_of_the_same_name_that_starts_no_command_is_not_taken_over(client: Client, text: str) -> None:
    with pytest.raises(Conflict, match="already"):
        with_entry(client, text, "handrail", OURS)


@pytest.mark.parametrize(
    ("client", "text"),
    [
        (CLAUDE, '{"mcpServers": []}'),
        (CLAUDE, '{"mcpServers": {"handrail": {"command": "a"}, "handrail": {"command": "b"}}}'),
        (CLAUDE, "[]"),
        (CODEX, 'mcp_servers.handrail.command = "x"\n'),
        (CODEX, "[mcp_servers.a.env]\n[[list]]\n[mcp_servers.a]\n"),
        (GOOSE, "extensions: [a]\n"),
        (GOOSE, "- a\n"),
        (GOOSE, "a: 1\n---\nb: 2\n"),
        (GOOSE, "extensions: &all\n  a: {type: builtin}\nthe same: *all\n"),
    ],
)
def test_what_can_not_be_changed_safely_is_refused_with_a_way_out(client: Client, text: str) -> None:
    with pytest.raises(HandrailError) as caught:
        with_entry(client, text, "handrail", OURS)
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "extensions:\n",
        "extensions: # none\n",
        "extensions: null\nb: 1\n",
        "extensions: {}\n",
        "extensions: {a: {type: builtin}} # flow\n",
        "b: 1",
        "{}",
        "extensions:\n    deep:\n        type: builtin",
        "extensions:\n  a:\n    text: |\n      hi\n\nz: 2\n",
    ],
)
def test_yaml_of_every_make_takes_the_entry(text: str) -> None:
    added = with_entry(GOOSE, text, "handrail", OURS)
    known = set(entries(GOOSE, text))
    assert set(entries(GOOSE, added)) == known | {"handrail"}
    assert set(entries(GOOSE, without_entry(GOOSE, added, "handrail"))) == known


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { other = { command = "x" } }\n',
        '[mcp_servers]\nother = { command = "x" } # mine\n\n# about z\n[z]\n',
        "[mcp_servers]\na.b.c = 1\n",
        '[mcp_servers.a]\ncommand = "x"\n[z]\n[mcp_servers.b]\ncommand = "y"\n\n# the end\n',
        "[[mcp_servers.list]]\nq = 2\n",
    ],
)
def test_toml_of_every_make_takes_the_entry_and_gives_it_back(text: str) -> None:
    moved = with_entry(CODEX, with_entry(CODEX, text, "handrail", OURS), "handrail", MOVED)
    assert launch_of(entries(CODEX, moved)["handrail"]) == MOVED
    assert without_entry(CODEX, moved, "handrail") == text


def test_a_new_key_stands_with_the_keys_and_comments_of_the_next_table_outlive_our_entry() -> None:
    text = '[mcp_servers.handrail]\r\ncommand = "h"\r\n\r\n# about z\r\n[z]\r\n'
    added = with_entry(CODEX, text, "handrail", OURS)
    command = f'command = "{OURS.command}"\r\nargs = ["mcp"]\r\n'
    assert added == f"[mcp_servers.handrail]\r\n{command}\r\n# about z\r\n[z]\r\n"
    assert without_entry(CODEX, added, "handrail") == "\r\n# about z\r\n[z]\r\n"


def test_tomlkit_is_imported_only_for_a_client_that_keeps_toml() -> None:
    script = (
        "import sys\n"
        "from handrail.interfaces.clients import enrolment, entry\n"
        "from handrail.interfaces.clients.client import CLIENTS\n"
        "for client in CLIENTS.values():\n"
        "    if client.format.value != 'toml': entry.syntax_of(client)\n"
        "print('tomlkit' in sys.modules)\n"
        "entry.syntax_of(CLIENTS['codex'])\n"
        "print('tomlkit' in sys.modules)\n"
    )
    assert run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "False\nTrue\n"


def test_json_on_one_line_stays_on_one_line() -> None:
    assert with_entry(CLAUDE, '{"mcpServers":{"a":{"command":"x"}}}', "handrail", OURS) == (
        '{"mcpServers":{"a":{"command":"x"},"handrail":{"command":"/opt/handrail/bin/handrail","args":["mcp"]}}}'
    )


def test_json_keeps_tabs() -> None:
    text = '{\n\t"mcpServers": {\n\t\t"a": {\n\t\t\t"command": "x"\n\t\t}\n\t}\n}\n'
    added = with_entry(CLAUDE, text, "handrail", OURS)
    assert '\n\t\t"handrail": {\n\t\t\t"command": ' in added
    assert "  " not in added


def test_flags_that_a_person_added_follow_ours_and_ours_are_never_doubled() -> None:
    ours = ("handrail", "mcp", "--project", "new")
    assert merged_args(["x", "mcp", "--project", "old", "--toolsets", "run"], ours) == [*ours, "--toolsets", "run"]
    assert merged_args(["x", "serve"], ours) == [*ours]


_words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=8,
)
_blanks = st.sampled_from(["", " ", "\n", "\r\n", "\t", " // remark\n", "/* a */", "/* {\n} */"])


@st.composite
def _jsonc(draw: st.DrawFn, value: object) -> str:
    """A value as JSON with comments, trailing commas and blanks wherever they may stand."""
    if not isinstance(value, dict | list):
        return draw(_blanks) + json.dumps(value) + draw(_blanks)
    if isinstance(value, dict):
        parts = [f"{draw(_blanks)}{json.dumps(key)}{draw(_blanks)}:{draw(_jsonc(part))}" for key, part in value.items()]
    else:
        parts = [draw(_jsonc(part)) for part in value]
    comma = draw(st.sampled_from(["", ",", ", "])) if parts else ""
    left, right = "{}" if isinstance(value, dict) else "[]"
    return f"{draw(_blanks)}{left}{','.join(parts)}{comma}{draw(_blanks)}{right}{draw(_blanks)}"


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_json_with_comments_takes_the_entry_and_gives_it_back(data: st.DataObject) -> None:
    value: dict[str, Any] = data.draw(st.dictionaries(_words, _values, max_size=3))
    if data.draw(st.booleans()):
        value["mcpServers"] = data.draw(st.dictionaries(_words, st.just({"command": "x"}), max_size=3))
    text = data.draw(_jsonc(value))
    assert jsonc_text.read(text) == value
    added = with_entry(CLAUDE, text, "handrail", OURS)  # it checks its own work
    without_entry(CLAUDE, added, "handrail")
    assert added.count("// remark") == text.count("// remark")
