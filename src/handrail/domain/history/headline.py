"""The headline of a run: the input that names it, and in a few words why it is where it is.

Pure, for lists: why.py says the same in whole sentences, from all of its events."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from handrail.domain.history.failure_parts import failure_parts
from handrail.domain.history.story_words import actor_name, named
from handrail.domain.journal.event import (
    Entry,
    RunCancelled,
    RunCompensated,
    RunCompensationFailed,
    RunFailed,
)
from handrail.domain.plural import plural

LABEL_LENGTH_MAX: Final = 40
SAID_LENGTH_MAX: Final = 300
ROUND: Final = re.compile(r"\[\d+\]")


class FailedStep(Struct, frozen=True, kw_only=True):
    """A step that failed, as far as a headline needs it."""

    title: str
    message: str
    category: str = ""
    tool: str = ""


def label_of(inputs: Mapping[str, Any], declared: Mapping[str, Any]) -> str:
    """The input that tells a run from others of its workflow: the first short text, one that had to be given first."""
    texts = [name for name, value in inputs.items() if _is_short_text(value)]
    given = [name for name in texts if inputs[name] != _schema(declared, name).get("default")]
    needed = [name for name in given if "default" not in _schema(declared, name)]
    return str(inputs[(needed or given)[0]]) if given else ""


def _schema(declared: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    schema = declared.get(name)
    return schema if isinstance(schema, Mapping) else {}


def _is_short_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= LABEL_LENGTH_MAX and value.isprintable()


def cause_of(one: FailedStep) -> str:
    """What a step failed of, in the tool's words: `token expired (403, permission)`."""
    parts = failure_parts(one.message, one.tool)
    code = ", ".join(filter(None, (str(parts.status or ""), one.category.replace("_", " "))))
    said = (parts.said or one.message)[:SAID_LENGTH_MAX]
    return f"{said} ({code})" if code else said


def likeness(status: str, path: str, one: FailedStep) -> tuple[str, ...]:
    """What steps have in common that failed alike: rounds of one loop by their category, others by their words."""
    rounds = ROUND.sub("[]", path)
    return (status, rounds, one.category) if rounds != path else (status, cause_of(one))


def failure_line(failed: Sequence[FailedStep]) -> str:
    """What failed, and of what: the first of these steps, and how many more there are."""
    first, more = failed[0], len(failed) - 1
    also = f"; {plural(more, 'more step')} failed" if more else ""
    return f"{first.title} failed: {cause_of(first)}{also}"


def skipped_line(skipped: Sequence[tuple[str, str]]) -> str:
    """Which steps of a completed run somebody left out, each as its title and who did; empty if none."""
    who = dict.fromkeys(actor_name(actor) for _, actor in skipped)
    return f"{named(title for title, _ in skipped)} skipped by {named(who)}" if skipped else ""


def end_line(last: Entry | None, failed: Sequence[FailedStep], undone: int) -> str:
    """Why a run ended as it did, from the event that ended it; empty if it is simply completed."""
    what = failure_line(failed) if failed else ""
    if last is None:
        return what
    match last.event:
        case RunCancelled(reason=reason):
            return f"{actor_name(last.actor)}: {reason}"
        case RunFailed(message=message):
            return what or message
        case RunCompensated(not_compensated=left):
            return "; ".join(filter(None, (what, _undone(undone, left))))
        case RunCompensationFailed() as failed_undo:
            left = failed_undo.remaining
            return f"{plural(len(left), 'effect')} could not be undone: {named(left)}"
        case _:
            return what


def _undone(steps: int, left: Sequence[str]) -> str:
    return f"{plural(steps, 'step')} undone, {f'{named(left)} stays' if left else 'nothing stays'}"
