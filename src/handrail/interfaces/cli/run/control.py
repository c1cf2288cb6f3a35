"""`handrail run pause|resume|cancel|retry|skip|accept|compensate|fork`, and the answers to approvals.

domain/run/legal_controls.py decides which actions are legal. An action that lets a run continue also executes the run
in this process until nothing is left to execute, unless another process does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click
import msgspec

from handrail.assembly.opening import Assembly, open_assembly, open_reader, open_writer
from handrail.assembly.tools import toolbox_of
from handrail.domain.errors import Conflict
from handrail.domain.policy.answering import TERMINAL
from handrail.domain.preview.control_preview import ControlAsked
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.status import RUN_WORKING
from handrail.engine.reading.run_view import Status, WaitingKind
from handrail.engine.running.answers import ANSWERS, NO_MORE, AnswerGiven
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.run.answering import COMMAND, TypedAnswer, asked_person, overriding
from handrail.interfaces.cli.run.execution import end_with, execute
from handrail.interfaces.cli.run.pick_up import warn_if_not_picked_up
from handrail.interfaces.cli.run.preview_view import print_preview
from handrail.interfaces.cli.run.view import print_status, status_data
from handrail.interfaces.cli.words.answer import answer
from handrail.interfaces.cli.words.asking import can_ask
from handrail.interfaces.cli.words.completion import complete_run, every_step, in_trouble, steps_completer, waiting_for
from handrail.interfaces.cli.words.json_value import json_value
from handrail.interfaces.cli.words.own_command import own_program
from handrail.interfaces.cli.words.reason import reason_option
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.control_twins import preview_data

ON_RUN: Final = frozenset({Action.PAUSE, Action.RESUME, Action.CANCEL, Action.COMPENSATE})
AT_ONCE: Final = frozenset({Action.PAUSE, Action.CANCEL})
"""Actions that leave nothing to execute."""
HELP: Final = {
    Action.PAUSE: "Start no more steps of RUN; steps that are running finish and are recorded.",
    Action.RESUME: "Continue RUN: a paused one, or one that no process executes.",
    Action.CANCEL: "End RUN permanently; what was done stays, unless you compensate.",
    Action.RETRY: "Try a failed or uncertain STEP of RUN again, or an undo that failed.",
    Action.SKIP: "Continue without a failed or uncertain STEP of RUN.",
    Action.ACCEPT: "Confirm that an uncertain STEP of RUN did happen, with its output.",
    Action.COMPENSATE: "Undo what RUN has done, newest first.",
    Action.FORK: "Start a new run that shares what RUN did before STEP.",
    Action.APPROVE: "Show what STEP of RUN asks and what follows, then approve it; STEP may be left out when only one"
    " waits. Without a terminal, --digest names what is approved.",
    Action.REJECT: "Show what STEP of RUN asks, then reject it; STEP may be left out when only one waits.",
}
STEPS_OF: Final = {
    Action.APPROVE: waiting_for(WaitingKind.APPROVAL),
    Action.REJECT: waiting_for(WaitingKind.APPROVAL),
    Action.FORK: every_step,
}
"""The steps that a shell offers for an action; for all others, those that failed or are uncertain."""


def control_command(action: Action) -> click.Command:
    """The command for one action."""

    @reports_errors
    async def act(ctx: click.Context, run_id: str, reason: str, as_json: bool, **more: Any) -> None:
        text, option = more.get("output"), "--answer" if action is Action.APPROVE else "--output"
        output = json_value(text, option) if text is not None else None
        step, given = more.get("step") or "", NO_MORE
        if more.get("dry_run"):
            asked = ControlAsked(action=action, actor=person(), step=step, digest=more.get("digest") or "")
            await _preview(ctx, run_id, asked, as_json=as_json)
            return
        if action in ANSWERS:
            typed = TypedAnswer(
                action=action,
                run=run_id,
                step=step,
                reason=reason or "",
                digest=more.get("digest") or "",
                content=output,
                may_execute=not more.get("detach"),
            )
            reason, given = await asked_person(settings_of(ctx), typed)
        elif action is Action.SKIP:
            given = overriding(settings_of(ctx))
        request = _ControlRequest(run_id, action, reason, step, output, given)
        await _act(
            ctx, request, detach=bool(more.get("detach")), is_watched=bool(more.get("is_watched")), as_json=as_json
        )

    return click.command(action.value, help=HELP[action])(_with_options(action, click.pass_context(act)))


async def _preview(ctx: click.Context, run_id: str, asked: ControlAsked, *, as_json: bool) -> None:
    settings = settings_of(ctx)
    toolbox = toolbox_of(settings)
    asked = msgspec.structs.replace(asked, channel=TERMINAL if can_ask() else COMMAND)
    try:
        async with open_reader(settings) as look:
            seen = await look.previews(toolbox).of(run_id, asked)
    finally:
        await toolbox.close()
    answer(preview_data(seen, program=own_program()), as_json=as_json, as_text=lambda: print_preview(seen))


def _with_options(action: Action, call: Callable[..., Any]) -> Callable[..., Any]:
    call = json_option(call)
    text = "Only show what would happen; change nothing."
    call = click.option("--dry-run", is_flag=True, is_eager=True, help=text)(call)  # eager: then it needs no reason
    if action not in AT_ONCE:
        call = click.option("--detach", is_flag=True, help="Do not execute it here; a worker does.")(call)
        call = click.option("--watch", "is_watched", is_flag=True, help="Show what happens.")(call)
    if action is Action.ACCEPT:
        text = "The output that the step would have had; @FILE or - (stdin) to read it from there."
        call = click.option("--output", metavar="JSON", help=text)(call)
    if action is Action.APPROVE:
        text = "The answer, if more than a yes is asked for; @FILE or - (stdin) to read it from there."
        call = click.option("--answer", "output", metavar="JSON", help=text)(call)
        text = "The digest of what is approved; needed without a terminal."
        call = click.option("--digest", metavar="DIGEST", help=text)(call)
    if action is Action.RESUME:  # continuing needs no reason
        call = click.option("--reason", metavar="TEXT", help="Why; kept in the journal.")(call)
    elif action in ANSWERS:  # asked for after what is to be answered was shown
        text = "Why; kept in the journal. Asked for at a terminal."
        call = click.option("--reason", metavar="TEXT", help=text)(call)
    else:
        call = reason_option(call)
    if action not in ON_RUN:
        steps = steps_completer(STEPS_OF.get(action, in_trouble))
        needs_step = action is Action.FORK
        name = "STEP" if needs_step else "[STEP]"
        call = click.argument("step", metavar=name, required=needs_step, shell_complete=steps)(call)
    return click.argument("run_id", metavar="RUN", shell_complete=complete_run)(call)


class _ControlRequest(msgspec.Struct, frozen=True):
    """One action on a run, as typed."""

    run: str
    action: Action
    reason: str | None
    step: str
    output: Any
    given: AnswerGiven


async def _act(ctx: click.Context, request: _ControlRequest, *, detach: bool, is_watched: bool, as_json: bool) -> None:
    settings = settings_of(ctx)
    if detach or request.action in AT_ONCE:
        async with open_writer(settings) as handrail:
            run = await handrail.control.act(
                request.run,
                request.action,
                actor=person(),
                reason=request.reason or "",
                step=request.step,
                output=request.output,
                given=request.given,
            )
            status = await handrail.reader.run_reader().status(run.id)
            await warn_if_not_picked_up(handrail.reader, status)
        answer(status_data(status), as_json=as_json, as_text=lambda: print_status(status))
        return
    async with open_assembly(settings, picks_up=False) as parts:
        before = await parts.writer.dispatch.own(request.run)
        run_id = await _apply(parts, request)
        if run_id != request.run:
            say(run_id, err=as_json)
        after = before.n if run_id == request.run else 0
        end: Status = await execute(parts, run_id, is_watched=is_watched, as_json=as_json, after=after)
    end_with(end, as_json=as_json)


async def _apply(parts: Assembly, request: _ControlRequest) -> str:
    """Apply the action; returns the id of the run that continues, which is a new one after a fork."""
    if request.action is Action.RESUME and await _needs_only_a_worker(parts, request.run):
        return request.run
    reason = request.reason or ("resumed by hand" if request.action is Action.RESUME else "")
    run = await parts.control.act(
        request.run,
        request.action,
        actor=person(),
        reason=reason,
        step=request.step,
        output=request.output,
        given=request.given,
    )
    return run.id


async def _needs_only_a_worker(parts: Assembly, run_id: str) -> bool:
    """Whether a run is not paused, but no process executed it; this worker has it now."""
    run = await parts.writer.dispatch.current(run_id)
    if run.status not in RUN_WORKING:
        return False
    if await parts.worker.take(run_id):
        return True
    raise Conflict(f"run {run_id} is not paused: another process executes it", hint=f"`handrail run watch {run_id}`")


CONTROLS: Final = [control_command(action) for action in Action if action not in {Action.APPROVE, Action.REJECT}]
"""The commands of `handrail run` that change a run."""
