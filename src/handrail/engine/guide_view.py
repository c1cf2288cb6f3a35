"""What an agent is answered while it is guided: one shape for every interface.

Pure functions over what the guide has seen. The run as others see it is view.py's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.check import Finding
from handrail.domain.errors import Invalid
from handrail.domain.guidance import StepTold, brief, called, told
from handrail.domain.path import UNDO
from handrail.domain.status import SATISFIED, RunStatus, StepStatus
from handrail.engine.guide import Seen, Verdict
from handrail.engine.step_view import Shown
from handrail.engine.view import Failure, Option, Progress, Status, WaitingFor, Whom, status_of

RECAPPED_MAX: Final = 50
"""How many steps a recap names; the latest count."""
READY_MAX: Final = 50


class Recap(Shown, frozen=True):
    """What a run is about and what was done, for somebody who begins anew with it."""

    goal: str = ""
    done: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    vars: Mapping[str, Any] = {}
    inputs: Mapping[str, Any] = {}


class Guided(Shown, frozen=True):
    """Where a run stands for the agent who is guided through it."""

    run: str
    status: RunStatus
    progress: Progress
    workflow: str = ""
    accepted: bool | None = None
    repeated: bool = False
    tries: int = 0
    findings: tuple[Finding, ...] = ()
    step: StepTold | None = None
    preconditions: tuple[str, ...] = ()
    clarify: tuple[str, ...] = ()
    guidance: tuple[str, ...] = ()
    ready: tuple[str, ...] = ()
    waiting_for: tuple[WaitingFor, ...] = ()
    failure: Failure | None = None
    options: tuple[Option, ...] = ()
    reason: str = ""
    not_compensated: tuple[str, ...] = ()
    outputs: Mapping[str, Any] = {}
    recap: Recap | None = None
    receipt: str = ""


def guided(
    seen: Seen,
    *,
    now: int,
    verdict: Verdict | None = None,
    recap: Recap | None = None,
    is_first: bool = False,
    handed_in: str = "",
) -> Guided:
    """What an agent is answered: the whole next step, or only its name if it has read it and was not accepted."""
    run, definition = seen.run, seen.definition
    status = status_of(run, definition, now=now, outlook=seen.outlook)
    is_refused = verdict is not None and not verdict.accepted
    path = handed_in.removesuffix(UNDO) if is_refused else seen.step
    shows_rules = is_first or recap is not None
    return Guided(
        run=run.id,
        status=status.status,
        progress=status.progress,
        workflow="" if verdict else run.workflow,
        accepted=verdict.accepted if verdict else None,
        repeated=verdict.repeated if verdict else False,
        tries=run.step(path).tries if is_refused else 0,
        findings=verdict.findings if verdict else (),
        step=_step(seen, path, is_refused=is_refused),
        preconditions=definition.preconditions if is_first else (),
        clarify=definition.clarify if is_first else (),
        guidance=definition.guidance if shows_rules else (),
        ready=tuple(called(run, one) for one in seen.outlook.for_agent[:READY_MAX]),
        waiting_for=_waiting(status, handed_in if verdict and verdict.unconfirmed else ""),
        failure=status.failure,
        options=status.options,
        reason=status.reason,
        not_compensated=status.not_compensated,
        outputs=status.outputs,
        recap=recap,
        receipt=run.receipt,
    )


def recap_of(seen: Seen, decisions: Sequence[str]) -> Recap:
    """A run in few words."""
    run = seen.run
    done = [path for path, state in run.steps.items() if state.status in SATISFIED]
    told_done = [path if run.step(path).status is StepStatus.COMPLETED else f"{path} (skipped)" for path in done]
    return Recap(
        goal=run.goal,
        done=tuple(told_done[-RECAPPED_MAX:]),
        decisions=tuple(decisions),
        vars=run.vars,
        inputs=run.inputs,
    )


def _step(seen: Seen, path: str, *, is_refused: bool) -> StepTold | None:
    if not path:
        return None
    known = brief(seen.run, seen.definition, path)
    if is_refused:
        return known
    try:
        return told(seen.run, seen.definition, path)
    except Invalid as error:  # what was handed in is accepted all the same, and must be answered
        return replace(known, prompt=f"({error}; {error.hint})")


def _waiting(status: Status, unconfirmed: str) -> tuple[WaitingFor, ...]:
    if not unconfirmed:
        return status.waiting_for
    others = tuple(one for one in status.waiting_for if one.step != unconfirmed)
    return (WaitingFor(kind=Whom.CONFIRMATION, step=unconfirmed), *others)
