"""`handrail run submit`: a person does a prompt step from the terminal, as an agent would through MCP.

Turns options into one call of the guide and prints its answer. The engine decides what is accepted."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import click
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from handrail.assembly.opening import Assembly, open_assembly
from handrail.domain.errors import Conflict, Invalid
from handrail.domain.journal.event import Outcome
from handrail.domain.run.step_path import UNDO
from handrail.domain.run.submission import Submission, Verdict
from handrail.engine.guiding.guide_view import Guided, ReplyContext, guided
from handrail.engine.reading.run_view import Status, WaitingKind
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.run.execution import execute
from handrail.interfaces.cli.run.guided_view import print_ready_steps, print_step, print_verdict
from handrail.interfaces.cli.run.view import EXIT_OF_STATUS, print_status
from handrail.interfaces.cli.words.answer import Exit, answer
from handrail.interfaces.cli.words.asking import can_ask
from handrail.interfaces.cli.words.completion import complete_run, steps_completer, waiting_for
from handrail.interfaces.cli.words.json_value import json_object, json_value
from handrail.interfaces.cli.words.terminal_edge import ask_yes

OUTCOMES: Final = [outcome.value for outcome in (Outcome.DONE, Outcome.FAILED, Outcome.SKIPPED)]


class _SubmitOptions(Struct, frozen=True, kw_only=True):
    """The arguments and options of one call."""

    run: str
    step: str
    output: Any | UnsetType
    outcome: str | None
    note: str
    vars: Mapping[str, Any]
    confirmed: bool

    @property
    def is_empty(self) -> bool:
        """Whether nothing is submitted: then the step is only shown."""
        return self.output is UNSET and self.outcome is None


@click.command()
@click.argument("run_id", metavar="RUN", shell_complete=complete_run)
@click.argument("step", required=False, default="", shell_complete=steps_completer(waiting_for(WaitingKind.AGENT)))
@click.option("--output", metavar="JSON|@FILE|-", help="The step's output; @FILE or - (stdin) to read it from there.")
@click.option("--outcome", type=click.Choice(OUTCOMES), help="How it ended; default: done.")
@click.option("--note", default="", metavar="TEXT", help="What to keep about it in the journal.")
@click.option("--vars", "typed_vars", metavar="JSON|@FILE|-", help="Variables of the run to set, by name.")
@click.option("--confirmed", is_flag=True, help="You agree to the output, where a step asks for that.")
@click.option("--watch", "is_watched", is_flag=True, help="Show what happens afterwards.")
@json_option
@click.pass_context
@reports_errors
async def submit(ctx: click.Context, /, run_id: str, step: str, is_watched: bool, as_json: bool, **typed: Any) -> None:
    """Do a prompt STEP of RUN yourself: submit its output, and get the next step.

    STEP may be left out when only one is ready. Without --output and --outcome, the step is shown and nothing is
    submitted. Exit codes: 0 the run is completed, 4 it waits for the next step or a person, 5 the output was not
    accepted."""
    given = _SubmitOptions(
        run=run_id,
        step=step,
        output=json_value(typed["output"], "--output") if typed["output"] is not None else UNSET,
        outcome=typed["outcome"],
        note=typed["note"],
        vars=json_object(typed["typed_vars"], "--vars") if typed["typed_vars"] is not None else {},
        confirmed=typed["confirmed"],
    )
    async with open_assembly(settings_of(ctx), picks_up=False) as parts:
        if given.is_empty:
            await _show(parts, given, as_json=as_json)
        await _submit(parts, given, is_watched=is_watched, as_json=as_json)


async def _show(parts: Assembly, given: _SubmitOptions, *, as_json: bool) -> NoReturn:
    """The step to do, or the steps to choose from."""
    status = await parts.run_reader.status(given.run)
    seen = await parts.guide.look(given.run)
    found = guided(seen, now=parts.worker.settings.clock())
    if given.step and given.step not in found.ready:
        raise _not_ready(given, found)
    step = given.step or (found.ready[0] if len(found.ready) == 1 else "")
    if step:
        chosen = replace(seen, step=step.removesuffix(UNDO))
        found = guided(chosen, now=parts.worker.settings.clock(), about=ReplyContext(models=parts.models))

    def print_text() -> None:
        print_status(status)
        if step and found.step is not None:
            print_step(given.run, found.step)
        elif found.ready:
            print_ready_steps(given.run, found.ready)

    answer(found, as_json=as_json, as_text=print_text)
    sys.exit(EXIT_OF_STATUS[status.status])


async def _submit(parts: Assembly, given: _SubmitOptions, *, is_watched: bool, as_json: bool) -> NoReturn:
    given = await _with_step(parts, given)
    before = await parts.writer.dispatch.current(given.run)
    verdict = await _verdict(parts, given)
    if not verdict.accepted:
        found = await _answered(parts, given, verdict)
        answer(found, as_json=as_json, as_text=lambda: print_verdict(found, given.step))
        sys.exit(Exit.INVALID)
    status = await execute(parts, given.run, is_watched=is_watched, as_json=as_json, after=before.n)
    found = await _answered(parts, given, verdict)
    accepted = ReplyContext(outcome=Outcome(given.outcome or Outcome.DONE)).accepted_words
    answer(found, as_json=as_json, as_text=lambda: _print_accepted(found, given.step, status, accepted))
    sys.exit(EXIT_OF_STATUS[status.status])


async def _with_step(parts: Assembly, given: _SubmitOptions) -> _SubmitOptions:
    """The options with a step: if none was named, the only one that is ready."""
    if given.step:
        return given
    found = guided(await parts.guide.look(given.run), now=parts.worker.settings.clock())
    if len(found.ready) == 1:
        return replace(given, step=found.ready[0])
    if not found.ready:
        raise _not_ready(given, found)
    raise Invalid(f"which step is meant? {', '.join(found.ready)}", hint=f"`handrail run submit {given.run} STEP ...`")


async def _verdict(parts: Assembly, given: _SubmitOptions) -> Verdict:
    """Submit the output; where the step needs a person's agreement, ask for it at a terminal."""
    actor = person()
    submission = Submission(
        step=given.step,
        output=None if given.output is UNSET else given.output,
        outcome=Outcome(given.outcome or Outcome.DONE),
        vars=given.vars,
        note=given.note,
        confirmed=f"{actor} agreed on the command line" if given.confirmed else "",
    )
    verdict = await parts.guide.submit(given.run, submission, actor=actor)
    if not verdict.unconfirmed or not can_ask():
        return verdict
    if not ask_yes(f"Step {given.step!r} needs your agreement. Do you agree to this output?"):
        return verdict
    agreed = replace(submission, confirmed=f"{actor} agreed at the terminal")
    return await parts.guide.submit(given.run, agreed, actor=actor)


async def _answered(parts: Assembly, given: _SubmitOptions, verdict: Verdict) -> Guided:
    seen = await parts.guide.look(given.run)
    about = ReplyContext(verdict=verdict, submitted=given.step, models=parts.models)
    return guided(seen, now=parts.worker.settings.clock(), about=about)


def _print_accepted(found: Guided, step: str, status: Status, accepted: str) -> None:
    print_verdict(found, step, accepted)
    print_status(status)
    if len(found.ready) > 1:
        print_ready_steps(found.run, found.ready)
    elif found.step is not None:
        print_step(found.run, found.step)


def _not_ready(given: _SubmitOptions, found: Guided) -> Conflict:
    ready = f"ready: {', '.join(found.ready)}" if found.ready else f"see `handrail run show {given.run}`"
    what = f"step {given.step!r} of {given.run} is not ready" if given.step else f"no step of {given.run} is ready"
    return Conflict(f"{what} to be done by hand", hint=ready)
