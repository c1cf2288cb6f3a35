"""What bundles and skills say about handrail: equal to the code, and without a name that is not ours yet."""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from importlib.metadata import version

import pytest
import yaml

from handrail.interfaces.mcp.surface.handlers.catalog import TOOLS
from tidy.yardstick import ROOT

HERE = ROOT / "docs" / "clients"
PAGES: dict[str, str] = dict(runpy.run_path(str(ROOT / "docs" / "manifests.py"))["pages"]())
NAMED = re.compile(
    r"(?:uvx|uv tool (?:run|install)|uv add|uv pip install|pipx (?:run|install)|pip install)"
    r"(?:\s+-\S+)*\s+handrail\b|mcp-name:|\"registryType\""
)
"""A line that fetches handrail from an index by its name, or claims the name in one."""


@pytest.mark.parametrize("name", PAGES)
def test_a_document_equals_the_code(name: str) -> None:
    assert (HERE / name).read_text(encoding="utf-8") == PAGES[name], "run: make manifests"


def test_no_document_is_left_that_nothing_generates() -> None:
    assert {file.relative_to(HERE).as_posix() for file in HERE.rglob("*") if file.is_file()} == set(PAGES)


def test_nothing_fetches_handrail_by_a_name_that_is_not_ours() -> None:
    """The package is not published: who takes its name first would be started by our users' clients."""
    written = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", *HERE.rglob("*")]
    for file in (one for one in written if one.is_file()):
        found = NAMED.findall(file.read_text(encoding="utf-8"))
        assert found == [], f"{file.name}: {found}"
    bundle = tomllib.loads(PAGES["mcpb/pyproject.toml"])
    assert bundle["tool"]["uv"]["sources"]["handrail"] == {"path": f"handrail-{version('handrail')}-py3-none-any.whl"}


@pytest.mark.parametrize(
    "line",
    ["uvx handrail mcp", "pip install handrail", "uv tool install handrail", "pipx run handrail", "mcp-name: io.x/h"],
)
def test_a_line_that_fetches_it_by_name_is_found(line: str) -> None:
    assert NAMED.findall(f"text {line} text")


def test_the_bundle_names_every_tool_and_installs_this_version() -> None:
    manifest = json.loads(PAGES["mcpb/manifest.json"])
    assert [tool["name"] for tool in manifest["tools"]] == [tool.name for tool in TOOLS]
    assert all(tool["description"].endswith(".") for tool in manifest["tools"])
    assert manifest["server"]["type"] == "uv"
    assert manifest["server"]["entry_point"] == "serve.py"
    bundle = tomllib.loads(PAGES["mcpb/pyproject.toml"])
    assert bundle["project"]["dependencies"] == [f"handrail=={version('handrail')}"]
    used = set(re.findall(r"\$\{user_config\.(\w+)\}", json.dumps(manifest["server"])))
    assert used == set(manifest["user_config"]), "what is asked is used, and what is used is asked"


def test_the_skill_teaches_every_tool_in_few_words() -> None:
    text = PAGES["handrail/SKILL.md"]
    _, front, body = text.split("---\n", 2)
    said = yaml.safe_load(front)
    assert said["name"] == "handrail"
    assert len(said["description"]) <= 1024
    assert len(body.split()) < 500
    names = {tool.name for tool in TOOLS}
    mentioned = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", body))
    assert names <= mentioned
    known = {name for tool in TOOLS for name in tool.input["properties"]}
    assert {word for word in mentioned if "_" in word} <= names | known
