"""The agenda cache: one agenda for each run that is executed or read in this process, updated event by event.

Conductors and readers share it, so that reading a long run costs no more than a short one. Agendas are defined in
domain/scheduling/agenda.py; what readers see of them is in prospect.py."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, Protocol
from weakref import WeakValueDictionary

from handrail.domain.definition.model import Definition
from handrail.domain.metrics.cache_catalog import AGENDAS
from handrail.domain.run.state import Run
from handrail.domain.scheduling.agenda import Agenda
from handrail.engine.reading.prospect import Prospect, prospect_by
from handrail.engine.watching import Watcher
from handrail.foundation.bounded_cache import BoundedCache
from handrail.foundation.cache_use import use_of

RUNS_KEPT: Final = 50
"""How many agendas are kept for readers; those of conductors live as long as their conductors."""
USE: Final = use_of(AGENDAS)


class WatchedRuns(Protocol):
    """The source of runs: dispatch, or a store that is only read."""

    @property
    def watchers(self) -> list[Watcher]:
        """Called with every change of a run."""
        ...

    async def current(self, run_id: str) -> Run:
        """The current state of a run; NotFound if there is none."""
        ...

    async def definition(self, content_hash: str) -> Definition:
        """The definition with this content hash."""
        ...


@dataclass
class AgendaCache:
    """The agendas of runs, kept up to date with the reported events."""

    runs: WatchedRuns
    _agendas: WeakValueDictionary[str, Agenda] = field(default_factory=WeakValueDictionary)
    """All agendas in use: by a conductor, or by a recent reader."""
    _recent: BoundedCache[str, Agenda] = field(default_factory=lambda: USE.keeps(BoundedCache(RUNS_KEPT)))

    def __post_init__(self) -> None:
        self.runs.watchers.append(self._notice)

    async def look(self, run_id: str, *, now: int) -> tuple[Run, Definition, Prospect]:
        """The current state of a run, its definition, and what it can do next."""
        run = await self.runs.current(run_id)
        definition = await self.runs.definition(run.definition)
        return run, definition, self.prospect(run, definition, now=now)

    def prospect(self, run: Run, definition: Definition, *, now: int) -> Prospect:
        """What a run can do next from this state."""
        agenda = self.agenda(run, definition)
        if agenda.run.n > run.n:
            agenda = Agenda(definition, run)  # the run has moved on meanwhile: the shared agenda must not go back
        agenda.keep_up(now)
        return prospect_by(agenda)

    def agenda(self, run: Run, definition: Definition) -> Agenda:
        """The agenda of a run; of a later state if that has already been reported."""
        agenda = self._agendas.get(run.id)
        if agenda is None or agenda.run.n < run.n:
            with USE.making():
                return self.renewed(run, definition)
        USE.hit()
        return self._used(agenda)

    def renewed(self, run: Run, definition: Definition) -> Agenda:
        """A new agenda of a run, unless a later state has already been reported."""
        agenda = self._agendas.get(run.id)
        if agenda is None or agenda.run.n <= run.n:
            # The run may be older than what was reported while there was no agenda: the next report then has a gap,
            # and `_notice` drops this agenda.
            agenda = self._agendas[run.id] = Agenda(definition, run)
        return self._used(agenda)

    def _used(self, agenda: Agenda) -> Agenda:
        return self._recent.put(agenda.run.id, agenda)

    def _notice(self, run: Run, steps: Collection[str] | None, after: int) -> None:
        agenda = self._agendas.get(run.id)
        if agenda is None or run.n <= agenda.run.n:
            return
        if steps is None or agenda.run.n < after:
            # Events in between are missing, so this agenda can't be updated any more.
            del self._agendas[run.id]
            self._recent.pop(run.id)
        else:
            agenda.update(run, steps)
