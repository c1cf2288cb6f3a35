"""A run that is left to a worker: one that lives has a moment to pick it up before anybody is warned."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from handrail.assembly.opening import open_assembly
from handrail.domain.run.command import StartRun
from handrail.interfaces.cli.run.pick_up import warn_if_not_picked_up
from handrail.runs import start_for_a_worker
from handrail.settings import read_settings

PLAN = {"name": "Slow", "steps": [{"id": "rest", "tool": "wait.for", "args": {"duration": "30s"}}]}


@pytest.mark.parametrize("is_taken", [True, False])
async def test_a_warning_waits_for_a_worker_that_lives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_taken: bool
) -> None:
    settings = read_settings({"home": str(tmp_path / "home"), "project": str(tmp_path)}, {})
    async with open_assembly(settings, picks_up=False) as parts:
        definition = parts.library.load_plan(PLAN).definition
        assert definition is not None
        dispatch = parts.writer.dispatch
        run = await start_for_a_worker(dispatch, parts.toolbox, definition, {}, actor="person:ann", ask=StartRun())
        status = await parts.run_reader.status(run.id)

        async def take() -> None:
            await asyncio.sleep(0.3)
            assert not is_taken or await parts.worker.take(run.id)

        await asyncio.gather(warn_if_not_picked_up(parts.writer.reader, status), take())
    assert ("no process executes it now" in capsys.readouterr().err) is not is_taken
