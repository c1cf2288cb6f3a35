"""The manifests of handrail for clients: the `.mcpb` bundle and `SKILL.md`.

Name, version, summary and licence come from the package's metadata, tools from the MCP surface. `make manifests` writes
them to docs/clients/, and a test checks that they are up to date. None of them fetches handrail by its name from a
package index: it is not published there, and a stranger who takes the name would be started by clients of our users. An
entry in the MCP Registry needs such a name, so there is none yet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import metadata
from typing import Any, Final

from handrail.interfaces.clients.launch import NAME, SERVE

MCPB_VERSION: Final = "0.4"
TITLE: Final = "handrail"
AUTHOR: Final = "handrail contributors"


@dataclass(frozen=True, slots=True)
class Product:
    """What all manifests say about handrail."""

    version: str
    summary: str
    licence: str
    python: str
    keywords: tuple[str, ...]
    tools: Sequence[tuple[str, str]]
    """Names and descriptions."""


@dataclass(frozen=True, slots=True)
class ManifestOption:
    """A setting that the user may choose in a client."""

    key: str
    title: str
    description: str
    variable: str = ""
    flag: str = ""
    default: str = ""
    is_folder: bool = False


OPTIONS: Final = (
    ManifestOption(
        key="project",
        title="Project folder",
        description="Where plans may read and write files, and where .handrail/workflows is",
        flag="--project",
        is_folder=True,
    ),
    ManifestOption(
        key="home",
        title="Home of the journal",
        description="Where all state is kept; empty: the platform's data folder",
        variable="HANDRAIL_HOME",
        is_folder=True,
    ),
    ManifestOption(
        key="toolsets",
        title="Toolsets",
        description="Which tools the agent sees: guide, run, journal, separated by commas",
        variable="HANDRAIL_TOOLSETS",
        default="guide,run,journal",
    ),
)


def product(tools: Sequence[tuple[str, str]]) -> Product:
    """The metadata of the installed package, with its tools."""
    info = metadata(NAME)
    return Product(
        version=info["Version"],
        summary=info["Summary"],
        licence=info["License-Expression"],
        python=info["Requires-Python"],
        keywords=tuple(info["Keywords"].split(",")),
        tools=tools,
    )


def documents(info: Product) -> Mapping[str, str]:
    """Every document by its path in docs/clients/."""
    return {
        "mcpb/manifest.json": _json(mcpb_manifest(info)),
        "mcpb/pyproject.toml": MCPB_PROJECT.format(name=NAME, version=info.version, python=info.python),
        "mcpb/serve.py": MCPB_ENTRY,
        "handrail/SKILL.md": SKILL,
    }


def mcpb_manifest(info: Product) -> dict[str, Any]:
    """The manifest of the bundle that desktop clients install with one click."""
    flags = [word for option in OPTIONS if option.flag for word in (option.flag, _placeholder(option))]
    return {
        "manifest_version": MCPB_VERSION,
        "name": NAME,
        "display_name": TITLE,
        "version": info.version,
        "description": info.summary,
        "author": {"name": AUTHOR},
        "license": info.licence,
        "keywords": list(info.keywords),
        "server": {
            "type": "uv",
            "entry_point": "serve.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", "serve.py", SERVE, *flags],
                "env": {option.variable: _placeholder(option) for option in OPTIONS if option.variable},
            },
        },
        "tools": [{"name": name, "description": description} for name, description in info.tools],
        "compatibility": {"platforms": ["darwin", "linux", "win32"], "runtimes": {"python": info.python}},
        "user_config": {option.key: _user_setting(option) for option in OPTIONS},
    }


def _user_setting(option: ManifestOption) -> dict[str, Any]:
    field: dict[str, Any] = {
        "type": "directory" if option.is_folder else "string",
        "title": option.title,
        "description": option.description,
        "required": bool(option.flag),
    }
    return field if option.flag else field | {"default": option.default}


def _placeholder(option: ManifestOption) -> str:
    return f"${{user_config.{option.key}}}"


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


MCPB_PROJECT: Final = """\
# What the bundle installs; made by `make manifests`.
[project]
name = "{name}-bundle"
version = "{version}"
requires-python = "{python}"
dependencies = ["{name}=={version}"]

# The wheel lies in the bundle: no index is asked for it.
[tool.uv.sources]
{name} = {{ path = "{name}-{version}-py3-none-any.whl" }}
"""
MCPB_ENTRY: Final = '''\
"""Starts handrail; its arguments are in the manifest."""

from handrail.__main__ import main

main()
'''
SKILL: Final = """\
---
name: handrail
description: >-
  Use handrail for long tasks: follow a workflow step by step, run a plan that can be undone, and record decisions and
  actions so that any later chat can resume. Use it for work of many steps, for changes that may have to be undone, and
  whenever the user names a workflow, a plan or a run.
---

# Working with handrail

handrail is an MCP server. Everything has an id that you pass along; there is no hidden session. A run continues when
the chat ends. Every write answers with a `receipt`; every error carries `next`, a call that repairs it: make it.

## Where am I?

Start with `status` without arguments: the open runs. To continue one, call `workflow_next` with its `run` alone: you
get the goal, what is done, the decisions, and the current step. Do this after every loss of context.

## Follow a workflow

1. `workflow_list` with a query; `workflow_get` shows inputs and steps.
2. `workflow_next` with `workflow`, `inputs` and the user's `goal`: you get a `run` and the first step.
3. Do what the step says. Submit it: `workflow_next` with `run`, `step` and `output`.
4. Not accepted? Read the findings, fix them, submit again. `workflow_validate` checks an output without submitting it.
5. A step with `confirm` needs the user's yes first: ask, then pass `confirmed: true`. Never answer for them.

If you could not do a step, say so: `outcome: failed` with a `note`. Checks detect a false `done`.

## Run a plan

Write a plan when handrail should call the tools itself.

1. `save_plan`: steps with `tool` and `args`, `after` for order, and `effect` and `undo` for what changes something.
2. `execute_plan` with `dry_run: true` shows what would run; without it, you get a `run` at once.
3. `status` shows the progress. On a failure it lists `options`, each with a ready call.
4. `control` decides: `retry`, `skip`, `compensate`, `pause`, `resume`, `cancel`, `accept`; always with a `reason`.
   Prefer asking the user before `compensate` and `cancel`. An approval is a person's: do not approve your own run.
5. You undid something by hand? `record_compensation`, so that the journal is correct.

## Only record

When you do all the work yourself and only want a record: `record_plan`, then `record_execution_start`; for each
choice `record_decision` with the reason and the alternatives, for each action `record_action`. `query_ledger`
reads it back; `verify: true` proves that no event was changed.

## Habits

- Record a decision when you make it, not at the end.
- Pass ids on exactly as you got them. Pass big values by file or reference.
- Repeating a call after a lost answer does no harm.
- Tell the user the run's id when you stop.
"""
