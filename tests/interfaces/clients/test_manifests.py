"""What catalogues and bundles say about handrail: equal to the code, and as their formats want it."""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from importlib.metadata import version
from typing import Any

import jsonschema_rs
import pytest
import yaml

from handrail.interfaces.clients.manifests import REGISTRY_NAME
from handrail.interfaces.mcp.surface.handlers.catalog import TOOLS
from tidy.yardstick import ROOT

HERE = ROOT / "docs" / "clients"
PAGES: dict[str, str] = dict(runpy.run_path(str(ROOT / "docs" / "manifests.py"))["pages"]())

_INPUT = {
    "description": {"type": "string"},
    "default": {"type": "string"},
    "value": {"type": "string"},
    "format": {"enum": ["string", "number", "boolean", "filepath"]},
    "isRequired": {"type": "boolean"},
    "isSecret": {"type": "boolean"},
}
_POSITIONAL = {
    "properties": {"type": {"const": "positional"}, "valueHint": {"type": "string"}, **_INPUT},
    "required": ["type"],
    "anyOf": [{"required": ["value"]}, {"required": ["valueHint"]}],
    "additionalProperties": False,
}
_NAMED = {
    "properties": {"type": {"const": "named"}, "name": {"type": "string", "pattern": "^--?[a-z]"}, **_INPUT},
    "required": ["type", "name"],
    "additionalProperties": False,
}
_PACKAGE = {
    "type": "object",
    "required": ["registryType", "identifier", "version", "transport"],
    "additionalProperties": False,
    "properties": {
        "registryType": {"const": "pypi"},
        "identifier": {"type": "string", "minLength": 1},
        "version": {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)*([a-z0-9.+-]*)$", "maxLength": 255},
        "runtimeHint": {"type": "string"},
        "transport": {"type": "object", "required": ["type"], "properties": {"type": {"const": "stdio"}}},
        "packageArguments": {"type": "array", "items": {"type": "object", "anyOf": [_POSITIONAL, _NAMED]}},
        "environmentVariables": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string", "pattern": "^[A-Z_]+$"}, **_INPUT},
                "required": ["name"],
                "additionalProperties": False,
            },
        },
    },
}
SERVER_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["$schema", "name", "description", "version", "packages"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "pattern": "/schemas/[0-9]{4}-[0-9]{2}-[0-9]{2}/server\\.schema\\.json$"},
        "name": {"type": "string", "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", "minLength": 3, "maxLength": 200},
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": {"type": "string", "minLength": 1, "maxLength": 255},
        "packages": {"type": "array", "minItems": 1, "items": _PACKAGE},
    },
}


@pytest.mark.parametrize("name", PAGES)
def test_a_document_equals_the_code(name: str) -> None:
    assert (HERE / name).read_text(encoding="utf-8") == PAGES[name], "run: make manifests"


def test_no_document_is_left_that_nothing_generates() -> None:
    assert {file.relative_to(HERE).as_posix() for file in HERE.rglob("*") if file.is_file()} == set(PAGES)


def test_the_entry_in_the_registry_is_as_its_format_wants_it() -> None:
    entry = json.loads(PAGES["server.json"])
    validator = jsonschema_rs.validator_for(SERVER_SCHEMA)
    assert [str(error) for error in validator.iter_errors(entry)] == []
    assert entry["version"] == entry["packages"][0]["version"] == version("handrail")
    assert entry["name"] == REGISTRY_NAME


@pytest.mark.parametrize(
    ("key", "wrong"),
    [("description", "x" * 101), ("name", "handrail"), ("version", ""), ("packages", []), ("status", "active")],
)
def test_our_schema_of_the_registry_can_refuse(key: str, wrong: object) -> None:
    entry = json.loads(PAGES["server.json"]) | {key: wrong}
    assert not jsonschema_rs.validator_for(SERVER_SCHEMA).is_valid(entry)


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
