"""What is made of a tool's call: nothing is left over when the caller goes away, however early."""

from __future__ import annotations

import asyncio
import gc
import warnings

from engine.stage import puppet
from handrail.engine.running.calls.tool_answer import answer_of
from handrail.engine.tool import ToolCall


async def test_a_call_that_is_cancelled_before_it_starts_leaves_no_coroutine_behind() -> None:
    tool = puppet("t.one")
    call = ToolCall(tool="t.one", args={}, run="run_a", step="a", key="k", attempt=1)
    before = asyncio.all_tasks()
    asking = asyncio.ensure_future(answer_of(tool, call, timeout_ms=1_000))

    def end_all() -> None:
        """As a loop that is closed does, after the call's own task was made and before its first step."""
        for task in asyncio.all_tasks() - before:
            task.cancel()

    asyncio.get_running_loop().call_soon(end_all)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        await asyncio.wait([asking])
        await asyncio.sleep(0)
        gc.collect()
    assert asking.cancelled()
    assert tool.calls == []
    assert [str(one.message) for one in seen] == []
