"""Captions: the texts about a step that all formats share, and text made safe to print.

Pure. Each format has its own icons and colours; outline.py decides which steps are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, assert_never

from msgspec import Struct

from handrail.domain.definition.model import (
    Approve,
    Call,
    Definition,
    Each,
    Effect,
    Kind,
    OnFailure,
    Prompt,
    Repeat,
    Rounds,
    Step,
    Tool,
    Work,
    walk,
)

TEXT_LENGTH_MAX: Final = 240
NAMES_MAX: Final = 4

WHO: Final[Mapping[Kind, str]] = {
    Kind.PROMPT: "the agent",
    Kind.TOOL: "handrail",
    Kind.APPROVE: "a person",
    Kind.WORKFLOW: "another workflow",
    Kind.EACH: "for each item",
    Kind.REPEAT: "until done",
}


class Sign(StrEnum):
    """What a remark is about; pictures draw a sign for each, except `PLAIN`."""

    WHEN = "when"
    AFTER = "after"
    UNDO = "undo"
    DANGER = "danger"
    CYCLE = "cycle"
    PLAIN = "plain"


MEANING: Final[Mapping[Sign, str]] = {
    Sign.WHEN: "conditional",
    Sign.UNDO: "can be undone",
    Sign.DANGER: "cannot be undone",
    Sign.CYCLE: "part of a cycle",
}


class Remark(Struct, frozen=True):
    """Something special about a step."""

    mark: Sign
    text: str


def plain(text: str) -> str:
    """The text on one line, without control, format and other unprintable characters: safe for a terminal."""
    shown = text[: TEXT_LENGTH_MAX * 4]
    if not shown.isprintable():
        shown = "".join(char if char.isprintable() else " " if char.isspace() else "" for char in shown)
    shown = " ".join(shown.split())
    return shown if len(shown) <= TEXT_LENGTH_MAX else shown[: TEXT_LENGTH_MAX - 1] + "…"


def name_of(definition: Definition) -> str:
    """The name of the definition, or its id."""
    return plain(definition.name) or plain(definition.id)


def facts_of(definition: Definition) -> list[str]:
    """Facts about the whole definition, as short phrases."""
    return _present(
        (True, _count(sum(1 for _ in walk(definition.steps)), "step")),
        (definition.on_failure is not OnFailure.ASK, f"on failure: {definition.on_failure}"),
        (definition.deadline, f"deadline {plain(definition.deadline or '')}"),
    )


def subject_of(step: Step) -> str:
    """The step's title; without one, what the step does."""
    return plain(step.title) or doing_of(step.work)


def doing_of(work: Work) -> str:
    """What a step does: the tool, the question, the workflow, the loop's head, the start of the prompt."""
    match work:
        case Prompt():
            return plain(work.prompt)
        case Tool():
            return plain(work.tool)
        case Approve():
            return plain(work.approve)
        case Call():
            return plain(work.workflow)
        case Each():
            return plain(f"for {work.as_} in {work.items}")
        case Repeat():
            return plain(_end_of(work.repeat))
        case _:
            assert_never(work)


def remarks_on(step: Step) -> list[Remark]:
    """What is special about the step, the most important first."""
    return [Remark(mark, plain(text)) for mark, text in _special(step)]


def waits_for(names: Sequence[str]) -> str:
    """The names of several steps; only the first few are listed."""
    shown = ", ".join(plain(name) for name in names[:NAMES_MAX])
    more = len(names) - NAMES_MAX
    return f"{shown} and {more} more" if more > 0 else shown


def _special(step: Step) -> Iterator[tuple[Sign, str]]:
    if step.when:
        yield Sign.WHEN, f"when {step.when}"
    if step.title and not isinstance(step.work, Prompt):
        yield Sign.PLAIN, doing_of(step.work)
    for text in _terms(step.work):
        yield Sign.PLAIN, text
    yield from _undoing(step)
    if step.on_failure:
        yield Sign.PLAIN, f"on failure: {step.on_failure}"


def _undoing(step: Step) -> Iterator[tuple[Sign, str]]:
    if step.effect is Effect.IRREVERSIBLE:
        yield Sign.DANGER, "irreversible"
    if step.undo:
        yield Sign.UNDO, f"undo by {'the agent' if isinstance(step.undo, Prompt) else doing_of(step.undo)}"
    elif step.effect in (Effect.REVERSIBLE, Effect.COMPENSATABLE):
        yield Sign.PLAIN, f"{step.effect}"


def _terms(work: Work) -> list[str]:
    """What is special about a step of its kind."""
    match work:
        case Prompt():
            return _present((work.confirm, "user confirms"), (work.checks, _count(len(work.checks), "check")))
        case Tool():
            return _present((work.checks, _count(len(work.checks), "check")))
        case Approve():
            return _present((work.by, f"by {waits_for(work.by)}"), (work.expires, f"expires after {work.expires}"))
        case Each():
            return _present((work.parallel > 1, f"{work.parallel} at once"), (True, f"at most {work.max}"))
        case Repeat(repeat=rounds):
            return _present((rounds.times is None, f"at most {rounds.bound}"), (rounds.every, f"every {rounds.every}"))
        case Call():
            return []


def _present(*terms: tuple[object, str]) -> list[str]:
    return [text for is_present, text in terms if is_present]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _end_of(rounds: Rounds) -> str:
    if rounds.until is not None:
        return f"until {rounds.until}"
    if rounds.while_ is not None:
        return f"while {rounds.while_}"
    return f"{rounds.times or rounds.bound} times"
