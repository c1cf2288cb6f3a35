"""Guards: check the state of a run or step before something happens; Conflict says what is legal instead.

Pure. The table of legal moves is in status.py."""

from __future__ import annotations

from handrail.domain.definition.model import Call, Definition, Each, Repeat
from handrail.domain.errors import Conflict
from handrail.domain.run.approval_reach import held_by
from handrail.domain.run.revisiting import is_revisited, steps_before
from handrail.domain.run.state import Run
from handrail.domain.run.status import MOVES, RUN_MOVES, RUN_OPEN, STEP_SATISFIED, RunStatus, StepStatus
from handrail.domain.run.step_path import Located, is_in_undo, locate
from handrail.domain.run.step_state import StepState


def require_run_move(run: Run, target: RunStatus) -> None:
    """Refuse a move of the run that the table does not allow."""
    legal = RUN_MOVES[run.status]
    if target not in legal:
        raise Conflict(f"run {run.id} is {run.status.value}: it can't become {target.value}", hint=legal_text(legal))


def require_step_move(path: str, state: StepState, target: StepStatus) -> None:
    """Refuse a move of a step that the table does not allow."""
    legal = MOVES[state.status]
    if target not in legal:
        raise Conflict(f"step {path!r} is {state.status.value}: it can't become {target.value}", hint=legal_text(legal))


def require_open(run: Run, path: str = "") -> None:
    """Refuse work on a run that has ended or is being undone, except on the steps of an undo."""
    if run.status is RunStatus.COMPENSATING and is_in_undo(path):
        return
    if run.status not in RUN_OPEN:
        legal = RUN_MOVES[run.status]
        raise Conflict(f"run {run.id} is {run.status.value}: no step can be worked on", hint=legal_text(legal))


def require_ready(run: Run, path: str, definition: Definition) -> None:
    """Refuse to start a step before everything it waits for is completed or skipped, or while the run is paused."""
    if run.status is RunStatus.PAUSED:
        raise Conflict(f"run {run.id} is paused: nothing new starts", hint="resume it first")
    if run.step(path).withdrawn:
        return  # an approval that was asked before, and is asked again
    if run.approvals and (approval := held_by(run, definition, path)):
        raise Conflict(
            f"step {path!r} is not ready: the approval {approval!r} before it was withdrawn",
            hint=f"a person must answer {approval!r} again first",
        )
    found = locate(definition, path)
    if missing := _missing(run, found):
        raise Conflict(f"step {path!r} is not ready: it waits for {missing}", hint=f"finish {missing} first")
    if found.parent and not _is_started(run, found):
        raise Conflict(f"step {path!r} is not ready: {found.parent!r} has not started", hint=f"start {found.parent!r}")


def _missing(run: Run, found: Located) -> str:
    if is_revisited(found.lane):
        before = steps_before(run, found.lane, found.step.id)
        return ", ".join(repr(found.prefix + name) for name in before)
    waits_for = [found.prefix + name for name in found.step.after]
    return ", ".join(repr(name) for name in waits_for if run.step(name).status not in STEP_SATISFIED)


def _is_started(run: Run, found: Located) -> bool:
    """Whether the step that contains this one is running, in this round."""
    container = run.step(found.parent)
    if found.prefix.endswith("!undo."):
        return container.status is StepStatus.COMPENSATING
    if container.status is not StepStatus.RUNNING:
        return False
    if not found.prefix.endswith("]."):
        return True
    number = found.lane.loops[-1].round
    return number <= container.round if container.rounds is None else number < container.rounds


def assignee(state: StepState, *, at: int) -> str:
    """The agent that a step is assigned to by name, as long as that lasts; empty if it is free."""
    is_taken = state.status is StepStatus.WAITING and bool(state.agent) and (state.due is None or at < state.due)
    return state.agent if is_taken else ""


def require_quiet(run: Run, definition: Definition) -> None:
    """Refuse to end while an attempt is running; steps that only contain others do not count."""
    busy = [path for path, state in run.steps.items() if state.status is StepStatus.RUNNING]
    busy = [path for path in busy if not isinstance(locate(definition, path).step.work, Call | Each | Repeat)]
    if busy:
        raise Conflict(f"run {run.id} still works on {', '.join(busy)}", hint="wait until these attempts have ended")


def legal_text(legal: frozenset[RunStatus] | frozenset[StepStatus]) -> str:
    """What is legal from a state, as a hint."""
    words = sorted(status.value for status in legal)
    return f"from here it can become: {', '.join(words)}" if words else "this state is final"
