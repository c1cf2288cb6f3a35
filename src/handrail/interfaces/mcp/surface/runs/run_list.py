"""The open runs, as `status` and `workflow_next` list them when no run is named."""

from __future__ import annotations

from shlex import quote
from typing import Any, Final

import msgspec

from handrail.assembly.opening import Assembly
from handrail.domain.run.status import RUN_SHOWN_OPEN
from handrail.engine.reading.run_view import RunSummary, WaitingKind
from handrail.interfaces.mcp.surface.answering import compact, reply
from handrail.interfaces.mcp.surface.caller import ToolReply

LISTED_MAX: Final = 50


async def open_runs(program: Assembly, tool: str) -> ToolReply:
    """All runs that have not ended, latest first, with the call that continues one."""
    runs = await program.run_reader.runs(status=RUN_SHOWN_OPEN, limit=1_000)
    latest = sorted(runs, key=lambda one: one.updated, reverse=True)
    data: dict[str, Any] = {"runs": [_listed(one) for one in latest[:LISTED_MAX]], "total": len(runs)}
    lines = [f"{one.run} {one.status.value} {one.workflow} {compact(one.goal, 100)}".rstrip() for one in latest]
    total = "1 open run" if len(runs) == 1 else f"{len(runs)} open runs"
    head = total + (f'; continue with {tool} {{"run": ".."}}' if runs else "")
    return reply(data, "\n".join([head, *lines[:LISTED_MAX]]))


def _listed(one: RunSummary) -> dict[str, Any]:
    """A run in the list; what exactly is asked is in its own status."""
    data: dict[str, Any] = msgspec.to_builtins(one)
    for waiting in data.get("waiting_for", ()):
        for name in ("digest", "effects", "unshown"):
            waiting.pop(name, None)
        if waiting["kind"] == WaitingKind.APPROVAL.value:
            waiting["command"] = f"handrail approve {one.run} {quote(waiting['step'])}"
    return data
