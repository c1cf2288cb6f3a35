"""`handrail rules new`: a small package with one rule and its test, to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from handrail.domain.errors import Invalid
from handrail.interfaces.cli.program import json_option, reports_errors
from handrail.interfaces.cli.words.answer import answer
from handrail.interfaces.cli.words.new_files import write_new
from handrail.interfaces.cli.words.own_command import localized
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.rules.sdk import NAME

PROJECT: Final = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "PACKAGE"
version = "0.1.0"
description = "A rule for handrail."
requires-python = ">=3.11"
dependencies = ["handrail>=0.1"]

[project.entry-points."handrail.rules"]
RULE = "MODULE:RULE"

[tool.hatch.build.targets.wheel]
packages = ["src/MODULE"]

[tool.pytest.ini_options]
pythonpath = ["src"]
"""
CODE: Final = '''\
"""The rule RULE: say here what it is for."""

from collections.abc import Iterator

from handrail.rules.sdk import Context, Finding, rule


@rule("RULE", version="0.1.0", example={"words": ["TODO"]})
def RULE(context: Context, *, words: list[str]) -> Iterator[Finding]:
    """The output contains none of `words`."""
    for word in words:
        if word in str(context.output):
            yield Finding(f"the output contains `{word}`", fix=f"remove `{word}`")
'''
TEST: Final = '''\
"""What RULE finds, and what passes."""

import asyncio

from MODULE import RULE
from handrail.rules.testkit import check


def test_a_word_is_found() -> None:
    found = asyncio.run(check(RULE, {"words": ["TODO"]}, output={"text": "a TODO is left"}))
    assert [one.message for one in found] == ["the output contains `TODO`"]


def test_an_output_without_it_passes() -> None:
    assert asyncio.run(check(RULE, {"words": ["TODO"]}, output={"text": "done"})) == []
'''


@click.command()
@click.argument("name")
@click.option("--folder", metavar="FOLDER", help="Where to write it (default: ./NAME).")
@json_option
@reports_errors
async def new(name: str, folder: str | None, as_json: bool) -> None:
    """Write a small package with a rule called NAME and its test; nothing is overwritten."""
    if not NAME.fullmatch(name):
        raise Invalid(f"{name!r} is not a valid rule name", hint="use lowercase letters, digits and _, as in no_todo")
    place = Path(folder or name)
    module = f"{name}_rule"
    texts = {
        place / "pyproject.toml": PROJECT,
        place / "src" / module / "__init__.py": CODE,
        place / "tests" / f"test_{name}.py": TEST,
    }
    words = {"PACKAGE": module.replace("_", "-"), "MODULE": module, "RULE": name}
    filled = {file: _filled(text, words) for file, text in texts.items()}
    write_new(filled, project=Path.cwd(), hint="choose another name, or another folder with --folder")

    def print_text() -> None:
        for file in texts:
            say(f"wrote {file}")
        say(localized(f"next: edit it, then `handrail rules check {place}`; `pip install -e {place}` installs it"))

    answer(
        {"rule": name, "folder": str(place), "files": [str(file) for file in texts]},
        as_json=as_json,
        as_text=print_text,
    )


def _filled(text: str, words: dict[str, str]) -> str:
    for mark, word in words.items():
        text = text.replace(mark, word)
    return text
