"""The preview of a control: whether it is legal, who may, what it would call and in which order, and what stays behind.

Pure, and changes nothing: it decides on the very commands that the control would be granted (control_commands.py), and
then looks at the run as it would be. The engine call is in engine/reading/control_previews.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.control.control_commands import closing_command, command_of, only_step
from handrail.domain.control.forking import fork_request
from handrail.domain.definition.model import Definition, Kind, title_of
from handrail.domain.errors import Conflict
from handrail.domain.journal.event import Event, Mode, step_of
from handrail.domain.plural import plural
from handrail.domain.policy.act import Act, act_of
from handrail.domain.policy.asking import may_command
from handrail.domain.policy.table import OwnerPolicy
from handrail.domain.policy.verdict import Refused
from handrail.domain.preview.calls_ahead import Now, calls_after_approval, undo_call_of
from handrail.domain.preview.starts_ahead import granted, start_forecast
from handrail.domain.preview.undo_ahead import effect_left, effects_left, undo_forecast
from handrail.domain.preview.values import (
    CALLS_MAX,
    CallAhead,
    ControlPreview,
    EffectLeft,
    ForkAhead,
    Hand,
    Lasting,
    StepChange,
)
from handrail.domain.preview.words import means_of, notes_of
from handrail.domain.run.approval import asked_in
from handrail.domain.run.command import Command, GiveApproval, RejectApproval, ResumeRun, SkipStep
from handrail.domain.run.legal_controls import ANSWERS, Action, legal_words
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_BROKEN_OFF, RUN_IN_PROGRESS, STEP_EXECUTING, RunStatus, StepStatus
from handrail.domain.run.step_path import locate
from handrail.domain.scheduling.compensation import EFFECT_UNKNOWN, lasting_effect, undo_order


class ControlAsked(Struct, frozen=True, kw_only=True):
    """A control that somebody thinks of."""

    action: Action
    actor: str
    step: str = ""
    channel: str = ""
    behalf: str = ""
    digest: str = ""
    """Of what an answer is to; empty: to whatever is asked now."""


def preview_of(run: Run, definition: Definition, asked: ControlAsked, policy: OwnerPolicy, now: Now) -> ControlPreview:
    """What a control would do; NotFound or Invalid if it does not say on which step."""
    if asked.action is Action.FORK:
        return _fork(run, definition, asked, policy, now)
    try:
        step = asked.step or only_step(run, asked.action)
    except Conflict as error:
        return _not_legal(run, asked, "", error)
    if step:
        locate(definition, step)
    command = _command(run, asked, step, now)
    verdict = _verdict(run, definition, asked, command, policy)
    try:
        after, events = granted(run, definition, command, at=now.at, actor=asked.actor)
        if (closing := closing_command(after, definition)) is not None:
            after, more = granted(after, definition, closing, at=now.at, actor=asked.actor)
            events = [*events, *more]
    except Conflict as error:
        return _not_legal(run, asked, step, error, **verdict)
    return _legal(run, definition, asked, step, _Granted(after, events, now, verdict))


class _Granted(Struct, frozen=True):
    after: Run
    events: list[Event]
    now: Now
    verdict: dict[str, Any]


def _command(run: Run, asked: ControlAsked, step: str, now: Now) -> Command:
    via: Any = {"channel": asked.channel, "behalf": asked.behalf, "is_proven": True}  # it is asked for later
    digest = asked.digest or run.step(step).digest
    match asked.action:
        case Action.APPROVE:
            return GiveApproval(step=step, digest=digest, reason="", at=now.at, who=asked.actor, **via)
        case Action.REJECT:
            return RejectApproval(step=step, digest=digest, reason="", at=now.at, **via)
        case Action.SKIP:
            return SkipStep(step=step, reason="", channel=asked.channel, is_proven=True)
        case action:
            return command_of(run, action, step, actor=asked.actor, reason="")


def _verdict(
    run: Run, definition: Definition, asked: ControlAsked, command: Command, policy: OwnerPolicy
) -> dict[str, Any]:
    act = act_of(run, definition, command)
    verdict = may_command(asked.actor, run, definition, command, policy)
    needed = policy.answers.passphrase and act in {Act.ANSWER, Act.OVERRIDE}
    if isinstance(verdict, Refused):
        return {"allowed": False, "why": verdict.why, "who_may": verdict.who_may, "passphrase": needed}
    return {"allowed": True, "passphrase": needed}


def _not_legal(run: Run, asked: ControlAsked, step: str, error: Conflict, **verdict: Any) -> ControlPreview:
    is_stale = asked.action in ANSWERS and bool(run.step(step).digest)  # the error says how to answer what waits
    return ControlPreview(
        run=run.id,
        action=asked.action,
        step=step,
        at=run.n,
        legal=False,
        was=run.status,
        message=str(error),
        hint=error.hint if is_stale else legal_words(run),
        **{"allowed": True, **verdict},
    )


def _legal(run: Run, definition: Definition, asked: ControlAsked, step: str, outcome: _Granted) -> ControlPreview:
    after = outcome.after
    calls, end = _ahead(run, definition, asked, step, outcome)
    stays = _left(run, end, definition, asked, step)
    seen = ControlPreview(
        run=run.id,
        action=asked.action,
        step=step,
        at=run.n,
        legal=True,
        was=run.status,
        becomes=after.status,
        ends=end.status if end.status not in RUN_IN_PROGRESS else None,
        changes=tuple(_changes(run, after, definition, outcome.events)),
        calls=tuple(calls[:CALLS_MAX]),
        unshown=max(0, len(calls) - CALLS_MAX),
        stays=tuple(stays),
        in_progress=_in_progress(after, definition),
        digest=run.step(step).digest if asked.action in ANSWERS else "",
        missing=_missing(run, after, asked, step),
        schema=asked_in(run.step(step)).get("schema") if asked.action is Action.APPROVE else None,
        **outcome.verdict,
    )
    seen = replace(seen, means=means_of(seen, definition))
    return replace(seen, notes=tuple(notes_of(seen, run, end)))


def _missing(run: Run, after: Run, asked: ControlAsked, step: str) -> int:
    if asked.action is not Action.APPROVE or after.step(step).status is not StepStatus.WAITING:
        return 0
    return int(asked_in(run.step(step)).get("approvals", 1)) - len(after.step(step).approvers)


def _ahead(
    run: Run, definition: Definition, asked: ControlAsked, step: str, outcome: _Granted
) -> tuple[list[CallAhead], Run]:
    """What would be called, in order, and the run as it would be then."""
    after, now = outcome.after, outcome.now
    if asked.action is Action.APPROVE and run.step(step).about is None:
        is_given = after.step(step).status is not StepStatus.WAITING
        return _numbered(calls_after_approval(run, definition, step, now)) if is_given else [], after
    if after.status is RunStatus.RUNNING:
        starts = start_forecast(after, definition, now)
        if starts.after.status is not RunStatus.COMPENSATING:
            return _numbered(starts.calls), starts.after
        after = starts.after
    if after.status is not RunStatus.COMPENSATING:
        return [], after
    if after.mode is Mode.RECORD:
        return _numbered(_own_undos(after, definition, now)), after
    forecast = undo_forecast(after, definition, now)
    return list(forecast.calls), forecast.after


def _own_undos(run: Run, definition: Definition, now: Now) -> list[CallAhead]:
    """What the agent undoes itself, in a run that is only recorded."""
    calls = (undo_call_of(run, definition, path, now) for path in undo_order(run, definition))
    return [replace(one, by=Hand.AGENT) for one in calls]


def _numbered(calls: Iterable[CallAhead]) -> list[CallAhead]:
    return [replace(one, order=order) for order, one in enumerate(calls, 1)]


def _changes(run: Run, after: Run, definition: Definition, events: Sequence[Event]) -> list[StepChange]:
    moved = dict.fromkeys(path for path in map(step_of, events) if path is not None)
    return [
        StepChange(
            step=path,
            title=title_of(locate(definition, path).step),
            was=run.step(path).status,
            becomes=after.step(path).status,
        )
        for path in moved
        if run.step(path).status is not after.step(path).status
    ]


def _left(run: Run, after: Run, definition: Definition, asked: ControlAsked, step: str) -> list[EffectLeft]:
    """What stays: of a run that ends or is undone all of it; of a step that is skipped, its own."""
    if after.status in RUN_BROKEN_OFF:
        return effects_left(after, definition)
    state = run.step(step)
    # A failure with a clear refusal changed nothing; after any other it is open whether something was.
    is_unknown = state.status is StepStatus.UNCERTAIN or state.category in EFFECT_UNKNOWN
    is_left_out = asked.action is Action.SKIP and state.attempts > 0 and is_unknown
    if is_left_out and lasting_effect(locate(definition, step), state):
        return [effect_left(run, definition, step, Lasting.UNKNOWN)]
    return []


def _in_progress(run: Run, definition: Definition) -> tuple[str, ...]:
    working = (path for path, state in run.steps.items() if state.status in STEP_EXECUTING)
    return tuple(path for path in working if locate(definition, path).step.kind is Kind.TOOL)


# --- a fork -------------------------------------------------------------------------------------------------


def _fork(run: Run, definition: Definition, asked: ControlAsked, policy: OwnerPolicy, now: Now) -> ControlPreview:
    request = fork_request(run, definition, asked.step)
    asking: list[Command] = [replace(request, definition=run.definition, workflow=run.workflow, inputs=run.inputs)]
    new = Run(id=run.id)
    verdict = _verdict(new, definition, asked, asking[0], policy)
    if verdict["allowed"] and run.status is RunStatus.PAUSED:  # a fork goes on where the run stands still
        verdict = _verdict(run, definition, asked, ResumeRun(reason=""), policy)
    after, _ = granted(new, definition, asking[0], at=now.at, actor=asked.actor)
    carried = tuple(one.step for one in request.carried)
    effects = request.fork.effects if request.fork is not None else ()
    seen = ControlPreview(
        run=run.id,
        action=asked.action,
        step=asked.step,
        at=run.n,
        legal=True,
        was=run.status,
        becomes=after.status,
        calls=tuple(_numbered(start_forecast(after, definition, now).calls)),
        stays=tuple(effect_left(run, definition, path, Lasting.NOT_UNDONE) for path in effects),
        fork=ForkAhead(carried=carried, again=tuple(s.id for s in definition.steps if s.id not in carried)),
        **verdict,
    )
    again = plural(len(seen.fork.again) if seen.fork else 0, "step")
    return replace(seen, means=f"start a new run that takes over {plural(len(carried), 'step')} and does {again}")
