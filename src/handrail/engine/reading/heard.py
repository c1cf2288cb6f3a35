"""Who was heard last: agents, people and clients, from the journal and from the sessions that are open now.

Async only because the journal is read. A client that only reads leaves nothing in the journal; whether it is connected
is known only for sessions of this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.instant import instant_text
from handrail.domain.journal.event import RUN_PREFIX
from handrail.domain.policy.actor import ActorKind, kind_of
from handrail.engine.reading.ledger import Ledger, Query
from handrail.engine.reading.step_view import Shown

LOOKED_AT: Final = 5_000
"""How many of the latest events are looked at."""
HEARD_KINDS: Final = frozenset({ActorKind.AGENT, ActorKind.PERSON})


class LiveSession(Struct, frozen=True, kw_only=True):
    """A client that is connected to this process."""

    actor: str
    heard: int
    """When its last request came."""


class Heard(Shown, frozen=True):
    """Somebody who was heard, and when last."""

    actor: str
    last: str
    is_connected: bool = False
    """Whether a session of it is open in this process; without one it is not known."""
    run: str = ""
    """The run of its latest event, with the step and the kind."""
    step: str = ""
    kind: str = ""
    n: int = 0
    events: int = 0
    """How many of the latest events are its own."""


@dataclass(frozen=True)
class HeardReader:
    """Reads who was heard last."""

    ledger: Ledger
    project: str | None = None
    """Of which project; None for all."""

    async def all(self, sessions: Sequence[LiveSession] = ()) -> tuple[Heard, ...]:
        """Everybody in the latest events or with an open session, the latest first."""
        found: dict[str, Heard] = {}
        last: dict[str, int] = {}
        for hit in (await self.ledger.query(Query(limit=LOOKED_AT, project=self.project))).hits:
            record = hit.record
            if kind_of(record.actor) not in HEARD_KINDS:
                continue
            known = found.get(record.actor)
            if known is not None:
                found[record.actor] = replace(known, events=known.events + 1)
                continue
            last[record.actor] = record.at
            found[record.actor] = Heard(
                actor=record.actor,
                last=instant_text(record.at),
                run=record.stream if record.stream.startswith(RUN_PREFIX) else "",
                step=record.step or "",
                kind=record.kind,
                n=record.n,
                events=1,
            )
        for session in sessions:
            at = max(last.get(session.actor, 0), session.heard)
            known = found.get(session.actor, Heard(actor=session.actor, last=""))
            found[session.actor] = replace(known, last=instant_text(at), is_connected=True)
            last[session.actor] = at
        return tuple(sorted(found.values(), key=lambda one: (-last[one.actor], one.actor)))
