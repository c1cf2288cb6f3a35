"""An undo that was lost in a crash: called again unless it opted out, but not forever."""

from __future__ import annotations

import pytest

from domain.facts import RUN, after
from handrail.domain.definition.authoring import definition_from
from handrail.domain.journal.event import UndoBecameUncertain, UndoLost
from handrail.domain.run import command as c
from handrail.domain.run.decide import decide
from handrail.domain.run.decide_step import LOST_MAX
from handrail.domain.run.state import Run

TAG = {"id": "tag", "tool": "git.tag", "effect": "compensatable", "undo": {"tool": "git.untag"}}
ONE = definition_from({"id": "d", "steps": [TAG]})


@pytest.mark.parametrize(
    ("idempotent", "losses", "fact"),
    [
        (True, 0, UndoLost),
        (True, LOST_MAX - 1, UndoLost),
        (True, LOST_MAX, UndoBecameUncertain),
        (False, 0, UndoBecameUncertain),
    ],
)
def test_a_lost_undo_is_repeated_a_limited_number_of_times(idempotent: bool, losses: int, fact: type) -> None:
    undo = c.StartUndo(step="tag", idempotent=idempotent)
    start = c.StartRun(definition="sha256:0", workflow="d", vars={})
    done: list[c.Command] = [c.StartAttempt(step="tag"), c.CompleteStep(step="tag"), c.StartCompensation(reason="x")]
    lost: list[c.Command] = [undo, c.LoseUndo(step="tag")] * losses
    run = after(Run(id=RUN), [start, *done, *lost, undo], ONE)
    (event,) = decide(run, c.LoseUndo(step="tag"), ONE)
    assert type(event) is fact
