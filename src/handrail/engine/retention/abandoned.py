"""Abandoned runs: open runs that wait for an agent that never comes. Somebody is asked first, then they are ended.

Async; uses dispatch. Asking is a pause with the question as its reason: lists show it, and resuming the run is the
answer. When a run counts as abandoned is decided in domain/retention/rules.py; how it ends, its plan says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

from msgspec import Struct

from handrail.domain.definition.model import Definition, OnFailure
from handrail.domain.errors import HandrailError
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import RunPaused
from handrail.domain.journal.projection import RunRow
from handrail.domain.plural import plural
from handrail.domain.retention.rules import Abandonment, RetentionRules, abandonment_of
from handrail.domain.run.command import CancelRun, Command, PauseRun, StartCompensation
from handrail.domain.run.status import RUN_OPEN
from handrail.engine.dispatch import Dispatch
from handrail.engine.proving.projection_repair import WholeStore
from handrail.engine.reading.prospect import prospect_of
from handrail.engine.stream_pages import PAGE

HANDRAIL: Final = "handrail"
ASKED: Final = "no agent has worked on it for "
DAY_MS: Final = 86_400_000


class AbandonedRun(Struct, frozen=True):
    """An open run without an agent, and what happens with it."""

    run: str
    workflow: str
    project: str
    ending: Abandonment
    """Whether somebody is asked now, or it is ended."""
    how: str
    """What happens: it is paused, cancelled or undone."""
    silent_ms: int
    reason: str = ""
    """Why it could not be done, if it was tried."""


async def abandoned_runs(
    store: WholeStore, dispatch_of: Callable[[str], Dispatch], rules: RetentionRules, *, now: int
) -> list[AbandonedRun]:
    """The open runs with which something happens now, by id."""
    found = []
    async for row in _silent(store, rules, now):
        dispatch = dispatch_of(row.project)
        definition = await dispatch.definition(row.definition)
        was_asked = await _was_asked(store, row)
        waits = not was_asked and await _waits_for_agent(dispatch, row, definition, now)
        ending = abandonment_of(rules, row, now=now, waits_for_agent=waits, was_asked=was_asked)
        if ending is not Abandonment.STAY:
            how = "pause" if ending is Abandonment.ASK else _how(definition)
            found.append(AbandonedRun(row.id, row.workflow, row.project, ending, how, now - row.updated))
    return found


async def settle(abandoned: AbandonedRun, dispatch: Dispatch, rules: RetentionRules) -> None:
    """Ask about an abandoned run, or end it as its plan says."""
    days = plural(abandoned.silent_ms // DAY_MS, "day")
    command: Command
    if abandoned.ending is Abandonment.ASK:
        end = _how(await dispatch.definition((await dispatch.current(abandoned.run)).definition))
        verb = "undone" if end == "compensate" else "cancelled"
        command = PauseRun(
            reason=f"{ASKED}{days}: resume it within {rules.answer_within} to keep it; if not, it is {verb}"
        )
    else:
        reason = f"abandoned: no answer within {rules.answer_within}"
        command = StartCompensation(reason=reason) if abandoned.how == "compensate" else CancelRun(reason=reason)
    await dispatch.grant(abandoned.run, command, actor=HANDRAIL)


async def _silent(store: WholeStore, rules: RetentionRules, now: int) -> AsyncIterator[RunRow]:
    """Open runs in which nothing has happened for so long that they may be abandoned: a look at their rows only."""
    after, wanted = "", sorted(status.value for status in RUN_OPEN)
    while rows := await store.runs(status=wanted, after=after, limit=PAGE):
        for row in rows:
            at_worst = (
                abandonment_of(rules, row, now=now, waits_for_agent=not was_asked, was_asked=was_asked)
                for was_asked in (True, False)
            )
            if any(ending is not Abandonment.STAY for ending in at_worst):
                yield row
        after = rows[-1].id


async def _was_asked(store: WholeStore, row: RunRow) -> bool:
    """Whether the last that happened is our own question."""
    # By the last event, not by the pause: any other event since then is a sign of life.
    last = await store.read(row.id, after=row.n - 1, limit=1)
    if not last or last[0].actor != HANDRAIL:
        return False
    event = entry_of(last[0]).event
    return isinstance(event, RunPaused) and event.reason.startswith(ASKED)


async def _waits_for_agent(dispatch: Dispatch, row: RunRow, definition: Definition, now: int) -> bool:
    """Whether an agent alone can move the run on."""
    try:
        prospect = prospect_of(await dispatch.current(row.id), definition, now=now)
    except HandrailError:
        return False  # what can't be read is not ended either: `journal verify` is about that
    return bool(prospect.for_agent) and prospect.is_settled and not prospect.asked and not prospect.undecided


def _how(definition: Definition) -> str:
    return "compensate" if definition.on_failure is OnFailure.COMPENSATE else "cancel"
