"""Postponements: which calls of a run may start now, and why others wait: for a limit, a breaker, another node.

Async. Limits are counted in throttle.py, circuit breakers are in breakers.py; this applies both to one run."""

from __future__ import annotations

from handrail.domain.fleet.label import Needs, in_words, needs_of
from handrail.domain.instant import instant_text
from handrail.domain.run.status import RUN_WORKING
from handrail.domain.run.step_path import UNDO
from handrail.domain.scheduling.agenda import Agenda
from handrail.engine.reading.step_view import PostponedView, Why
from handrail.engine.running.calls.attempt import Attempt, AttemptServices
from handrail.engine.running.calls.throttle import Postponed


class Postponements:
    """The postponed calls of one run, by step path; undos by path with `!undo`."""

    def __init__(self, parts: AttemptServices, run_id: str) -> None:
        self.parts = parts
        self.run_id = run_id
        self.by_name: dict[str, Postponed] = {}
        self._since: dict[str, int] = {}
        """When each of them was postponed first."""

    @property
    def needs(self) -> Needs:
        """What another node must have to go on; empty if any of the calls can start here sooner or later."""
        postponed = list(self.by_name.values())
        if not all(one.needs for one in postponed):
            return ""
        return needs_of(alternative.split(",") for one in postponed for alternative in one.needs.split("|"))

    def leave_to_another(self, name: str, needs: Needs) -> None:
        """Note that only another node can make a call."""
        self.by_name[name] = Postponed(f"waits for a node with {in_words(needs)}", needs=needs)

    async def let_in(self, name: str, attempt: Attempt, *, now: int) -> bool:
        """Whether a call may start now. If so, it has taken its place in the throttle; if not, the reason is noted."""
        postponed = await self._postponed(attempt, now)
        if postponed is None:
            self.by_name.pop(name, None)
            since = self._since.pop(name, now) if self._since else now
            self.parts.measures.waited((now - since) / 1_000)
        else:
            self.by_name[name] = postponed
            self._since.setdefault(name, now)
        return postponed is None

    async def _postponed(self, attempt: Attempt, now: int) -> Postponed | None:
        spec, server = attempt.tool.spec, attempt.server
        # From the cheapest question to the dearest: this process, the other nodes, the journal of the server.
        postponed = self.parts.throttle.enter(self.run_id, attempt.run.priority, spec, now=now)
        if postponed is not None:
            return postponed
        postponed = await self.parts.throttle.enter_fleet(spec, now=now)
        if postponed is not None or not server:
            return postponed
        # The breaker is asked last: once it lets a call through, it expects that call to be made.
        is_let_through = False
        try:
            until = await self.parts.breakers.open_until(server, now=now)
            is_let_through = until is None
        finally:
            # Also when reading the breaker failed: a place that is never left would be missing permanently.
            if not is_let_through:
                self.parts.throttle.leave(spec)
        return None if is_let_through else Postponed(f"the circuit breaker of {server} is open", until, is_breaker=True)

    def drop_unwanted(self, agenda: Agenda) -> None:
        """Forget postponed calls of steps that are not to start any more."""
        if not self.by_name:
            return
        is_working, undos = agenda.run.status in RUN_WORKING, agenda.undos
        for name in list(self.by_name):
            path = name.removesuffix(UNDO)
            is_wanted = path in undos.ready or path in undos.under_way if name.endswith(UNDO) else path in agenda.ready
            if not is_working or not is_wanted:
                del self.by_name[name]
                self._since.pop(name, None)

    def give_back(self) -> None:
        """Pass unused turns on to other runs."""
        if self.by_name:
            self.parts.throttle.give_back(self.run_id)
        else:
            self.parts.throttle.forget(self.run_id)

    def dues(self) -> list[int]:
        """The times at which postponed calls may be tried again."""
        return [postponed.due for postponed in self.by_name.values() if postponed.due is not None]


def limit_of(postponed: Postponed) -> PostponedView:
    """Why a step is postponed, as readers see it."""
    kind = Why.NODE if postponed.needs else Why.BREAKER if postponed.is_breaker else Why.LIMIT
    return PostponedView(
        kind=kind, until=instant_text(postponed.due) if postponed.due is not None else "", reason=postponed.reason
    )
