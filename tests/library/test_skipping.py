"""Skipping in the built-in workflows: whichever step somebody leaves out, the rest of the run bears it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from handrail.domain.definition.model import Definition, Prompt, Skippable
from handrail.domain.policy.skipping import who_may_skip
from handrail.domain.rehearsal.script import Script, plain
from handrail.domain.rehearsal.walk import Walked, walk_through
from handrail.domain.run.step_path import locate
from handrail.domain.run.step_state import StepState
from outside.parts import COMPLETED, built_in_names, cast_of_play, whole_tests_of

WAYS_MAX = 2
ABOUT_THE_SCRIPT = ("the script", "was accepted that should have been refused")
"""A skip takes another way than the script was written for: what it lacks there is no fault of the workflow."""

UNTRUE_THEN = {
    ("routine-plan-critique", "fix"): "waiting: agent: judge",
    ("production-readiness", "fix.close"): "waiting: agent: report",
}
"""Without this step something serious remains, and the script still says `ready`: that is refused, as it should be."""


@pytest.mark.parametrize("name", built_in_names())
def test_each_step_can_be_skipped_and_the_run_goes_on(name: str) -> None:
    faults = {(step, fault) for step, walked in _with_a_skip(name) for fault in _faults(walked)}
    assert faults == {(step, fault) for (workflow, step), fault in UNTRUE_THEN.items() if workflow == name}


def _with_a_skip(name: str) -> Iterator[tuple[str, Walked]]:
    """What becomes of tests that complete, with one of their steps skipped; each step on at most two ways."""
    definition, scripts = whole_tests_of(name)
    times: Counter[str] = Counter()
    for script in scripts:
        for step in _skippable(definition, script) if script.expect.end == COMPLETED else ():
            times[step] += 1
            if times[step] <= WAYS_MAX:
                left_out = replace(script, outcomes={**script.outcomes, step: "skipped"})
                yield step, walk_through(definition, left_out, cast_of_play())


def _skippable(definition: Definition, script: Script) -> list[str]:
    """The prompt steps on the way of a script that somebody may skip."""
    path = walk_through(definition, script, cast_of_play()).path
    steps = {plain(one): locate(definition, one).step for one in path}
    prompts = {name: step for name, step in steps.items() if isinstance(step.work, Prompt)}
    return [
        name
        for name, step in prompts.items()
        if who_may_skip(definition, step, StepState()) is not Skippable.NOBODY and script.outcomes.get(name) is None
    ]


def _faults(walked: Walked) -> Iterator[str]:
    yield from (one for one in walked.trouble if not any(words in one for words in ABOUT_THE_SCRIPT))
    if walked.end != COMPLETED and not walked.trouble:
        yield f"{walked.end}: {walked.waits_for}"
