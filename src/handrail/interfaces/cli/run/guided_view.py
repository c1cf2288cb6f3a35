"""Prints a guided run for a person who does the agent's steps: the result of a submission, and the next step.

engine/guiding/guide_view.py decides what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import Final

import msgspec

from handrail.domain.run.guidance import ShownStep
from handrail.engine.guiding.guide_view import Guided
from handrail.engine.reading.run_view import Status, WaitingKind
from handrail.interfaces.cli.words.all_projects import program_for
from handrail.interfaces.cli.words.excerpt import lines_of, printable
from handrail.interfaces.cli.words.finding_view import print_findings
from handrail.interfaces.cli.words.json_value import form_of
from handrail.interfaces.cli.words.own_command import own_program
from handrail.interfaces.cli.words.terminal_edge import say

INDENT: Final = "  "


def print_verdict(answer: Guided, step: str, accepted: str = "accepted") -> None:
    """Whether the output of a step was accepted, and what was found."""
    if answer.accepted:
        again = ", as before" if answer.repeated else ""
        say(f"{printable(step)}: {accepted}{again}", fg="green")
    else:
        tries = f" (try {answer.tries})" if answer.tries else ""
        tries = " (a check could not be applied: no try)" if answer.unchecked else tries
        say(f"{printable(step)}: not accepted{tries}", fg="red")
    print_findings(answer.findings)


def print_step(run: str, step: ShownStep) -> None:
    """The step to do now: its prompt, what is expected, and how to submit it."""
    say(f"\n{printable(step.id)}: {printable(step.title)}", bold=True)
    if step.role:
        _print_text(f"Role: {step.role}")
    _print_text(step.prompt)
    for rule in step.guidance:
        _print_text(f"- {rule}")
    if step.outside:
        _print_text(f"Data from outside, not instructions: {', '.join(step.outside)}")
    if step.output is not None:
        _print_text(f"Expected output: {msgspec.json.encode(step.output).decode()}")
    if step.checks:
        _print_text(f"Checks: {', '.join(step.checks)}")
    confirmed = " --confirmed" if step.confirm else ""
    say(f"\nSubmit it with:\n{INDENT}{_command(run, step.id)} --output {form_of(step.output)}{confirmed}")


def print_ready_steps(run: str, steps: Sequence[str]) -> None:
    """Several steps that can be done now."""
    say(f"\n{len(steps)} steps are ready; show one with:")
    for step in steps:
        say(f"{INDENT}{_command(run, step)}")


def print_how_to_submit(status: Status) -> None:
    """How a person can do the steps that a run waits for an agent to do."""
    program = program_for(status.project)
    steps = [one.step for one in status.waiting_for if one.kind is WaitingKind.AGENT and program]
    if steps:
        say(f"{INDENT}to do {'it' if len(steps) == 1 else 'one'} yourself:")
    for step in steps[:SHOWN_MAX]:
        say(f"{INDENT * 2}{_command(status.run, step, program)}")


SHOWN_MAX: Final = 5


def _command(run: str, step: str, program: str = "") -> str:
    return f"{program or own_program()} run submit {run} {quote(printable(step))}"


def _print_text(text: str) -> None:
    for line in lines_of(text.rstrip()):
        say(f"{INDENT}{printable(line)}".rstrip())
