"""The table of legal moves: complete, with final ends, and obeyed by every decision."""

from __future__ import annotations

from handrail.domain.run.status import (
    MOVES,
    RUN_ENDED,
    RUN_FINAL,
    RUN_MEANINGS,
    RUN_MOVES,
    RUN_SHOWN_OPEN,
    RUN_UNENDED,
    STEP_MEANINGS,
    STEP_RETRIABLE,
    STEP_UNDOABLE,
    RunStatus,
    StepStatus,
)


def test_every_state_of_a_step_and_of_a_run_has_its_row() -> None:
    assert set(MOVES) == set(StepStatus)
    assert set(RUN_MOVES) == set(RunStatus)


def test_ends_are_final() -> None:
    assert {status for status, targets in MOVES.items() if not targets} == {
        StepStatus.SKIPPED,
        StepStatus.CANCELLED,
        StepStatus.COMPENSATED,
    }
    assert not RUN_MOVES[RunStatus.COMPLETED]
    assert not RUN_MOVES[RunStatus.COMPENSATED]


def test_an_ended_run_moves_only_to_undo_what_it_did() -> None:
    assert RUN_MOVES[RunStatus.FAILED] == {RunStatus.COMPENSATING}
    assert RUN_MOVES[RunStatus.CANCELLED] == {RunStatus.COMPENSATING}


def test_waiting_is_computed_and_never_stored_for_a_run() -> None:
    assert not RUN_MOVES[RunStatus.WAITING]
    assert not [status for status, targets in RUN_MOVES.items() if RunStatus.WAITING in targets]


def test_every_state_can_be_reached() -> None:
    reached = {StepStatus.PENDING} | {target for targets in MOVES.values() for target in targets}
    assert reached == set(StepStatus)


def test_every_state_has_a_meaning_for_readers() -> None:
    assert set(RUN_MEANINGS) == set(RunStatus)
    assert set(STEP_MEANINGS) == set(StepStatus)


def test_a_run_has_ended_or_not_and_nothing_between() -> None:
    assert set(RunStatus) - {RunStatus.NEW, RunStatus.WAITING} == RUN_ENDED | RUN_UNENDED
    assert not RUN_ENDED & RUN_UNENDED
    assert set(RunStatus) - {RunStatus.NEW} == RUN_SHOWN_OPEN | RUN_ENDED


def test_the_named_sets_agree_with_the_table() -> None:
    assert {status for status, targets in RUN_MOVES.items() if not targets} == RUN_FINAL | {RunStatus.WAITING}
    assert all(StepStatus.READY in MOVES[status] for status in STEP_RETRIABLE)
    assert all(StepStatus.COMPENSATED in MOVES[status] for status in STEP_UNDOABLE)
