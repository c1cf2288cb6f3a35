"""Makes the snapshot of first answers without a client, for `handrail cache warm`: the next start has it at once."""

from __future__ import annotations

import asyncio
import os
from importlib.metadata import version

from handrail.assembly.opening import carrying_key
from handrail.interfaces.mcp.shell import build
from handrail.interfaces.mcp.stdio.arguments import read_options
from handrail.interfaces.mcp.stdio.folders import find_folders
from handrail.interfaces.mcp.stdio.recording import record
from handrail.interfaces.mcp.stdio.snapshot_file import SnapshotFile
from handrail.interfaces.mcp.surface.handrail_surface import surface_of
from handrail.interfaces.mcp.surface.lazy_program import LazyProgram
from handrail.interfaces.mcp.surface.offer import Toolset
from handrail.settings import Settings


async def make_snapshot(settings: Settings) -> int:
    """Record what `handrail mcp` answers first, unless that is recorded already; how many answers there are."""
    options = read_options(["--home", str(settings.home), "--project", str(settings.project)], os.environ)
    assert options is not None, "no help was asked for"  # noqa: S101
    file = SnapshotFile(find_folders(options.flags, os.environ), options.toolsets)
    known = await asyncio.to_thread(file.load)
    if known is not None or settings.choices.library:  # with more library folders there is no snapshot
        return len(known or ())
    program = LazyProgram(settings)
    try:
        surface = surface_of(program, version=version("handrail"), toolsets=[Toolset(one) for one in options.toolsets])
        answers = await record(build(surface, keys=[carrying_key(settings)]), lambda: asyncio.sleep(0))
    finally:
        await program.close()
    return len(answers) if await asyncio.to_thread(file.save, answers) else 0
