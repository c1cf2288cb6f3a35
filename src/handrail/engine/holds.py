"""Holds: which calls of a run may start now, and why others have to wait: for a limit, or for a server's breaker.

Async. The limits are throttle.py's, the breakers breakers.py's; this is one run's share of both."""

from __future__ import annotations

from handrail.domain.agenda import Agenda
from handrail.domain.path import UNDO
from handrail.domain.status import RUN_WORKING
from handrail.engine.attempt import Attempt, AttemptServices
from handrail.engine.throttle import Hold


class Holds:
    """The calls of one run that are held back, by step path; undos by path with `!undo`."""

    def __init__(self, means: AttemptServices, run_id: str) -> None:
        self.means = means
        self.run_id = run_id
        self.by_name: dict[str, Hold] = {}

    async def let_in(self, name: str, attempt: Attempt, *, now: int) -> bool:
        """Whether a call may start now; it then has its place in the throttle. Else it is noted why not."""
        hold = await self._hold(attempt, now)
        if hold is None:
            self.by_name.pop(name, None)
        else:
            self.by_name[name] = hold
        return hold is None

    async def _hold(self, attempt: Attempt, now: int) -> Hold | None:
        spec, server = attempt.tool.spec, attempt.server
        held = self.means.throttle.enter(self.run_id, attempt.run.priority, spec, now=now)
        if held is not None or not server:
            return held
        # Asked last: a breaker that lets a call through counts on that call being made.
        is_let_through = False
        try:
            until = await self.means.breakers.hold(server, now=now)
            is_let_through = until is None
        finally:
            if not is_let_through:
                self.means.throttle.leave(spec)
        return None if is_let_through else Hold(f"the circuit breaker of {server} is open", until, is_breaker=True)

    def drop_unwanted(self, agenda: Agenda) -> None:
        """Hold nothing back that is not to start any more."""
        if not self.by_name:
            return
        is_working, undos = agenda.run.status in RUN_WORKING, agenda.undos
        for name in list(self.by_name):
            path = name.removesuffix(UNDO)
            is_wanted = path in undos.ready or path in undos.under_way if name.endswith(UNDO) else path in agenda.ready
            if not is_working or not is_wanted:
                del self.by_name[name]

    def give_back(self) -> None:
        """Pass on the turns that there was no use for."""
        if self.by_name:
            self.means.throttle.give_back(self.run_id)
        else:
            self.means.throttle.forget(self.run_id)

    def dues(self) -> list[int]:
        """The times at which calls that are held back may be tried again."""
        return [hold.due for hold in self.by_name.values() if hold.due is not None]
