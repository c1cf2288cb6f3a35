"""The worker: executes the runs of a project, and takes over those that no other worker executes.

Async. It holds the leases and has one conductor for each active run; runs that wait for an agent or a person cost
nothing. A run that fails to execute pauses and is retried: it never stops the others."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from msgspec.structs import replace

from handrail.domain.definition.model import Definition
from handrail.domain.definition.tool_pin import pins_of, texts_of
from handrail.domain.definition.work_items import tools_in
from handrail.domain.errors import Conflict, HandrailError, OtherProject
from handrail.domain.instant import instant_text
from handrail.domain.journal.event import Mode
from handrail.domain.run.command import StartRun
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_FINAL, RUN_WORKING
from handrail.domain.scheduling.step_start import InputCheck
from handrail.engine.clock import Clock
from handrail.engine.dispatch import PLAIN_START, Dispatch
from handrail.engine.journal import FAR_BEHIND, Archive
from handrail.engine.reading.agenda_cache import AgendaCache
from handrail.engine.reading.step_view import NOTHING, LiveState, PostponedView, Why
from handrail.engine.running.attempt import AttemptServices, ResultJudge, SchemaCheck
from handrail.engine.running.breakers import Breakers
from handrail.engine.running.conductor import Conductor
from handrail.engine.running.lease import Lease, LeaseHolder, Leases
from handrail.engine.running.throttle import CALLS_MAX, Postponed, Throttle
from handrail.engine.tool import Toolbox

POLL_S: Final = 0.2
"""How often a worker checks for what others have written."""
CHECK_S: Final = 0.5
"""How often it checks which runs have no worker, if nothing was written."""
LEASE_S_DEFAULT: Final = 10.0
PICK_UP_AT_ONCE: Final = 100
GRACE_S: Final = 5.0
GONE: Final = float("-inf")
"""`since_s` of an owner whose process is gone: longer ago than any lease lasts."""

log = logging.getLogger(__name__)


class WorkerStore(Leases, Archive, Protocol):
    """What a worker needs of a store besides the journal itself."""


class OwnerPresence(Protocol):
    """Knows whether the process of an owner is alive on this machine."""

    def is_alive(self, owner: str) -> bool:
        """False only if it is certain that the process is gone."""
        ...


@dataclass(frozen=True)
class WorkerSettings:
    """The settings of a worker: its name, clock, checks, length of a lease, and number of parallel calls."""

    owner: str
    actor: str
    clock: Clock
    check: InputCheck
    fits: SchemaCheck
    judge: ResultJudge | None = None
    lease_s: float = LEASE_S_DEFAULT
    calls_max: int = CALLS_MAX
    picks_up: bool = True
    """Whether it also takes over runs that it was not asked to execute."""


@dataclass
class SeenOwner:
    """Since when another owner's heartbeat has not changed, and when its process was last checked."""

    beat: int
    since_s: float
    checked_s: float = float("-inf")


@dataclass
class Worker:
    """Executes runs."""

    dispatch: Dispatch
    store: WorkerStore
    toolbox: Toolbox
    presence: OwnerPresence
    settings: WorkerSettings
    conductors: dict[str, Conductor] = field(default_factory=dict)
    agenda_cache: AgendaCache = field(init=False)
    _parts: AttemptServices = field(init=False)
    _parked: dict[str, int] = field(default_factory=dict)
    """Runs that wait for an agent or a person, with the last event that was seen."""
    _leaving: dict[str, Conductor] = field(default_factory=dict)
    """Conductors that have lost their run but still have calls in progress."""
    _wanted: set[str] = field(default_factory=set)
    _released: list[Lease] = field(default_factory=list)
    _owners: dict[str, SeenOwner] = field(default_factory=dict)
    _waiters: dict[str, list[asyncio.Future[Run]]] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _poke: asyncio.Event = field(default_factory=asyncio.Event)
    _seen: int = 0
    _starting: int = 0
    _adopting: set[str] = field(default_factory=set)
    _checked_s: float = float("-inf")

    def __post_init__(self) -> None:
        settings = self.settings
        self.agenda_cache = AgendaCache(self.dispatch)
        self._parts = AttemptServices(
            dispatch=self.dispatch,
            toolbox=self.toolbox,
            throttle=Throttle(self._wake, calls_max=settings.calls_max),
            breakers=Breakers(
                self.dispatch.journal, self.dispatch.record_writer, settings.actor, self.dispatch.project
            ),
            clock=settings.clock,
            entropy=self.dispatch.record_writer.entropy,
            actor=settings.actor,
            check=settings.check,
            fits=settings.fits,
            judge=settings.judge,
        )

    # --- lifecycle -----------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start working."""
        await self.store.beat(self.settings.owner)
        self._seen, _ = await self.store.heads(after=FAR_BEHIND)
        self.dispatch.watchers.append(self._notice)
        loop = asyncio.get_running_loop()
        # Three heartbeats within a lease, so that one or two may come late.
        beats = self._repeat(self._beat, asyncio.Event(), self.settings.lease_s / 3)
        polls = self._repeat(self._poll, self._poke, POLL_S)
        self._tasks += [loop.create_task(beats), loop.create_task(polls)]

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Start nothing more, let calls in progress end, and release all leases."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._notice in self.dispatch.watchers:
            self.dispatch.watchers.remove(self._notice)
        going = [*self.conductors.values(), *self._leaving.values()]
        await asyncio.gather(*(conductor.stop(grace_s) for conductor in going))
        with contextlib.suppress(HandrailError):  # without it, the next worker sees that this process is gone
            await self.store.retire(self.settings.owner)

    # --- called by others ---------------------------------------------------------------------------

    async def start(
        self, definition: Definition, inputs: Mapping[str, Any], *, actor: str, ask: StartRun = PLAIN_START
    ) -> Run:
        """Start a run and execute it. It is synced to disk and continues whether or not the caller stays connected.

        If a run was started with the same key before, that run is returned."""
        if known := await self.dispatch.started_under_key(ask):
            return known
        owner = self.settings.owner if ask.mode is Mode.RUN else ""
        cards = await self.toolbox.connect(tools_in(definition)) if owner else {}
        ask = replace(ask, pins={**pins_of(cards), **ask.pins})  # pins of a saved plan are older and take precedence
        self._starting += 1
        try:
            try:
                texts = texts_of(cards)
                run = await self.dispatch.start(definition, inputs, actor=actor, ask=ask, owner=owner, texts=texts)
            except Conflict:
                if known := await self.dispatch.started_under_key(ask):
                    return known  # another caller with the same key was first
                raise
            if owner:
                self._conduct(definition, run, Lease(run.id, owner))
        finally:
            self._starting -= 1
        return run

    async def take(self, run_id: str) -> bool:
        """Execute a run unless another worker does; whether this one does, or has done all there was to do."""
        if run_id in self.conductors:
            return True
        lease_holder = await self.store.lease_holder(run_id, project=self.dispatch.project)
        if lease_holder is None or not await self._is_free(lease_holder):
            return False
        return run_id in await self._claim([lease_holder])

    def within(self, run_id: str) -> LiveState:
        """What only this process knows of a run: postponed calls, and the progress of calls."""
        conductor = self.conductors.get(run_id)
        if conductor is None:
            return NOTHING
        postponed = {path: limit_of(postponed) for path, postponed in conductor.postponements.by_name.items()}
        return LiveState(postponed, conductor.progress)

    async def settled(self, run_id: str) -> Run:
        """Wait until a run has ended or waits for an agent or a person, and return it."""
        while True:
            conductor = self.conductors.get(run_id)
            run = conductor.run if conductor is not None else await self.dispatch.current(run_id)
            if self._is_settled(run):
                return run
            waiter: asyncio.Future[Run] = asyncio.get_running_loop().create_future()
            self._waiters.setdefault(run_id, []).append(waiter)
            await asyncio.wait({waiter}, timeout=CHECK_S)
            if waiter.done() and self._is_settled(waiter.result()):
                return waiter.result()

    # --- conductors ---------------------------------------------------------------------------------

    def _conduct(self, definition: Definition, run: Run, lease: Lease) -> None:
        self._wanted.discard(run.id)
        self._parked.pop(run.id, None)
        conductor = Conductor(
            self._parts, definition, run, lease, agenda_cache=self.agenda_cache, on_idle=self._went_idle
        )
        self.conductors[run.id] = conductor
        conductor.wake()

    def _notice(self, run: Run, steps: Collection[str] | None, _after: int) -> None:
        """React to a run that has changed, or was read again."""
        if run.project != self.dispatch.project and run.id not in self.conductors:
            return  # only read here: it is executed, and what was kept for its undo is removed, by its own project
        conductor = self.conductors.get(run.id)
        if steps is None:
            if conductor is not None and conductor.run.n < run.n:
                conductor.look_again()
            return
        if conductor is not None:
            conductor.notice(run)
        elif run.status in RUN_WORKING and run.mode is Mode.RUN and run.n > 1:
            self._want(run.id)
        if run.status not in RUN_WORKING:
            self._parked.pop(run.id, None)
        if run.status in RUN_FINAL:
            self._tasks.append(asyncio.get_running_loop().create_task(self._forget(run.id)))
            self._tasks = [task for task in self._tasks if not task.done()]

    def _want(self, run_id: str) -> None:
        self._wanted.add(run_id)
        self._poke.set()

    async def _forget(self, run_id: str) -> None:
        try:
            await self.toolbox.forget(run_id)
        except OSError as error:
            log.warning("the data kept to undo run %s can't be removed: %s", run_id, error)

    def _wake(self, run_id: str) -> None:
        if run_id in self.conductors:
            self.conductors[run_id].wake()
        else:
            self._parts.throttle.forget(run_id)

    def _went_idle(self, conductor: Conductor) -> None:
        """React to a conductor that has nothing to do for now, or has lost its run."""
        run = conductor.run
        if (conductor.is_lost or conductor.is_idle) and self.conductors.get(run.id) is conductor:
            del self.conductors[run.id]
            if conductor.calls:
                self._leaving[run.id] = conductor
            if run.project != self.dispatch.project:  # adopted by another project, whose workers can take it now
                self._released.append(conductor.lease)
            elif run.status in RUN_WORKING and not conductor.is_lost:
                self._parked[run.id] = run.n
                self._released.append(conductor.lease)
        if conductor.is_lost or conductor.is_settled:
            self._notify_settled(run)

    def _is_settled(self, run: Run) -> bool:
        if run.status not in RUN_WORKING:
            return True
        conductor = self.conductors.get(run.id)
        if conductor is not None:
            return conductor.run.n == run.n and conductor.is_settled
        return self._parked.get(run.id) == run.n

    # --- polling -----------------------------------------------------------------------------

    async def _repeat(self, do: Callable[[], Awaitable[None]], poke: asyncio.Event, every_s: float) -> None:
        """Do something at intervals, or at once when poked."""
        while True:
            poke.clear()
            try:
                await do()
            except HandrailError as error:
                log.warning("%s; retrying", error)
            except Exception:  # whatever goes wrong, the worker continues
                log.exception("unexpected error in the worker; retrying")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(every_s):  # wait_for loses a cancellation that arrives together with a poke
                    await poke.wait()

    async def _beat(self) -> None:
        await self.store.beat(self.settings.owner)

    async def _poll(self) -> None:
        self._leaving = {run_id: one for run_id, one in self._leaving.items() if one.calls}
        has_news = await self._read_news()
        if self._released:
            released, self._released = self._released, []
            await self.store.release(released)
        for run_id in sorted(self._wanted):
            self._wanted.discard(run_id)  # one by one: if one raises, the others are still wanted
            if not await self._is_others_turn(run_id):
                await self.take(run_id)
        now_s = asyncio.get_running_loop().time()
        if self.settings.picks_up and (has_news or now_s - self._checked_s >= CHECK_S):
            self._checked_s = now_s
            await self._pick_up()

    async def _is_others_turn(self, run_id: str) -> bool:
        """Whether a run needs no worker now: it waits for an agent or a person, and for no timer."""
        if run_id in self.conductors:
            return False
        run, _, prospect = await self.agenda_cache.look(run_id, now=self.settings.clock())
        if run.status not in RUN_WORKING:
            return True
        if not prospect.is_settled or run.deadline is not None or prospect.agenda.next_due is not None:
            return False
        self._parked[run_id] = run.n
        self._notify_settled(run)
        return True

    def _notify_settled(self, run: Run) -> None:
        for waiter in self._waiters.pop(run.id, ()):
            if not waiter.done():
                waiter.set_result(run)

    async def _read_news(self) -> bool:
        """Let the conductors see what others have written; returns whether anything was."""
        last, heads = await self.store.heads(after=self._seen or FAR_BEHIND)  # 0 would mean all runs of the store
        has_news = last != self._seen
        self._seen = last
        for head in heads:
            conductor = self.conductors.get(head.stream)
            if conductor is not None and conductor.run.n < head.n:
                run = await self.dispatch.current(head.stream)
                if conductor.run.n < run.n:
                    conductor.look_again()
        return has_news

    async def _pick_up(self) -> None:
        """Take over the runs that have no worker."""
        after = ""
        while lease_holders := await self.store.lease_holders(after=after, project=self.dispatch.project):
            after = lease_holders[-1].run
            free = [lease_holder for lease_holder in lease_holders if await self._is_wanted(lease_holder)]
            for start in range(0, len(free), PICK_UP_AT_ONCE):
                await self._claim(free[start : start + PICK_UP_AT_ONCE])
        for owner in [owner for owner, seen in self._owners.items() if seen.since_s == GONE]:
            await self.store.retire(owner)
            del self._owners[owner]

    async def _is_wanted(self, lease_holder: LeaseHolder) -> bool:
        conductor = self.conductors.get(lease_holder.run)
        if conductor is not None and lease_holder.epoch > conductor.lease.epoch:
            conductor.lose()  # another worker took it over, and may be gone meanwhile
        if lease_holder.run in self.conductors or self._parked.get(lease_holder.run) == lease_holder.n:
            return False
        return await self._is_free(lease_holder)

    async def _is_free(self, lease_holder: LeaseHolder) -> bool:
        """Whether no worker executes the run: the lease is free, or its owner is gone or silent for too long."""
        owner, leaving = lease_holder.owner, self._leaving.get(lease_holder.run)
        if leaving is not None and leaving.calls:
            return False  # it was lost here, and its calls have not ended yet
        self._leaving.pop(lease_holder.run, None)
        if owner == self.settings.owner:
            return not self._starting  # else it may be the run that is being started here right now
        if not owner:
            return True
        now_s = asyncio.get_running_loop().time()
        seen = self._owners.get(owner)
        if seen is None or seen.beat != lease_holder.beat:
            seen = self._owners[owner] = SeenOwner(lease_holder.beat, now_s)
        if now_s - seen.checked_s >= CHECK_S:
            seen.checked_s = now_s
            if not await asyncio.to_thread(self.presence.is_alive, owner):
                seen.since_s = GONE
        return now_s - seen.since_s >= self.settings.lease_s

    async def _claim(self, lease_holders: Sequence[LeaseHolder]) -> set[str]:
        """Take runs and start to execute them; returns those that could be taken."""
        # While a run is being taken, it looks like our own run without a conductor: it must not be taken twice.
        fresh = [one for one in lease_holders if one.run not in self._adopting and one.run not in self.conductors]
        taken = {lease_holder.run for lease_holder in fresh}
        self._adopting |= taken
        try:
            leases = await self.store.claim(self.settings.owner, fresh) if fresh else []
            await self._adopt_all(leases)
        finally:
            self._adopting -= taken
        return {lease.run for lease in leases}

    async def _adopt_all(self, leases: Sequence[Lease]) -> None:
        answers = await asyncio.gather(*map(self._adopt, leases), return_exceptions=True)
        for lease, answer in zip(leases, answers, strict=True):
            if isinstance(answer, HandrailError):
                log.warning("run %s can't be taken over: %s", lease.run, answer)
                self._parked[lease.run] = -1
            elif isinstance(answer, BaseException):
                raise answer

    async def _adopt(self, lease: Lease) -> None:
        try:
            run = await self.dispatch.own(lease.run)
        except OtherProject:  # another project adopted it after it was listed
            await self.store.release([lease])
            raise
        definition = await self.dispatch.definition(run.definition)
        self._conduct(definition, run, lease)


def limit_of(postponed: Postponed) -> PostponedView:
    """Why a step is postponed, as readers see it."""
    kind = Why.BREAKER if postponed.is_breaker else Why.LIMIT
    return PostponedView(
        kind=kind, until=instant_text(postponed.due) if postponed.due is not None else "", reason=postponed.reason
    )
