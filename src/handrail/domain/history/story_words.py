"""The words of a story: who acted, which steps, and the words for an event. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from handrail.domain.journal.event import ApprovalRequested, Entry, OutputRefused
from handrail.domain.plural import plural
from handrail.domain.policy.actor import ActorKind, kind_of, name_of

NAMED_MAX: Final = 5
FINDINGS_SHOWN: Final = 3


class EventWords(Struct, frozen=True):
    """The words for one event."""

    text: str
    words: str = ""
    facts: Mapping[str, str] = {}


def somebody(entry: Entry) -> str:
    """Who acted."""
    return actor_name(entry.actor)


def actor_name(actor: str) -> str:
    """The name of an actor as people say it; the engine is handrail."""
    return name_of(actor) if kind_of(actor) in {ActorKind.PERSON, ActorKind.AGENT} else "handrail"


def named(names: Iterable[str]) -> str:
    """The first of these names, and how many more there are."""
    known = list(names)
    more = len(known) - NAMED_MAX
    return ", ".join(known[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def fixed(text: str) -> Callable[[Any, Entry], EventWords]:
    """A sentence that is always the same."""
    return lambda _event, _entry: EventWords(text)


def worded(text: str, *, words: str = "") -> Callable[[Any, Entry], EventWords]:
    """A sentence with `{who}`, `{step}` and `{category}`; `words` is the field that has somebody's own words."""

    def tell(event: Any, entry: Entry) -> EventWords:
        facts = {"who": somebody(entry), "step": getattr(event, "step", ""), "category": getattr(event, "category", "")}
        filled = text
        for name, value in facts.items():  # not by str.format: a step's name may hold braces
            filled = filled.replace("{" + name + "}", str(value))
        return EventWords(filled, words=getattr(event, words) if words else "")

    return tell


def refused(event: OutputRefused, entry: Entry) -> EventWords:
    """An output that failed its checks."""
    found = [str(one.get("message", "")) for one in event.findings]
    more = len(found) - FINDINGS_SHOWN
    words = "; ".join(found[:FINDINGS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    rules = ", ".join(dict.fromkeys(str(one.get("rule", "")) for one in event.findings if one.get("rule")))
    what = (
        f"The result of {event.step}"
        if event.output is not None
        else f"The output of {somebody(entry)} for {event.step}"
    )
    return EventWords(
        f"{what} was refused, {plural(len(found), 'finding')}", words=words, facts={"checks": rules} if rules else {}
    )


def requested(event: ApprovalRequested, _entry: Entry) -> EventWords:
    """A question to a person."""
    facts = {"digest": event.digest}
    if event.by:
        facts["for"] = ", ".join(event.by)
    ahead = len(event.effects) + event.unshown
    if ahead:
        facts["lets start"] = f"{named(one.step for one in event.effects)}" + (
            f" ({plural(ahead, 'step')})" if ahead > 1 else ""
        )
    return EventWords(f"A person is asked about {event.step}", words=event.text, facts=facts)
