"""`handrail run pause|resume|cancel|retry|skip|accept|compensate|fork`, and the answers to approvals.

What is legal is decided in the domain; here words become a command. What lets a run go on executes it here until it
has settled, unless another process does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click
import msgspec

from handrail.assembly import Working, opened, working
from handrail.domain.errors import Conflict, Invalid
from handrail.domain.legal import Action
from handrail.domain.status import RUN_WORKING
from handrail.engine.clock import system_clock
from handrail.engine.lookout import Lookout
from handrail.engine.view import Status
from handrail.interfaces.cli.answer import answer
from handrail.interfaces.cli.execution import end_with, execute
from handrail.interfaces.cli.program import json_option, person, settings_of, told
from handrail.interfaces.cli.run_view import status_data, tell_status

ON_RUN: Final = frozenset({Action.PAUSE, Action.RESUME, Action.CANCEL, Action.COMPENSATE})
AT_ONCE: Final = frozenset({Action.PAUSE, Action.CANCEL})
"""Actions after which there is nothing to execute."""
HELP: Final = {
    Action.PAUSE: "Begin nothing more of RUN; what is under way ends and is recorded.",
    Action.RESUME: "Go on with RUN: a paused one, or one that nobody executes.",
    Action.CANCEL: "End RUN for good; what was done stays, unless you compensate.",
    Action.RETRY: "Try a failed or uncertain STEP of RUN again, or an undo that failed.",
    Action.SKIP: "Go on without a failed or uncertain STEP of RUN.",
    Action.ACCEPT: "Say that an uncertain STEP of RUN did happen, with its output.",
    Action.COMPENSATE: "Undo what RUN has done, newest first.",
    Action.FORK: "Start a new run that shares what RUN did before STEP.",
    Action.APPROVE: "Say yes to what STEP of RUN asks; STEP may be left out when only one asks.",
    Action.REJECT: "Say no to what STEP of RUN asks; STEP may be left out when only one asks.",
}


def control_command(action: Action) -> click.Command:
    """The command for one action."""

    @told
    async def act(ctx: click.Context, run_id: str, reason: str, as_json: bool, **more: Any) -> None:
        asked = _Asked(run_id, action, reason, more.get("step") or "", _value(more.get("output")))
        await _act(
            ctx, asked, detach=bool(more.get("detach")), is_watched=bool(more.get("is_watched")), as_json=as_json
        )

    return click.command(action.value, help=HELP[action])(_with_options(action, click.pass_context(act)))


def _with_options(action: Action, call: Callable[..., Any]) -> Callable[..., Any]:
    call = json_option(call)
    if action not in AT_ONCE:
        call = click.option("--detach", is_flag=True, help="Do not execute it here; a worker does.")(call)
        call = click.option("--watch", "is_watched", is_flag=True, help="Show what happens.")(call)
    if action is Action.ACCEPT:
        call = click.option("--output", metavar="JSON", help="What the step would have handed out.")(call)
    if action is Action.APPROVE:
        call = click.option("--answer", "output", metavar="JSON", help="What was asked for, if a yes is not enough.")(
            call
        )
    needs_reason = action is not Action.RESUME
    call = click.option("--reason", required=needs_reason, help="Why; it becomes an event.")(call)
    if action not in ON_RUN:
        call = click.argument("step", metavar="STEP", required=action is Action.FORK)(call)
    return click.argument("run_id", metavar="RUN")(call)


class _Asked(msgspec.Struct, frozen=True):
    """What somebody asks of a run."""

    run: str
    action: Action
    reason: str | None
    step: str
    output: Any


async def _act(ctx: click.Context, asked: _Asked, *, detach: bool, is_watched: bool, as_json: bool) -> None:
    settings = settings_of(ctx)
    if detach or asked.action in AT_ONCE:
        async with opened(settings) as handrail:
            run = await handrail.control.act(
                asked.run,
                asked.action,
                actor=person(),
                reason=asked.reason or "",
                step=asked.step,
                output=asked.output,
            )
            status = await Lookout(handrail.look.store, system_clock).status(run.id)
        answer(status_data(status), as_json=as_json, words=lambda: tell_status(status))
        return
    async with working(settings, picks_up=False) as at_work:
        before = await at_work.handrail.dispatch.current(asked.run)
        run_id = await _granted(at_work, asked)
        if run_id != asked.run:
            click.echo(run_id, err=as_json)
        after = before.n if run_id == asked.run else 0
        end: Status = await execute(at_work, run_id, is_watched=is_watched, as_json=as_json, after=after)
    end_with(end, as_json=as_json)


async def _granted(at_work: Working, asked: _Asked) -> str:
    """The run that goes on by what was asked."""
    if asked.action is Action.RESUME and await _is_left_alone(at_work, asked.run):
        return asked.run
    reason = asked.reason or ("resumed by hand" if asked.action is Action.RESUME else "")
    run = await at_work.control.act(
        asked.run, asked.action, actor=person(), reason=reason, step=asked.step, output=asked.output
    )
    return run.id


async def _is_left_alone(at_work: Working, run_id: str) -> bool:
    """Whether a run is not paused at all, but nobody executes it: then it need only be taken."""
    run = await at_work.handrail.dispatch.current(run_id)
    if run.status not in RUN_WORKING:
        return False
    if await at_work.worker.take(run_id):
        return True
    raise Conflict(f"run {run_id} is not paused: another process executes it", hint=f"`handrail run watch {run_id}`")


def _value(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Invalid(f"it is not JSON: {error}", hint="""write it as JSON: '{"id": 7}'""") from error


CONTROLS: Final = [control_command(action) for action in Action if action not in {Action.APPROVE, Action.REJECT}]
"""The commands of `handrail run` that change a run."""
