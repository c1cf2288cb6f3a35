"""The protocol's Inspector, strict: what handrail lists can be used by every kind of model, in both eras."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from outside.agents import TRANSPORTS, Started, Where, where
from outside.nodejs import Node, installed
from outside.processes import PATIENCE_S, Place
from outside.story import TOOLS, stage

INSPECTOR = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
ERAS = ("legacy", "modern")
REMARKED = re.compile(r"^\s*Path: (\S+)", re.MULTILINE)
ANYTHING = "inputSchema.properties.output"
"""The output of a step may be any JSON value: the only remark that the Inspector may make."""


async def inspect(node: Node, found: Where, place: Place, *options: str) -> tuple[Any, str]:
    """What the Inspector says to a request, and what it remarks beside; it must end well."""
    home = {"HOME": str(place.home.parent), "MCP_INSPECTOR_SECRET_STORE": "memory"}
    process = await asyncio.create_subprocess_exec(
        *(*node.script(INSPECTOR), "--cli", *_target(found), *options, "--format", "json"),
        env={**place.environment, **home},
        cwd=place.project,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, erred = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 0, erred.decode()
    return json.loads(said)["result"], erred.decode()


def _target(found: Where) -> Sequence[str]:
    if isinstance(found, Started):
        own = {name: value for name, value in found.place.environment.items() if name.startswith("HANDRAIL_")}
        passed_on = [word for name, value in own.items() for word in ("-e", f"{name}={value}")]
        return [*found.command, "--transport", "stdio", "--cwd", str(found.place.project), *passed_on]
    return [found.url, "--transport", "http", "--header", f"Authorization: Bearer {found.token}"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_strict_inspector_has_nothing_against_our_tools(transport: str, era: str, tmp_path: Path) -> None:
    node, place = installed("the Inspector"), stage(tmp_path)
    async with where(transport, place) as found:
        options = ("--protocol-era", era, "--method", "tools/list", "--strict")
        listed, remarks = await inspect(node, found, place, *options)
    assert {tool["name"] for tool in listed["tools"]} == TOOLS
    assert set(REMARKED.findall(remarks)) == {ANYTHING}, remarks


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_inspector_can_call_a_tool(transport: str, era: str, tmp_path: Path) -> None:
    node, place = installed("the Inspector"), stage(tmp_path)
    arguments = ("--tool-name", "workflow_get", "--tool-args-json", json.dumps({"id": "ship"}))
    async with where(transport, place) as found:
        called, _ = await inspect(node, found, place, "--protocol-era", era, "--method", "tools/call", *arguments)
    assert called["structuredContent"]["id"] == "ship"
    assert called["content"][0]["text"].startswith("ship 1.0.0")
