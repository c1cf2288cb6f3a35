"""The protocol's own conformance suite, on handrail's shell and HTTP edge.

It asks for tools, resources and prompts of fixed names; conformance/ puts them on the same shell. Only tests do so."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pytest

from outside.conformance.suite import Judgement, judge
from outside.nodejs import installed

MODERN, HANDSHAKE = "2026-07-28", "2025-11-25"
SCORED = {MODERN: 37, HANDSHAKE: 30}
TASKS = {
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
}
KNOWN_WARNINGS = {
    # The answer to a question counts only with the sealed state of that very question; here it comes without.
    "sep-2322-ignore-unexpected-params",
    # A broken stream is not taken up again: a run lives outside of its request, and is asked for by its id.
    "server-sse-priming-event",
    "server-sse-retry-field",
}


@functools.cache
def judgement(revision: str) -> Judgement:
    node = installed("the conformance suite")
    with tempfile.TemporaryDirectory() as folder:
        return judge(node, revision, Path(folder))


@pytest.mark.parametrize("revision", SCORED)
def test_every_scenario_that_a_revision_requires_passes(revision: str) -> None:
    found = judgement(revision)
    assert found.exit == 0, found.flaws
    assert found.scored == found.passed & found.scored, found.scored - found.passed
    assert len(found.scored) == SCORED[revision]


@pytest.mark.parametrize("revision", SCORED)
def test_no_check_fails_and_no_warning_is_news(revision: str) -> None:
    found = judgement(revision)
    news = [check for check in found.having("WARNING") if check.id not in KNOWN_WARNINGS]
    flaws = [*found.having("FAILURE"), *news]
    assert not flaws, "\n".join(map(str, flaws))
    assert len(found.having("SUCCESS")) > len(found.scored)


def test_every_scenario_of_the_tasks_extension_passes() -> None:
    found = judgement(MODERN)
    assert found.passed >= TASKS, TASKS - found.passed
    assert {found.unscored[scenario] for scenario in TASKS} == {"extension"}
