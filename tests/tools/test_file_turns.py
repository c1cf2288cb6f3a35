"""Steps that change one file at the same time: nothing is lost, in one process and in several, and all is undone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from handrail.assembly.opening import open_assembly
from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Category
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import RunStatus
from handrail.engine.tool import ToolCall, ToolFailed
from handrail.settings import read_settings
from handrail.tools.files import turns
from handrail.tools.files.turns import FileTurns
from handrail.tools.registry import Registry
from tools.calls import Fails, captured, registry

COUNT = 20
LINES = [f"line {number}" for number in range(COUNT)]


async def appended(tools: Registry, line: str) -> ToolCall:
    tool = tools.find("file.append")
    call = await captured(tool, {"path": "./log.txt", "text": f"{line}\n"}, step=line)
    await tool.call(call)
    return call


async def test_parallel_steps_of_a_run_append_every_line_and_undo_every_one(tmp_path: Path) -> None:
    settings = read_settings({"home": str(tmp_path / "home"), "project": str(tmp_path)}, {})
    step = {"id": "add", "tool": "file.append", "args": {"path": "log.txt", "text": "{{ line }}\n"}}
    each = {"id": "all", "each": "inputs.lines", "as": "line", "parallel": COUNT, "steps": [step]}
    fails = {"id": "fails", "tool": "file.read", "args": {"path": "missing"}}
    plan = {"id": "p", "inputs": {"lines": {"type": "array"}}, "max_parallel": COUNT, "steps": [each, fails]}
    (tmp_path / "log.txt").write_text("before\n")
    async with open_assembly(settings) as parts:
        run = await parts.worker.start(definition_from(plan), {"lines": LINES}, actor="person:ada")
        await parts.worker.settled(run.id)
        first, *rest = (tmp_path / "log.txt").read_text().splitlines()
        assert (first, sorted(rest)) == ("before", sorted(LINES))
        await parts.control.act(run.id, Action.COMPENSATE, reason="x", actor="person:ada")
        assert (await parts.worker.settled(run.id)).status is RunStatus.COMPENSATED
        assert (tmp_path / "log.txt").read_text() == "before\n"


async def test_two_processes_that_append_at_the_same_time_lose_nothing_unseen(tmp_path: Path) -> None:
    """Each has its own turns, as in two processes: who comes too late fails, and what was acknowledged is there."""
    one, other = registry(tmp_path), registry(tmp_path)

    for attempt in range(5):
        (tmp_path / "project" / "log.txt").unlink(missing_ok=True)
        tries = [appended((one, other)[number % 2], LINES[number]) for number in range(COUNT)]
        results = await asyncio.gather(*tries, return_exceptions=True)
        done = [call.step for call in results if isinstance(call, ToolCall)]
        assert sorted((tmp_path / "project" / "log.txt").read_text().splitlines()) == sorted(done), attempt
        late = [failure for failure in results if isinstance(failure, ToolFailed)]
        assert len(done) + len(late) == COUNT
        assert all("changed by something else" in failure.message for failure in late)


async def test_an_undo_waits_until_what_was_appended_after_it_is_undone(tmp_path: Path) -> None:
    tools = registry(tmp_path)
    tool, log = tools.find("file.append"), tmp_path / "project" / "log.txt"
    first, second = await appended(tools, "one"), await appended(tools, "two")
    with Fails(Category.TRANSIENT, "was changed by something else"):
        await tool.undo(first)
    await tool.undo(second)
    log.write_text("other\n")
    with Fails(Category.CONFLICT, "was changed by something else"):
        await tool.undo(first)
    log.write_text("one\n")
    await tool.undo(first)
    assert not log.exists()


async def test_a_step_that_never_makes_its_change_holds_no_other_up_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "TURN_S", 0.05)
    monkeypatch.setattr(turns, "TURNS_MAX", 2)
    tools = registry(tmp_path)
    for number in range(5):
        await captured(tools.find("file.append"), {"path": f"{number}.txt", "text": "x"}, step="stopped")
    async with asyncio.timeout(5):
        await appended(tools, "one")
        await captured(tools.find("file.append"), {"path": "log.txt", "text": "x"}, step="stopped")
        await appended(tools, "two")
    assert (tmp_path / "project" / "log.txt").read_text() == "one\ntwo\n"


async def test_a_turn_is_released_by_its_owner_only() -> None:
    held = FileTurns()
    await held.take("a", ("run", "one"))
    held.release("a", ("run", "two"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await held.take("a", ("run", "two"))
    held.release("a", ("run", "one"))
    await held.take("a", ("run", "two"))
