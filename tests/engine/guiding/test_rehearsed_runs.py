"""The walker and the engine agree: what a rehearsal says of a built-in workflow is what a real run comes to."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.guided_runs import Led, led
from engine.stage import puppet, value_of
from handrail.domain.definition.model import Definition, Effect, Tool
from handrail.domain.definition.work_items import works_in
from handrail.domain.journal.event import ApprovalGiven, Outcome, StepCompensated, StepCompleted, StepSkipped
from handrail.domain.rehearsal.script import EXHAUSTED, Answers, Script, names_in
from handrail.domain.rehearsal.walk import WAITING, Walked
from handrail.domain.run.guidance import name_for_agent
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import RunStatus
from handrail.domain.run.step_path import UNDO
from handrail.domain.run.step_state import StepState
from handrail.library.test_script import read_tests, suite_file
from library.test_built_in_workflows import FILES, definition, report
from virtual_time import in_virtual_time

HAND_INS_MAX = 300
COMPUTES = "value.set"
"""The one tool that only gives a value back."""


class Company:
    """The agent and the people of a script, in a real run."""

    def __init__(self, run: Led, script: Script) -> None:
        self.run, self.script = run, script
        self.outputs, self.outcomes = Answers(script.outputs), Answers(script.outcomes)
        self.approvals = Answers(script.approvals)

    async def work(self) -> None:
        for _ in range(HAND_INS_MAX):
            seen = await self.run.next()
            asked = seen.prospect.asked
            if asked:
                said = self.approvals.next(asked[0], "approve")
                await self.run.act(Action.APPROVE if said == "approve" else Action.REJECT, step=asked[0])
            elif not seen.step or not await self._submit(name_for_agent(seen.run, seen.step), seen.run.step(seen.step)):
                return
        raise AssertionError("it never ended")

    async def _submit(self, step: str, state: StepState) -> bool:
        outcome = Outcome(self.outcomes.next(step, "done"))
        is_again = state.tries > 0 and not step.endswith(UNDO)
        if is_again and not self.outputs.tries_left(step):
            return False
        output: Any = self.outputs.next(step) if outcome is Outcome.DONE else None
        if output is EXHAUSTED:
            return False
        if outcome is Outcome.SKIPPED:  # by a person: the script does not say who, and gates are not for agents to skip
            await self.run.act(Action.SKIP, step=step)
            return True
        verdict = await self.run.submit(step, output, outcome=outcome, confirmed="ada")
        return verdict.accepted or bool(self.outputs.tries_left(step))


def is_plain(one: Definition, script: Script) -> bool:
    """Whether agents and people do all but computing, inlined workflows are walked through, and nobody stays away."""
    calls = {name for name, step in names_in(one) if step.kind == "workflow"}
    works = [work for each in (one, *one.pinned.values()) for _, work in works_in(each)]
    has_tools = any(isinstance(work, Tool) and work.tool != COMPUTES for work in works)
    return not has_tools and not script.vars and script.confirmed is True and not calls & set(script.outputs)


def scripts(file: Path) -> dict[str, Script]:
    suite = read_tests(suite_file(file).read_bytes(), name=file.name, definition=definition(file))
    return {script.name: script for script in suite.scripts}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_real_run_goes_the_way_of_its_rehearsal(file: Path) -> None:
    reported: dict[str, Walked] = {test.name: test.walked for test in report(file).tests}
    for name, script in scripts(file).items():
        if is_plain(definition(file), script):
            in_virtual_time(partial(_agrees, definition(file), script, reported[name]))


def test_most_scripts_are_compared_with_a_real_run() -> None:
    every = [is_plain(definition(file), script) for file in FILES for script in scripts(file).values()]
    assert sum(every) > len(every) / 2


async def _agrees(one: Definition, script: Script, reported: Walked) -> None:
    inputs = {key: schema["default"] for key, schema in one.inputs.items() if "default" in schema}
    run = await led(one, {**inputs, **script.inputs}, puppets=[puppet(COMPUTES, value_of, Effect.NONE)])
    await Company(run, script).work()
    after, events = await run.now(), await run.events()
    is_open = after.status in {RunStatus.RUNNING, RunStatus.COMPENSATING}
    assert (WAITING if is_open else after.status.value) == reported.end, script.name
    done = [event.step for event in events if isinstance(event, StepCompleted | ApprovalGiven)]
    assert sorted(done) == sorted(reported.path), script.name
    assert sorted(event.step for event in events if isinstance(event, StepSkipped)) == sorted(reported.skipped)
    assert [event.step for event in events if isinstance(event, StepCompensated)] == list(reported.undone)
    assert after.outputs == reported.outputs
