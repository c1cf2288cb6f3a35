"""The simulation is worth its name: bugs that are planted in the engine are found within a few seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from msgspec.structs import replace

from handrail.domain.control import forking
from handrail.domain.definition.model import Category, Effect
from handrail.domain.journal.event import AttemptLost, UndoFailed
from handrail.domain.policy.act import Act
from handrail.domain.policy.table import TABLE, PolicyRow, Right
from handrail.domain.run import decide, decide_step, guard
from handrail.domain.run import state as run
from handrail.domain.run.command import LoseAttempt
from handrail.domain.run.status import RunStatus
from handrail.domain.scheduling import retry, undos
from handrail.domain.scheduling.agenda import Agenda
from handrail.domain.scheduling.open_lane import OpenLane
from handrail.engine import dispatch
from handrail.engine.running import conductor, worker
from handrail.engine.running.calls import attempt
from handrail.storage import memory
from simulation.day import simulate

SEEDS = 100

pytestmark = pytest.mark.usefixtures("unmeasured")

Patch = pytest.MonkeyPatch


def undo_in_any_order(patch: Patch) -> str:
    for module in (undos, decide_step, decide):
        patch.setattr(module, "holding_back", lambda run, definition, path: None)
    return "invariant_10_undo_keeps_its_order"


def a_lost_attempt_is_always_repeated(patch: Patch) -> str:
    decided = decide_step.decide_attempt

    def always(state: Any, command: Any, definition: Any) -> Any:
        events = decided(state, command, definition)
        if isinstance(command, LoseAttempt):
            return [AttemptLost(step=command.step, attempt=state.step(command.step).attempts)]
        return events

    patch.setattr(decide, "decide_attempt", always)
    return "what_is_unknown_is_not_repeated"


def a_lost_undo_is_a_failed_one(patch: Patch) -> str:
    def failed(step: str, state: Any) -> UndoFailed:
        category = Category.INTERNAL
        return UndoFailed(step=step, attempt=state.undo_attempts, category=category, message="lost", final=True)

    patch.setattr(decide_step, "_undo_lost", failed)
    return "what_must_be_undone_is_undone"


def only_idempotent_undos_are_repeated(patch: Patch) -> str:
    patch.setattr(
        attempt.Attempt,
        "_is_undo_repeatable",
        lambda self: bool(self.todo.work.idempotent or self.tool.spec.idempotent),
    )
    return "could be called again, and is not"


def a_lost_undo_is_always_repeated(patch: Patch) -> str:
    patch.setattr(attempt.Attempt, "_is_undo_repeatable", lambda self: True)
    return "is to be repeated, and nobody knows"


def what_was_not_tried_is_not_named(patch: Patch) -> str:
    patch.setattr(decide, "not_undone", lambda run, definition: [])
    return "invariant_10_what_is_not_undone_is_named"


def timers_are_forgotten(patch: Patch) -> str:
    patch.setattr(Agenda, "next_due", property(lambda self: None))
    patch.setattr(Agenda, "waits_for_time", property(lambda self: False))
    return "invariant 15"


def steps_start_before_what_they_wait_for(patch: Patch) -> str:
    entered = OpenLane.__init__

    def careless(self: Any, lane: Any, order: Any, chain: Any) -> None:
        entered(self, lane, order, chain)
        self.missing = dict.fromkeys(self.missing, 0)

    patch.setattr(OpenLane, "__init__", careless)
    patch.setattr(Agenda, "_satisfy", lambda self, opened, name: opened.left.discard(name))
    patch.setattr(decide_step, "require_ready", lambda run, path, definition: None)
    return "invariant_8_nothing_starts_before_what_it_waits_for"


def a_cancelled_run_is_completed(patch: Patch) -> str:
    patch.setattr(decide, "require_open", lambda run, path="": None)
    patch.setattr(decide_step, "require_step_move", lambda path, state, target: None)
    return "invariant_5"


def pausing_stops_nothing(patch: Patch) -> str:
    ready = guard.require_ready

    def careless(state: Any, path: str, definition: Any) -> None:
        if state.status is not RunStatus.PAUSED:
            ready(state, path, definition)

    patch.setattr(decide_step, "require_ready", careless)
    return "invariant_11_paused_means_paused"


def the_store_forgets_to_look_at_leases(patch: Patch) -> str:
    patch.setattr(memory.MemoryStore, "_require_held", lambda self, lease, *, is_first: None)
    return "invariant_13_work_is_done_under_the_lease"


def leases_are_taken_from_the_living(patch: Patch) -> str:
    async def is_free(self: Any, lease_holder: Any) -> bool:
        return True

    patch.setattr(worker.Worker, "_is_free", is_free)
    return "invariant 13"


def retries_know_no_bound(patch: Patch) -> str:
    def always(policy: Any, failures: int, category: Any, *, now: int, **_: Any) -> int | None:
        return now + retry.backoff_ms(policy, failures)

    patch.setattr(attempt, "due_of", always)
    return "invariant_9_attempts_stay_within_policy"


def retry_after_is_ignored(patch: Patch) -> str:
    due_of = retry.due_of
    patch.setattr(attempt, "due_of", lambda *given, **more: due_of(*given, **{**more, "retry_after_ms": 0}))
    return "invariant_9_and_14_waits_are_kept"


def tools_are_called_before_the_journal_knows(patch: Patch) -> str:
    patch.setattr(attempt.Attempt, "effect", property(lambda self: Effect.NONE))
    return "before attempt"


def all_may_run_at_once(patch: Patch) -> str:
    conduct = conductor.Conductor.__init__

    def careless(self: Any, means: Any, definition: Any, *given: Any, **more: Any) -> None:
        conduct(self, means, definition, *given, **more)
        self.definition = changed(definition, max_parallel=100)

    patch.setattr(conductor.Conductor, "__init__", careless)
    return "invariant_8_limits_hold"


def a_row_is_left_out(patch: Patch) -> str:
    project = run.project
    patch.setattr(dispatch, "project", lambda state, paths: project(state, list(paths)[1:]))
    return "invariant 6"


def rounds_all_begin_at_once(patch: Patch) -> str:
    go_round = Agenda._go_round

    def careless(self: Agenda, holder: str, *, rounds: int, parallel: int) -> None:
        go_round(self, holder, rounds=rounds, parallel=100)

    patch.setattr(Agenda, "_go_round", careless)
    return "invariant_8_rounds_follow_each_other"


def agents_may_skip_approvals(patch: Patch) -> str:
    patch.setitem(cast("dict[Act, PolicyRow]", TABLE), Act.OVERRIDE, PolicyRow(Right.YES, Right.YES))
    return "skipped the approval"


def dispatch_asks_no_policy(patch: Patch) -> str:
    patch.setattr(dispatch, "require_allowed", lambda verdict: None)
    return "invariant_22"


def a_fork_takes_approvals_along(patch: Patch) -> str:
    patch.setattr(forking, "has_approval", lambda definition, step: False)
    return "invariant_22_a_fork_carries_no_approval"


def an_old_answer_counts(patch: Patch) -> str:
    patch.setattr(decide_step, "_require_asked", lambda *_given, **_more: None)
    return "invariant_24_an_answer_is_for_what_was_asked_last"


def a_pause_of_a_person_does_not_count(patch: Patch) -> str:
    patch.setitem(cast("dict[Act, PolicyRow]", TABLE), Act.RESUME_FOR_PERSON, PolicyRow(Right.YES, Right.YES))
    return "resumed what person:ada had paused"


def changed(struct: Any, **changes: Any) -> Any:
    return replace(struct, **changes)


PLANTED = [
    undo_in_any_order,
    a_lost_attempt_is_always_repeated,
    a_lost_undo_is_a_failed_one,
    only_idempotent_undos_are_repeated,
    a_lost_undo_is_always_repeated,
    what_was_not_tried_is_not_named,
    timers_are_forgotten,
    steps_start_before_what_they_wait_for,
    a_cancelled_run_is_completed,
    pausing_stops_nothing,
    the_store_forgets_to_look_at_leases,
    leases_are_taken_from_the_living,
    retries_know_no_bound,
    retry_after_is_ignored,
    tools_are_called_before_the_journal_knows,
    all_may_run_at_once,
    a_row_is_left_out,
    rounds_all_begin_at_once,
    agents_may_skip_approvals,
    dispatch_asks_no_policy,
    a_fork_takes_approvals_along,
    an_old_answer_counts,
    a_pause_of_a_person_does_not_count,
]


RARE: dict[Callable[[Patch], str], int] = {
    the_store_forgets_to_look_at_leases: 3_000,
    pausing_stops_nothing: 1_000,
    a_pause_of_a_person_does_not_count: 400,
    an_old_answer_counts: 400,
    a_fork_takes_approvals_along: 400,
}
"""Bugs that only few days show: how many to look through for them."""


LONG_SEEDS = 1_000
TRIED = [pytest.param(one, marks=pytest.mark.long) if RARE.get(one, SEEDS) > LONG_SEEDS else one for one in PLANTED]
"""The rarest takes half a minute."""


@pytest.mark.parametrize("plant", TRIED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Callable[[Patch], str], monkeypatch: Patch) -> None:
    wanted = plant(monkeypatch)
    seeds = RARE.get(plant, SEEDS)
    seed, words = first_found(wanted, seeds)
    assert seed is not None, f"{seeds} seeds did not find it; they found: {words}"


def first_found(wanted: str, seeds: int) -> tuple[int | None, list[str]]:
    """The first seed that complains in these words."""
    words: list[str] = []
    for seed in range(seeds):
        broken = simulate(seed).broken
        if any(wanted in complaint for complaint in broken):
            return seed, words
        words += broken[:1]
    return None, words
