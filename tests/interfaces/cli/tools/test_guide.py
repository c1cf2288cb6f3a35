"""The guide to tools: what it shows can be pasted, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from handrail.interfaces.cli.program import program
from handrail.tools.mcp.declaration import declared_servers

GUIDE = Path(__file__).parents[4] / "docs" / "guides" / "tools.md"
TEXT = GUIDE.read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = sorted(set(re.findall(r"handrail ((?:tools|secrets) [a-z]+|approvals|approve|reject|run show)", TEXT)))


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_every_declaration_can_be_pasted(tmp_path: Path, snippet: str) -> None:
    file = tmp_path / "tools.json"
    file.write_text(snippet)
    assert declared_servers([file])


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_is_there(words: str) -> None:
    found: click.Command | None = program
    for word in words.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None


def test_it_shows_declarations_and_commands_and_stays_short() -> None:
    assert len(SNIPPETS) >= 3
    assert len(COMMANDS) >= 8
    assert len(TEXT.splitlines()) < 250
