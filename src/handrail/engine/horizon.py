"""The horizon: the outlooks of runs that somebody looks at again and again, kept up event by event.

So that a look at a long run costs no more than one at a short run. What an outlook is, is outlook.py's word."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from handrail.domain.agenda import Agenda
from handrail.domain.definition import Definition
from handrail.domain.run import Run
from handrail.engine.dispatch import Dispatch
from handrail.engine.outlook import Outlook, outlook_by, outlook_of

RUNS_KEPT: Final = 50
TOLD_MAX: Final = 10_000


@dataclass
class _Kept:
    """The agenda of a run as of one event, and the steps that have changed since, each with its last event."""

    n: int
    agenda: Agenda
    changed: dict[str, int] = field(default_factory=dict)


@dataclass
class Horizon:
    """Looks ahead in runs that dispatch knows."""

    dispatch: Dispatch
    _kept: OrderedDict[str, _Kept] = field(default_factory=OrderedDict)
    _told: OrderedDict[str, int] = field(default_factory=OrderedDict)
    """The last event of each run that dispatch has told of."""

    def __post_init__(self) -> None:
        self.dispatch.watchers.append(self._notice)

    async def look(self, run_id: str, *, now: int) -> tuple[Run, Definition, Outlook]:
        """A run as it stands, its definition, and what it could do next."""
        run = await self.dispatch.current(run_id)
        definition = await self.dispatch.definition(run.definition)
        return run, definition, self.outlook(run, definition, now=now)

    def outlook(self, run: Run, definition: Definition, *, now: int) -> Outlook:
        """The outlook of a run that dispatch has just told."""
        kept = self._kept.get(run.id)
        if (kept is not None and kept.n > run.n) or (kept is None and self._told.get(run.id, 0) > run.n):
            # Somebody has looked further meanwhile, or was told of more: what is kept must miss nothing of that.
            return outlook_of(run, definition, now=now)
        if kept is None:
            kept = _Kept(run.n, Agenda(definition, run))
        elif kept.n < run.n:
            kept.agenda.update(run, kept.changed)
            kept.n = run.n
        # Whoever looks may be behind what was told meanwhile: that is still to be taken in.
        kept.changed = {path: n for path, n in kept.changed.items() if n > run.n}
        outlook, is_lasting = outlook_by(kept.agenda, run, now=now)
        if is_lasting:
            self._kept[run.id] = kept
            self._kept.move_to_end(run.id)
            while len(self._kept) > RUNS_KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.pop(run.id, None)
        return outlook

    def _notice(self, run: Run, steps: Collection[str] | None) -> None:
        self._told[run.id] = max(run.n, self._told.get(run.id, 0))
        while len(self._told) > TOLD_MAX:
            self._told.popitem(last=False)
        if steps is None:
            self._kept.pop(run.id, None)
        elif run.id in self._kept:
            self._kept[run.id].changed.update(dict.fromkeys(steps, run.n))
