"""The words of a story: who acted, what steps are called, and the words for an event. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from handrail.domain.history.failure_parts import failure_parts
from handrail.domain.journal.event import (
    ApprovalRequested,
    AttemptFailed,
    Entry,
    OutputRefused,
    RunStarted,
    StepFailed,
    UndoFailed,
)
from handrail.domain.json import canonical_bytes
from handrail.domain.plural import plural
from handrail.domain.policy.actor import ActorKind, kind_of, name_of

NAMED_MAX: Final = 5
FINDINGS_SHOWN: Final = 3
INPUTS_SHOWN: Final = 4
VALUE_LENGTH_MAX: Final = 60
HOW: Final = {
    "executed": "executed",
    "by_agent": "by the agent",
    "recorded": "recorded, done elsewhere",
    "not_needed": "not needed",
}
"""In which way a step was undone."""


class EventWords(Struct, frozen=True):
    """The words for one event."""

    text: str
    words: str = ""
    facts: Mapping[str, str] = {}


class StepNames(Struct, frozen=True):
    """What the steps of a run are called, and by which tool each is done or undone."""

    title: Callable[[str], str]
    tool: Callable[[str], str]
    undo_tool: Callable[[str], str]

    def quoted(self, path: str) -> str:
        """The title of a step, in quotes."""
        return f"“{self.title(path)}”"

    def listed(self, paths: Iterable[str]) -> str:
        """The first of these steps, and how many more there are; rounds of a loop that have the same title are named
        once."""
        known = list(dict.fromkeys(paths))
        titles = list(dict.fromkeys(map(self.quoted, known[:NAMED_MAX])))
        more = len(known) - len(titles)
        return ", ".join(titles) + (f" and {more:,} more" if more else "")

    def code(self, event: StepFailed | UndoFailed | AttemptFailed) -> tuple[str, str]:
        """What was said of a failure, and its status and category: `token expired`, `403, permission`."""
        tool = self.undo_tool if isinstance(event, UndoFailed) else self.tool
        parts = failure_parts(event.message, tool(event.step))
        code = ", ".join(filter(None, (str(parts.status or ""), event.category.value.replace("_", " "))))
        return parts.said or event.message, code


PATHS: Final = StepNames(title=lambda path: path, tool=lambda _: "", undo_tool=lambda _: "")
"""Steps by their paths, where the definition is not known."""
Wording: TypeAlias = Callable[[Any, Entry, StepNames], EventWords]


def somebody(entry: Entry) -> str:
    """Who acted."""
    return actor_name(entry.actor)


def is_somebody(actor: str) -> bool:
    """Whether a person or an agent acted, rather than the engine."""
    return kind_of(actor) in {ActorKind.PERSON, ActorKind.AGENT}


def actor_name(actor: str) -> str:
    """The name of an actor as people say it; the engine is handrail."""
    return name_of(actor) if is_somebody(actor) else "handrail"


def named(names: Iterable[str]) -> str:
    """The first of these names, and how many more there are."""
    known = list(names)
    more = len(known) - NAMED_MAX
    return ", ".join(known[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def fixed(text: str) -> Wording:
    """A sentence that is always the same."""
    return lambda _event, _entry, _names: EventWords(text)


def worded(text: str, *, words: str = "") -> Wording:
    """A sentence with `{who}` and `{step}`; `words` is the field that has somebody's own words."""

    def tell(event: Any, entry: Entry, names: StepNames) -> EventWords:
        facts = {"who": somebody(entry), "step": names.quoted(getattr(event, "step", None) or "")}
        filled = text
        for name, value in facts.items():  # not by str.format: a step's name may hold braces
            filled = filled.replace("{" + name + "}", value)
        return EventWords(filled, words=getattr(event, words) if words else "")

    return tell


def started(event: RunStarted, entry: Entry, _names: StepNames) -> EventWords:
    """The start of a run, with the first of its inputs."""
    first = list(event.inputs.items())[:INPUTS_SHOWN]
    facts = {name: _short(value) for name, value in first}
    return EventWords(f"{somebody(entry)} started {event.workflow}", words=event.goal, facts=facts)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else canonical_bytes(value).decode()
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[:VALUE_LENGTH_MAX]}…"


def failed(event: StepFailed | UndoFailed, _entry: Entry, names: StepNames) -> EventWords:
    """A step, or its undo, that failed permanently: in the tool's own words."""
    said, code = names.code(event)
    what = f"The undo of {names.quoted(event.step)}" if isinstance(event, UndoFailed) else names.quoted(event.step)
    return EventWords(f"{what} failed permanently", words=said, facts={"code": code})


def refused(event: OutputRefused, entry: Entry, names: StepNames) -> EventWords:
    """An output that failed its checks."""
    found = [str(one.get("message", "")) for one in event.findings]
    more = len(found) - FINDINGS_SHOWN
    words = "; ".join(found[:FINDINGS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    rules = ", ".join(dict.fromkeys(str(one.get("rule", "")) for one in event.findings if one.get("rule")))
    step = names.quoted(event.step)
    what = f"The result of {step}" if event.output is not None else f"The output of {somebody(entry)} for {step}"
    how = "could not be checked" if event.unchecked else "was refused"
    return EventWords(
        f"{what} {how}, {plural(len(found), 'finding')}", words=words, facts={"checks": rules} if rules else {}
    )


def requested(event: ApprovalRequested, _entry: Entry, names: StepNames) -> EventWords:
    """A question to a person."""
    facts = {"digest": event.digest}
    if event.by:
        facts["for"] = ", ".join(event.by)
    ahead = len(event.effects) + event.unshown
    if ahead:
        facts["lets start"] = names.listed(one.step for one in event.effects) + (
            f" ({plural(ahead, 'step')})" if ahead > 1 else ""
        )
    return EventWords(f"A person is asked about {names.quoted(event.step)}", words=event.text, facts=facts)
