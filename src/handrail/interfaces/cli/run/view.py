"""Prints runs: the status of one, what it waits for, how to continue, and lists of runs.

The data comes from engine/reading/run_view.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from shlex import quote
from typing import Any, Final

import click
import msgspec

from handrail.domain.plural import plural
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.engine.reading.run_view import (
    Failure,
    Progress,
    RecoveryOption,
    RunSummary,
    Status,
    WaitingFor,
    WaitingKind,
)
from handrail.engine.reading.step_view import PostponedView, StepView, Why
from handrail.interfaces.cli.words.answer import Exit
from handrail.interfaces.cli.words.json_value import form_of
from handrail.interfaces.cli.words.table import Column, has_unicode, print_table
from handrail.interfaces.cli.words.times import TimeFormat, time_format
from handrail.interfaces.pictures.caption import plain

EXIT_OF_STATUS: Final[Mapping[RunStatus, Exit]] = {
    RunStatus.COMPLETED: Exit.OK,
    RunStatus.RUNNING: Exit.OK,
    RunStatus.FAILED: Exit.FAILED,
    RunStatus.CANCELLED: Exit.FAILED,
    RunStatus.COMPENSATION_FAILED: Exit.FAILED,
    RunStatus.WAITING: Exit.WAITING,
    RunStatus.PAUSED: Exit.WAITING,
    RunStatus.COMPENSATING: Exit.WAITING,  # settled in this state: an agent has to undo a step
    RunStatus.COMPENSATED: Exit.COMPENSATED,
}
COLOR_OF_RUN: Final[Mapping[RunStatus, str]] = {
    RunStatus.COMPLETED: "green",
    RunStatus.FAILED: "red",
    RunStatus.COMPENSATION_FAILED: "red",
    RunStatus.CANCELLED: "magenta",
    RunStatus.COMPENSATED: "magenta",
    RunStatus.WAITING: "yellow",
    RunStatus.PAUSED: "yellow",
}
COLOR_OF_STEP: Final[Mapping[StepStatus, str]] = {
    StepStatus.RUNNING: "cyan",
    StepStatus.READY: "cyan",
    StepStatus.WAITING: "yellow",
    StepStatus.COMPLETED: "green",
    StepStatus.FAILED: "red",
    StepStatus.UNCERTAIN: "red",
    StepStatus.COMPENSATING: "magenta",
    StepStatus.COMPENSATED: "magenta",
    StepStatus.COMPENSATION_FAILED: "red",
}
ICONS: Final[Mapping[StepStatus, tuple[str, str]]] = {
    StepStatus.PENDING: ("·", "."),
    StepStatus.READY: ("○", "o"),
    StepStatus.RUNNING: ("●", "*"),
    StepStatus.WAITING: ("◔", "~"),
    StepStatus.COMPLETED: ("✔", "+"),
    StepStatus.FAILED: ("✘", "x"),
    StepStatus.SKIPPED: ("-", "-"),
    StepStatus.CANCELLED: ("■", "#"),
    StepStatus.UNCERTAIN: ("?", "?"),
    StepStatus.COMPENSATING: ("↶", "<"),
    StepStatus.COMPENSATED: ("↺", "="),
    StepStatus.COMPENSATION_FAILED: ("‼", "!"),
}


def icon_of(status: StepStatus, *, unicode: bool) -> str:
    """The icon for a step's status."""
    return ICONS[status][0 if unicode else 1]


def status_data(status: Status) -> dict[str, Any]:
    """The status of a run as data; each option has the command for it."""
    data: dict[str, Any] = msgspec.to_builtins(status)
    failure = status.failure
    for holder, options in ((data, status.options), (data.get("failure", {}), failure.options if failure else ())):
        for one, option in zip(holder.get("options", ()), options, strict=True):
            one["command"] = _command(status.run, option)
    return data


def print_status(status: Status, *, is_utc: bool = False) -> None:
    """Print the status of a run, and how to continue."""
    shown = time_format(is_utc=is_utc)
    click.echo(f"{status.run}  {plain(status.workflow)}  ", nl=False)
    click.secho(status.status.value, nl=False, bold=True, fg=COLOR_OF_RUN.get(status.status, "cyan"))
    click.echo(f"  {progress_words(status.progress)}")
    facts = (
        ("goal", status.goal),
        ("started", shown.ago(status.started) if not status.ended else ""),
        ("ended", f"{shown.ago(status.ended)}, after {took(status)}" if status.ended else ""),
        ("reason", status.reason),
        ("deadline", shown.ago(status.deadline)),
        ("forked", _origin(status)),
        ("NOT undone", ", ".join(status.not_compensated)),
    )
    for name, text in facts:
        if text:
            click.echo(f"  {name}: {plain(text)}")
    for name, value in status.outputs.items():
        click.echo(f"  output {plain(name)}: {plain(str(value))}")
    for one in status.waiting_for:
        print_waiting(status.run, one, shown)
    if status.failure is not None:
        _print_failure(status.run, status.failure, shown)
    _print_options(status.run, status.options)
    if status.steps:
        print_steps(status.steps, shown)


def progress_words(progress: Progress) -> str:
    """How far a run is; skipped steps do not count as done."""
    skipped = f", {progress.skipped} skipped" if progress.skipped else ""
    return f"{progress.done - progress.skipped} of {plural(progress.total, 'step')} done{skipped}"


def _origin(status: Status) -> str:
    if status.fork is None:
        return ""
    left = f"; it does not undo {', '.join(status.fork.effects)}" if status.fork.effects else ""
    return f"from {status.fork.run} at {status.fork.step}{left}"


def print_waiting(run: str, one: WaitingFor, shown: TimeFormat) -> None:
    """Print what a run waits for, with the command that answers."""
    who = f" by {', '.join(one.by)}" if one.by else ""
    until = f" (expires {shown.ago(one.expires)})" if one.expires else ""
    match one.kind:
        case WaitingKind.APPROVAL:
            first, *more = one.text.splitlines() or [""]
            click.secho(f"  waiting for approval of {one.step}{who}{until}: {plain(first)}", fg="yellow")
            for line in more:
                click.echo(f"    {plain(line)}")
            answer = f" --answer {form_of(one.schema)}" if one.schema is not None else ""
            click.echo(
                f"    handrail approve {run} {quote(one.step)} --reason '...'{answer}    (or: handrail reject ...)"
            )
        case WaitingKind.DECISION:
            click.secho(f"  waiting for a decision on {one.step}", fg="yellow")
        case _:
            click.secho(f"  waiting for {', '.join(one.by) or 'the agent'} to do {one.step}", fg="yellow")


def _print_failure(run: str, failure: Failure, shown: TimeFormat) -> None:
    category = f" ({failure.category.value})" if failure.category else ""
    tries = f" after {failure.attempts} tries" if failure.attempts > 1 else ""
    click.secho(f"  {failure.step} failed{category}{tries}: {plain(failure.message)}", fg="red")
    for one in failure.tries if failure.attempts > 1 else ():
        spent = f", {one.took_ms} ms" if one.took_ms else ""
        click.echo(f"    try {one.attempt}, {shown.ago(one.at)}{spent}: {one.category.value}: {plain(one.message)}")
    _print_options(run, failure.options)


def _print_options(run: str, options: Sequence[RecoveryOption]) -> None:
    for option in options:
        click.echo(f"    {_command(run, option)}    {option.means}")


def _command(run: str, option: RecoveryOption) -> str:
    """The command for an option."""
    step = f" {quote(option.step)}" if option.step else ""  # a shell would read the brackets of a round as a pattern
    return f"handrail run {option.action.value} {run}{step} --reason '...'"


def print_steps(steps: Sequence[StepView], shown: TimeFormat) -> None:
    """Print every step with its state."""
    unicode = has_unicode()
    rows = [
        (
            f"{icon_of(step.status, unicode=unicode)} {'  ' * depth_of(step.id)}{step.id}",
            step.status.value,
            step.attempts or "",
            took(step),
            step.by,
            note_on(step, shown),
        )
        for step in steps
    ]
    print_table((*STEP_HEAD, Column("note")), rows)


STEP_HEAD: Final = (Column("step"), Column("state"), Column("tries", 2), Column("took", 1), Column("by", 3))


def depth_of(path: str) -> int:
    """How many steps this one is nested in."""
    return path.count(".")


def note_on(step: StepView, shown: TimeFormat) -> str:
    """Further facts about a step, in one line."""
    rounds = f"round {step.round} of {step.rounds}" if step.rounds and step.round else ""
    undone = {"": "", "none": "NOT undone"}.get(step.compensation, f"undone: {step.compensation}")
    proof = "claimed" if step.proof == "claimed" else f"verified: {', '.join(step.checks)}" if step.checks else ""
    waits = "waiting for " + ", ".join(_postponed(one, shown) for one in step.waits_for) if step.waits_for else ""
    message = plain(step.message)
    return "; ".join(word for word in (rounds, waits, undone, proof, plain(step.says), message) if word)


def _postponed(postponed: PostponedView, shown: TimeFormat) -> str:
    expires = "expires " if postponed.kind is Why.APPROVAL else ""
    until = f" ({expires}{shown.ago(postponed.until)})" if postponed.until else ""
    if postponed.step:
        return postponed.step
    if postponed.reason:
        return f"{plain(postponed.reason)}{until}"
    return f"{WAITS.get(postponed.kind.value, postponed.kind.value)}{until}"


WAITS: Final = {"agent": "the agent", "decision": "a decision", "approval": "a person", "retry": "the next try"}


def took(one: StepView | Status, now: str = "") -> str:
    """How long a step or a run took; with `now`, how long it has been running."""
    end = one.ended or now
    if not one.started or not end:
        return ""
    seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(one.started)).total_seconds()
    return duration_words(max(0.0, seconds))


def duration_words(seconds: float) -> str:
    """A duration in its two largest units."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def print_runs(rows: Sequence[RunSummary], *, is_utc: bool = False) -> None:
    """Print runs as a table."""
    if not rows:
        click.echo("no runs; `handrail run start FILE` starts one, `run list --all` shows ended ones", err=True)
        return
    shown = time_format(is_utc=is_utc)
    cells = [
        (row.run, row.status.value, row.done, shown.ago(row.started), plain(row.workflow), _why(row)) for row in rows
    ]
    print_table(("run", "status", Column("done", 2), Column("started", 1), "workflow", "what"), cells)


def _why(row: RunSummary) -> str:
    waits = ", ".join(f"{one.kind.value} {one.step}" for one in row.waiting_for[:3])
    return "; ".join(word for word in (f"waiting for {waits}" if waits else "", plain(row.goal)) if word)
