"""The open runs, as `status` and `workflow_next` list them when no run is named."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from handrail.assembly import Working
from handrail.domain.status import RUN_SHOWN_OPEN
from handrail.interfaces.mcp.surface.answering import compact, reply
from handrail.interfaces.mcp.surface.caller import Reply

LISTED_MAX: Final = 50


async def open_runs(at_work: Working, tool: str) -> Reply:
    """Every run that has not ended, the latest first, with the call that goes on with it."""
    runs = await at_work.lookout.runs(status=RUN_SHOWN_OPEN, limit=1_000)
    latest = sorted(runs, key=lambda one: one.updated, reverse=True)
    data: dict[str, Any] = {"runs": msgspec.to_builtins(latest[:LISTED_MAX]), "total": len(runs)}
    lines = [f"{one.run} {one.status.value} {one.workflow} {compact(one.goal, 100)}".rstrip() for one in latest]
    head = f"{len(runs)} open run(s)" + (f'; go on with {tool} {{"run": ".."}}' if runs else "")
    return reply(data, "\n".join([head, *lines[:LISTED_MAX]]))
