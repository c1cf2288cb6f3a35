"""Prints runs: the status of one, what it waits for, how to continue, and lists of runs.

The data comes from engine/reading/run_view.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from shlex import quote
from typing import Any, Final

import msgspec

from handrail.domain.definition.model import Kind
from handrail.domain.journal.event import How
from handrail.domain.plural import counted_steps, plural
from handrail.domain.run.approval_words import effect_lines
from handrail.domain.run.status import RUN_UNDOING, RunStatus, StepStatus
from handrail.engine.reading.run_view import (
    Failure,
    Progress,
    RecoveryOption,
    Remedy,
    RunSummary,
    Status,
    WaitingFor,
    WaitingKind,
    failure_kind,
)
from handrail.engine.reading.step_view import PostponedView, StepView, Why
from handrail.engine.reading.time_view import duration_words as milliseconds_words
from handrail.interfaces.cli.words.all_projects import program_for, project_words, with_project_column
from handrail.interfaces.cli.words.answer import Exit
from handrail.interfaces.cli.words.json_value import form_of
from handrail.interfaces.cli.words.own_command import localized, own_program
from handrail.interfaces.cli.words.table import Column, has_unicode, print_table
from handrail.interfaces.cli.words.terminal_edge import say
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
    RunStatus.COMPENSATING: Exit.WAITING,  # settled in this state: an agent has to undo a step, or someone to decide
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
            one["command"] = _command(status, option)
    return data


def print_status(status: Status, *, is_utc: bool = False) -> None:
    """Print the status of a run, and how to continue."""
    shown = time_format(is_utc=is_utc)
    say(f"{status.run}  {plain(status.workflow)}  ", nl=False)
    say(status.status.value, nl=False, bold=True, fg=COLOR_OF_RUN.get(status.status, "cyan"))
    say(f"  {progress_words(status.progress)}")
    facts = (
        ("project", project_words(status.project) if status.project is not None else ""),
        ("goal", status.goal),
        ("started", shown.ago(status.started) if not status.ended else ""),
        ("ended", f"{shown.ago(status.ended)}, after {took(status)}" if status.ended else ""),
        ("reason", status.reason),
        ("node", status.node),
        ("deadline", shown.ago(status.deadline)),
        ("forked", _origin(status)),
        ("NOT undone", ", ".join(status.not_compensated)),
        *((one.kind.value.replace("_", " "), f"{one.step} by {one.by}: {one.reason}") for one in status.exceptions),
    )
    for name, text in facts:
        if text:
            say(f"  {name}: {plain(text)}")
    for name, value in status.outputs.items():
        say(f"  output {plain(name)}: {plain(str(value))}")
    for one in status.waiting_for:
        print_waiting(status, one, shown)
    if status.failure is not None:
        _print_failure(status, status.failure, shown)
    _print_options(status, status.options)
    if status.steps:
        print_steps(status.steps, shown)


def progress_words(progress: Progress) -> str:
    """How far a run is, or its undo; skipped steps do not count as done."""
    if (undone := progress.undone) is not None:
        left = f", {plural(undone.not_undone, 'effect')} NOT undone" if undone.not_undone else ""
        return f"{undone.done} of {plural(undone.of, 'step')} undone{left}"
    rounds = "".join(f", {loop}: round {words}" for loop, words in progress.rounds.items())
    return counted_steps(progress.done, progress.total, progress.skipped) + rounds


def _origin(status: Status) -> str:
    if status.fork is None:
        return ""
    left = f"; it does not undo {', '.join(status.fork.effects)}" if status.fork.effects else ""
    return f"from {status.fork.run} at {status.fork.step}{left}"


def print_waiting(status: Status, one: WaitingFor, shown: TimeFormat) -> None:
    """Print what a run waits for, with the command that answers."""
    who = f" by {', '.join(one.by)}" if one.by else ""
    program = program_for(status.project)
    until = f" ({_expiry_and_remedy(status, one, shown)})" if one.expires else ""
    match one.kind:
        case WaitingKind.APPROVAL:
            first, *more = one.text.splitlines() or [""]
            say(f"  waiting for approval of {one.step}{who}{until}: {plain(first)}", fg="yellow")
            for line in (*more, *effect_lines(one.effects, one.unshown, at_most=EFFECTS_SHOWN)):
                say(f"    {plain(line)}")
            answer = f" --answer {form_of(one.schema)}" if one.schema is not None else ""
            if program:
                say(f"    {program} approve {status.run} {quote(one.step)}{answer}    (or: {program} reject ...)")
        case WaitingKind.DECISION:
            say(f"  waiting for a decision on {one.step}", fg="yellow")
        case _:
            say(f"  waiting for {', '.join(one.by) or 'the agent'} to do {one.step}", fg="yellow")


def _expiry_and_remedy(status: Status, one: WaitingFor, shown: TimeFormat) -> str:
    program, words = program_for(status.project), _expiry(one.expires, shown)
    is_remedied = program and shown.is_over(one.expires)
    return f"{words}; asked again when the run goes on: {program} run resume {status.run}" if is_remedied else words


def _expiry(instant: str, shown: TimeFormat) -> str:
    return "expired" if shown.is_over(instant) else f"expires {shown.ago(instant)}"


def _print_failure(status: Status, failure: Failure, shown: TimeFormat) -> None:
    verdict = f"failed{failure_kind(failure.category.value, failure.tool)}" if failure.category else "is uncertain"
    tries = f" after {failure.attempts} tries" if failure.attempts > 1 else ""
    subject = f"undo of {failure.step}" if status.status in RUN_UNDOING else failure.step
    say(f"  {subject} {verdict}{tries}: {plain(failure.message)}", fg="red")
    for one in failure.tries if failure.attempts > 1 else ():
        spent = f", {one.took_ms} ms" if one.took_ms else ""
        say(f"    try {one.attempt}, {shown.ago(one.at)}{spent}: {one.category.value}: {plain(one.message)}")
    _print_options(status, failure.options)


def _print_options(status: Status, options: Sequence[RecoveryOption]) -> None:
    for option in options if program_for(status.project) else ():
        if option.action is Remedy.REPORT:
            say("    (only its agent can report on it: nothing here executes this run)")
            continue
        say(f"    {_command(status, option)}    {option.means}")


def _command(status: Status, option: RecoveryOption) -> str:
    """The command for an option."""
    program, run = program_for(status.project) or own_program(), status.run
    step = f" {quote(option.step)}" if option.step else ""  # a shell would read the brackets of a round as a pattern
    if option.action is Remedy.RECORD:
        return f"{program} run compensated {run}{step} --description '...'"
    return f"{program} run {option.action.value} {run}{step} --reason '...'"


def print_steps(steps: Sequence[StepView], shown: TimeFormat) -> None:
    """Print every step with its state."""
    unicode = has_unicode()
    rows = [
        (
            f"{icon_of(step.status, unicode=unicode)} {'  ' * depth_of(step.id)}{step.id}",
            step.status.value,
            step.attempts or "",
            worked_words(step),
            _spent(step.waited_ms),
            _spent(step.undone_ms, is_known=step.compensation == How.EXECUTED),
            step.by,
            note_on(step, shown),
        )
        for step in steps
    ]
    print_table((*STEP_HEAD, Column("note")), rows)


EFFECTS_SHOWN: Final = 5
"""How many of the steps that follow an approval a status shows; `handrail approve` shows all that are recorded."""
STEP_HEAD: Final = (
    *(Column("step"), Column("state"), Column("tries", 2)),
    *(Column("worked", 1), Column("waited", 4), Column("undone", 5), Column("by", 3)),
)
"""The time of a step: of its tries, of what it waited for, and of its undo. What others did in between is in none."""
HOLDING: Final = frozenset({Kind.EACH, Kind.REPEAT, Kind.WORKFLOW})
"""Steps that only hold others: they take from their start to their end."""


def depth_of(path: str) -> int:
    """How many steps this one is nested in."""
    return path.count(".")


def note_on(step: StepView, shown: TimeFormat) -> str:
    """Further facts about a step, in one line."""
    rounds = f"round {step.round} of {step.rounds}" if step.rounds and step.round else ""
    undone = {"": "", "none": "NOT undone"}.get(step.compensation, f"undone: {step.compensation}")
    proof = "claimed" if step.proof == "claimed" else f"{step.proof}: {', '.join(step.checks)}" if step.checks else ""
    waits = "waiting for " + ", ".join(_postponed(one, shown) for one in step.waits_for) if step.waits_for else ""
    message, channel = plain(step.message), f"answered by {plain(step.channel)}" if step.channel else ""
    return "; ".join(word for word in (rounds, waits, undone, proof, channel, plain(step.says), message) if word)


def _postponed(postponed: PostponedView, shown: TimeFormat) -> str:
    when = _expiry(postponed.until, shown) if postponed.kind is Why.APPROVAL else shown.ago(postponed.until)
    until = f" ({when})" if postponed.until else ""
    if postponed.step:
        return postponed.step
    if postponed.reason:
        return f"{plain(postponed.reason)}{until}"
    return f"{WAITS.get(postponed.kind.value, postponed.kind.value)}{until}"


WAITS: Final = {"agent": "the agent", "decision": "a decision", "approval": "a person", "retry": "the next try"}


def worked_words(step: StepView) -> str:
    """How long the tries of a step took."""
    return took(step) if step.kind in HOLDING else _spent(step.worked_ms, is_known=step.attempts > 0)


def spent_words(step: StepView, now: str = "") -> str:
    """How long a step took, with what it waited for."""
    return took(step, now) if step.kind in HOLDING else _spent(step.worked_ms + step.waited_ms)


def _spent(milliseconds: int, *, is_known: bool = False) -> str:
    return milliseconds_words(milliseconds) if milliseconds or is_known else ""


def took(one: StepView | Status, now: str = "") -> str:
    """How long it is from the start of a run, or of a step that holds others, to its end, or until now."""
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
        say(localized("no runs; `handrail run start FILE` starts one, `run list --all` shows ended ones"), err=True)
        return
    shown = time_format(is_utc=is_utc)
    head: list[str | Column] = ["run", "status", Column("steps ended", 2), Column("started", 1), "workflow", "what"]
    cells: list[Sequence[object]] = [
        (row.run, row.status.value, row.done, shown.ago(row.started), plain(row.workflow), _why(row)) for row in rows
    ]
    if any(row.project is not None for row in rows):
        head, cells = with_project_column(head, cells, [row.project for row in rows])
    print_table(head, cells)


def _why(row: RunSummary) -> str:
    waits = ", ".join(f"{one.kind.value} {one.step}" for one in row.waiting_for[:3])
    past = plural(row.exceptions, "exception") if row.exceptions else ""
    return "; ".join(word for word in (f"waiting for {waits}" if waits else "", past, plain(row.goal)) if word)
