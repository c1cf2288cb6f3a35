"""A node of a fleet: a process with a worker and tools whose effects are lines of a file.

python node.py NAME EFFECTS   (settings as ever: HANDRAIL_HOME, HANDRAIL_STORE, HANDRAIL_HOST, ...)"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from handrail.assembly.opening import open_assembly
from handrail.settings import read_settings
from handrail.storage.migrations import Migration
from handrail.storage.postgres import store as postgres_store
from handrail.storage.postgres.migration import shipped
from handrail.tools.sdk import PythonTool, ToolContext, fail, later, tool

RELEASED = "released"
NEWER = "HANDRAIL_TEST_NEWER"
"""Set for a node of a later version, which changes a table that all nodes use."""
LATER = Migration(99, "later", "alter table handrail.run add column later bigint not null default 0")


def tools_of(name: str, effects: str) -> Sequence[PythonTool]:
    """Tools that write down what they do, in one write each."""
    file = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def wrote(what: str, context: ToolContext) -> None:
        line = {"what": what, "run": context.run, "step": context.step, "key": context.key, "node": name}
        os.write(file, json.dumps(line).encode() + b"\n")

    @tool("fleet.note", effect="compensatable")
    async def note(context: ToolContext) -> Any:
        """Have an effect, at once; a second call has it twice."""
        wrote("note", context)
        return {"done": context.step}

    @note.undo
    async def unnote(context: ToolContext) -> Any:
        wrote("undo", context)

    @tool("fleet.slow", effect="compensatable", idempotent=True)
    async def slow(ms: int, context: ToolContext) -> Any:
        """Have an effect by its key, and take some time."""
        wrote("slow", context)
        await asyncio.sleep(ms / 1_000)
        return {"done": context.step}

    @slow.undo
    async def unslow(context: ToolContext) -> Any:
        wrote("undo", context)

    @tool("fleet.flaky", effect="none", retry={"attempts": 4, "first": "100ms"})
    async def flaky(context: ToolContext) -> Any:
        """Fail the first time."""
        if context.attempt == 1:
            fail("transient", "not yet")
        return {"done": context.step}

    @tool("fleet.wait", effect="none")
    async def wait(delay: str, context: ToolContext) -> Any:
        """Be called again later."""
        return {"done": context.step} if context.deferred else later(delay)

    @tool("fleet.hold", effect="none", timeout="10m")
    async def hold(context: ToolContext) -> Any:
        """Be at work until the test lets go, by a file beside the effects."""
        while not Path(effects).with_name(RELEASED).exists():
            await asyncio.sleep(0.05)
        wrote("hold", context)
        return {"done": context.step}

    @tool("fleet.break", effect="none")
    async def broken() -> Any:
        """Fail for all time."""
        fail("invalid_input", "broken")

    return note, slow, flaky, wait, hold, broken


async def main(name: str, effects: str) -> None:
    if os.environ.get(NEWER):
        patch.object(postgres_store, "shipped", return_value=[*shipped(), LATER]).start()
    settings = read_settings({}, dict(os.environ))
    ends = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ends.set)
    async with open_assembly(settings, actor="worker", tools=tools_of(name, effects)) as parts:
        os.write(1, f"{parts.worker.settings.owner}\n".encode())
        await ends.wait()


if __name__ == "__main__":
    logging.basicConfig(filename=Path(sys.argv[2]).with_suffix(f".{sys.argv[1]}.log"), level=logging.INFO)
    asyncio.run(main(sys.argv[1], sys.argv[2]))
