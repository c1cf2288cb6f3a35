"""What catalogues and bundles say about handrail: `server.json`, the `.mcpb` bundle and `SKILL.md`, from one source.

Name, version, summary and licence come from the package, tools from the surface. `make manifests` writes the documents
to docs/clients/, and a test keeps them equal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import metadata
from typing import Any, Final

from handrail.interfaces.clients.launch import NAME, SERVE

REGISTRY_NAME: Final = "io.github.handrail-dev/handrail"
"""How the MCP Registry calls us; the README proves with a line `mcp-name: ...` that the package is ours."""
REGISTRY_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
MCPB_VERSION: Final = "0.4"
TITLE: Final = "handrail"
AUTHOR: Final = "handrail contributors"


@dataclass(frozen=True, slots=True)
class Product:
    """What is said of handrail everywhere."""

    version: str
    summary: str
    licence: str
    python: str
    keywords: tuple[str, ...]
    tools: Sequence[tuple[str, str]]
    """Names, and what each is for."""


@dataclass(frozen=True, slots=True)
class Option:
    """What a person may choose when a client starts handrail."""

    key: str
    title: str
    description: str
    variable: str = ""
    flag: str = ""
    default: str = ""
    is_folder: bool = False


OPTIONS: Final = (
    Option(
        key="project",
        title="Project folder",
        description="Where plans may read and write files, and where .handrail/workflows lies",
        flag="--project",
        is_folder=True,
    ),
    Option(
        key="home",
        title="Home of the journal",
        description="Where all state is kept; empty: the platform's folder for a program's data",
        variable="HANDRAIL_HOME",
        is_folder=True,
    ),
    Option(
        key="toolsets",
        title="Toolsets",
        description="Which tools the agent sees: any of guide, run and journal, with commas between",
        variable="HANDRAIL_TOOLSETS",
        default="guide,run,journal",
    ),
)


def product(tools: Sequence[tuple[str, str]]) -> Product:
    """What the installed package says of itself, with the tools it offers."""
    said = metadata(NAME)
    return Product(
        version=said["Version"],
        summary=said["Summary"],
        licence=said["License-Expression"],
        python=said["Requires-Python"],
        keywords=tuple(said["Keywords"].split(",")),
        tools=tools,
    )


def documents(said: Product) -> Mapping[str, str]:
    """Every document by its path in docs/clients/."""
    return {
        "server.json": _json(server_json(said)),
        "mcpb/manifest.json": _json(mcpb_manifest(said)),
        "mcpb/pyproject.toml": MCPB_PROJECT.format(name=NAME, version=said.version, python=said.python),
        "mcpb/serve.py": MCPB_ENTRY,
        "handrail/SKILL.md": SKILL,
    }


def server_json(said: Product) -> dict[str, Any]:
    """The entry in the MCP Registry."""
    flags = [
        {"type": "named", "name": option.flag, "description": option.description, "format": _format(option)}
        for option in OPTIONS
        if option.flag
    ]
    variables = [
        {"name": option.variable, "description": option.description, "format": _format(option)}
        | ({"default": option.default} if option.default else {})
        for option in OPTIONS
        if option.variable
    ]
    package = {
        "registryType": "pypi",
        "identifier": NAME,
        "version": said.version,
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
        "packageArguments": [{"type": "positional", "value": SERVE}, *flags],
        "environmentVariables": variables,
    }
    return {
        "$schema": REGISTRY_SCHEMA,
        "name": REGISTRY_NAME,
        "title": TITLE,
        "description": said.summary,
        "version": said.version,
        "packages": [package],
    }


def mcpb_manifest(said: Product) -> dict[str, Any]:
    """The manifest of the bundle that desktop clients install with one click."""
    flags = [word for option in OPTIONS if option.flag for word in (option.flag, _chosen(option))]
    return {
        "manifest_version": MCPB_VERSION,
        "name": NAME,
        "display_name": TITLE,
        "version": said.version,
        "description": said.summary,
        "author": {"name": AUTHOR},
        "license": said.licence,
        "keywords": list(said.keywords),
        "server": {
            "type": "uv",
            "entry_point": "serve.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", "serve.py", SERVE, *flags],
                "env": {option.variable: _chosen(option) for option in OPTIONS if option.variable},
            },
        },
        "tools": [{"name": name, "description": description} for name, description in said.tools],
        "compatibility": {"platforms": ["darwin", "linux", "win32"], "runtimes": {"python": said.python}},
        "user_config": {option.key: _asked(option) for option in OPTIONS},
    }


def _asked(option: Option) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "type": "directory" if option.is_folder else "string",
        "title": option.title,
        "description": option.description,
        "required": bool(option.flag),
    }
    return asked if option.flag else asked | {"default": option.default}


def _chosen(option: Option) -> str:
    return f"${{user_config.{option.key}}}"


def _format(option: Option) -> str:
    return "filepath" if option.is_folder else "string"


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


MCPB_PROJECT: Final = """\
# What the bundle installs; made by `make manifests`.
[project]
name = "{name}-bundle"
version = "{version}"
requires-python = "{python}"
dependencies = ["{name}=={version}"]
"""
MCPB_ENTRY: Final = '''\
"""Starts handrail; what it is asked to do stands in the manifest."""

from handrail.__main__ import main

main()
'''
SKILL: Final = """\
---
name: handrail
description: >-
  Hold on to handrail while you do a long task: follow a workflow step by step, run a plan that can be undone, and
  write down decisions and actions so that any later chat can resume. Use it for work of many steps, for changes that
  may have to be taken back, and whenever the user names a workflow, a plan or a run.
---

# Working with handrail

handrail is an MCP server. Everything is named by ids that you pass along; nothing hides in a session. A run goes on
when the chat ends. Every write answers with a `receipt`; every error carries `next`, a call that repairs it: make it.

## Where am I?

Begin with `status` without arguments: the open runs. To go on with one, call `workflow_next` with its `run` alone: you
get the goal, what is done, the decisions, and the present step again. Do this after every loss of context.

## Follow a workflow

1. `workflow_list` with a query; `workflow_get` shows inputs and steps.
2. `workflow_next` with `workflow`, `inputs` and the user's `goal`: you get a `run` and the first step.
3. Do what the step says. Hand it in: `workflow_next` with `run`, `step` and `output`.
4. Not accepted? Read the findings, mend, hand in again. `workflow_validate` tries an output without handing it in.
5. A step with `confirm` needs the user's yes first: ask, then pass `confirmed: true`. Never answer for them.

If you could not do a step, say so: `outcome: failed` with a `note`. A false `done` is found out by a check.

## Run a plan

Write a plan when handrail should call the tools itself.

1. `save_plan`: steps with `tool` and `args`, `after` for order, and for what changes the world its `effect` and `undo`.
2. `execute_plan` with `dry_run: true` shows what would run; without it, you get a `run` at once.
3. `status` says how it stands. On a failure it lists `options`, each with a ready call.
4. `control` decides: `retry`, `skip`, `compensate`, `pause`, `resume`, `cancel`, `accept`; always with a `reason`.
   Prefer asking the user before `compensate` and `cancel`. An approval is a person's: do not approve your own run.
5. You undid something by hand? `record_compensation`, so that the journal is true.

## Only write down

When you do all the work yourself and only want it on record: `record_plan`, then `record_execution_start`; for each
choice `record_decision` with the reason and the alternatives, for each thing done `record_action`. `query_ledger`
reads it back; `verify: true` proves that nothing was changed.

## Habits

- Record a decision when you take it, not at the end.
- Pass ids on exactly as you got them. Pass big values by file or reference.
- Repeating a call after a lost answer does no harm.
- Tell the user the run's id when you stop.
"""
