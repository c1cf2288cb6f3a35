"""Checks as readers see them: what each looked at, its evidence, and the outputs that were refused before."""

from __future__ import annotations

from typing import Any

import pytest

from engine.guided_runs import led
from engine.stage import ADA, plan
from handrail.domain.checks.rule import LooksAt, looked_at
from handrail.domain.run.legal_controls import Action
from handrail.engine.reading.check_view import JudgedOutput
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.reading.run_view import Detail, Status
from handrail.interfaces.reports.content import known_by
from virtual_time import in_virtual_time

WRITE = plan({"id": "write", "prompt": "write", "checks": [{"rule": "equals", "value": "right"}]})


def test_each_judged_output_has_its_checks_with_what_they_looked_at() -> None:
    async def scene() -> tuple[Status, tuple[JudgedOutput, ...]]:
        climb = await led(WRITE)
        await climb.submit("write", "wrong")
        await climb.submit("write", "right")
        reader = RunReader(climb.stage.store, climb.stage.clock)
        status = await reader.status(climb.run, detail=Detail.FULL)
        return status, await reader.judged(climb.run, "write")

    status, (refused, done) = in_virtual_time(scene)
    (step,) = status.steps
    assert (step.proof, step.looks_at) == ("checked", {"equals": LooksAt.WORDS})
    assert (refused.accepted, done.accepted) == (False, True)
    (check,) = refused.checks
    assert (check.rule, check.passed, check.looks_at) == ("equals", False, LooksAt.WORDS)
    assert [one["rule"] for one in check.findings] == ["equals"]
    assert done.checks[0].passed
    assert refused.n < done.n


def test_refused_submissions_are_counted_and_only_a_check_that_ran_is_proof() -> None:
    what = plan(
        {"id": "call", "tool": "x.do"},
        {"id": "write", "prompt": "write", "checks": [{"rule": "equals", "value": "right"}]},
        {"id": "say", "prompt": "say"},
        {"id": "go", "approve": "Go?"},
    )

    async def scene() -> Status:
        climb = await led(what)
        await climb.now()
        for word in ("wrong", "wrong again", "right"):
            await climb.submit("write", word)
        await climb.submit("say", "anything")
        await climb.now()
        await climb.stage.control.act(climb.run, Action.APPROVE, actor=ADA, reason="looks good")
        await climb.now()
        return await RunReader(climb.stage.store, climb.stage.clock).status(climb.run, detail=Detail.FULL)

    status = in_virtual_time(scene)
    assert [(step.id, step.status.value, step.proof, step.refused) for step in status.steps] == [
        ("call", "completed", "", 0),
        ("write", "completed", "checked", 2),
        ("say", "completed", "claimed", 0),
        ("go", "completed", "", 0),
    ]
    assert [known_by(step) for step in status.steps] == ["executed", "checked, equals", "claimed", "approved"]


@pytest.mark.parametrize(
    ("evidence", "looks"),
    [
        ({"rule": "equals"}, LooksAt.WORDS),
        ({"rule": "tests_pass", "ran": ["pytest"]}, LooksAt.WORLD),
        ({"rule": "file_exists", "digest": "sha256:1"}, LooksAt.WORLD),
        ({"rule": "all_of", "looks_at": "world"}, LooksAt.WORLD),
    ],
)
def test_evidence_that_does_not_say_what_was_looked_at_shows_it(evidence: dict[str, Any], looks: LooksAt) -> None:
    assert looked_at(evidence) is looks
