"""The worker: executes the runs of a project, and takes over those that no other worker executes.

Async. It holds the leases and has one conductor for each active run; runs that wait for an agent or a person cost
nothing. A run that fails to execute pauses and is retried: it never stops the others."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from msgspec.structs import replace

from handrail.domain.definition.model import Definition
from handrail.domain.definition.tool_pin import pins_of, texts_of
from handrail.domain.definition.work_items import tools_in
from handrail.domain.errors import Conflict, HandrailError
from handrail.domain.journal.event import Mode
from handrail.domain.journal.mark import START, Mark
from handrail.domain.run.command import StartRun
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_FINAL, RUN_UNENDED, RUN_WORKING
from handrail.engine.dispatch import PLAIN_START, Dispatch
from handrail.engine.journal import Archive
from handrail.engine.pulse import Pulse
from handrail.engine.reading.agenda_cache import AgendaCache
from handrail.engine.reading.step_view import NOTHING, LiveState
from handrail.engine.running.alarm import repeat
from handrail.engine.running.calls.attempt import AttemptServices
from handrail.engine.running.calls.postponed_steps import limit_of
from handrail.engine.running.claiming import Claims
from handrail.engine.running.conductor import Conductor
from handrail.engine.running.host import Host, Reason, Rest
from handrail.engine.running.lease import Lease, LeaseHolder, Leases
from handrail.engine.running.own_place import OwnPlace
from handrail.engine.running.owners import CHECK_S, OwnerPresence, Owners
from handrail.engine.running.placing import SWEPT_MAX, Placing
from handrail.engine.running.resting import Resting
from handrail.engine.running.settled_waiters import SettledWaiters
from handrail.engine.running.stretch import Stretches
from handrail.engine.running.worker_settings import WorkerLoad, WorkerSettings, services_of
from handrail.engine.tool import Toolbox

POLL_S: Final = 0.2
"""How often a worker checks for what others have written."""
PICK_UP_AT_ONCE: Final = 100
GRACE_S: Final = 5.0

log = logging.getLogger(__name__)


class WorkerStore(Leases, Archive, Protocol):
    """What a worker needs of a store besides the journal itself."""


@dataclass
class Worker:
    """Executes runs."""

    dispatch: Dispatch
    store: WorkerStore
    toolbox: Toolbox
    presence: OwnerPresence
    settings: WorkerSettings
    host: Host | None = None
    """Places runs on nodes; without one, every worker takes what is free."""
    conductors: dict[str, Conductor] = field(default_factory=dict)
    is_closing: bool = False
    beats: Pulse = field(default_factory=Pulse)
    polls: Pulse = field(default_factory=Pulse)
    resting: Resting = field(init=False)
    agenda_cache: AgendaCache = field(init=False)
    _parts: AttemptServices = field(init=False)
    _place: OwnPlace = field(init=False)
    _parked: dict[str, int] = field(default_factory=dict)
    """Runs that wait for an agent or a person, with the last event that was seen."""
    _leaving: dict[str, Conductor] = field(default_factory=dict)
    """Conductors that have lost their run but still have calls in progress."""
    _wanted: set[str] = field(default_factory=set)
    _owners: Owners = field(init=False)
    _claims: Claims = field(init=False)
    _waiters: SettledWaiters = field(default_factory=SettledWaiters)
    _tasks: list[asyncio.Task[Any]] = field(default_factory=list)
    _poke: asyncio.Event = field(default_factory=asyncio.Event)
    _seen: Mark = START
    _deafen: Callable[[], None] = lambda: None
    _starting: int = 0
    _checked_s: float = float("-inf")
    _is_draining: bool = False
    _placing: Placing | None = None

    def __post_init__(self) -> None:
        settings = self.settings
        self._owners = Owners(self.presence, settings.lease_s)
        self._claims = Claims(self.store, settings.owner, self._adopt, self.conductors)
        self._place = OwnPlace(self.dispatch.project, settings.labels, settings.runs_on, settings.node)
        self.resting = Resting(self.store, settings.clock, self._want if self.host is None else None)
        if self.host is not None:
            stretches = Stretches(self, self.store, owner=settings.owner, project=self.dispatch.project)
            self._placing = Placing(self.host, self.dispatch, stretches.conduct, self.room)
        self.agenda_cache = AgendaCache(self.dispatch)
        self._parts = services_of(settings, self.dispatch, self.toolbox, self._wake)

    # --- lifecycle -----------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start working."""
        await self._beat()
        self._seen = await self.store.end()
        if self.settings.node is not None:
            await self.settings.node.join(self)  # before anything is taken: it may be paused
        self.dispatch.watchers.append(self._notice)
        self._deafen = self.store.listen(self._poke.set)
        loop = asyncio.get_running_loop()
        # Three heartbeats within a lease, so that one or two may come late.
        beats = repeat(self._beat, asyncio.Event(), self.settings.lease_s / 3)
        polls = repeat(lambda: self.polls.around(self._poll()), self._poke, POLL_S)
        self._tasks += [loop.create_task(beats), loop.create_task(polls)]
        if self._placing is not None and self._place.is_right:
            self._placing.open()

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Start nothing more, let calls in progress end, and release all leases."""
        self.is_closing = True
        self._deafen()
        placing = asyncio.create_task(self._placing.close()) if self._placing is not None else None
        self.resting.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._claims.close()
        if self._notice in self.dispatch.watchers:
            self.dispatch.watchers.remove(self._notice)
        going = [*self.conductors.values(), *self._leaving.values()]
        await asyncio.gather(*(conductor.stop(grace_s) for conductor in going))
        if self.settings.limits is not None:
            self.settings.limits.close()
        with contextlib.suppress(HandrailError):  # without it, the next worker sees that this process is gone
            await self.store.retire(self.settings.owner)
        self.resting.hand_over_all()
        if placing is not None:
            await placing
        if self.settings.node is not None:
            await self.settings.node.leave(self)

    async def drain(self, grace_s: float) -> None:
        """Hand every run over as soon as its calls in progress have ended, at the latest after the grace period.

        The node must take nothing more (`LocalNode.drain`); the worker beats until it is closed."""
        self._is_draining = True
        await asyncio.gather(*(self._hand_on(conductor, grace_s) for conductor in list(self.conductors.values())))

    async def _hand_on(self, conductor: Conductor, grace_s: float) -> None:
        await conductor.stop(grace_s)
        await self.store.release([conductor.lease])
        self.resting.notify(Rest(run=conductor.lease.run, why=Reason.HANDED_OVER))

    # --- called by others ---------------------------------------------------------------------------

    async def start(
        self, definition: Definition, inputs: Mapping[str, Any], *, actor: str, ask: StartRun = PLAIN_START
    ) -> Run:
        """Start a run and execute it. It is synced to disk and continues whether or not the caller stays connected.

        If a run was started with the same key before, that run is returned."""
        if known := await self.dispatch.started_under_key(ask):
            return known
        is_executed = ask.mode is Mode.RUN
        # Without an owner, any node may take it.
        owner = self.settings.owner if is_executed and self.host is None and self._place.has_room else ""
        names = self._place.callable(tools_in(definition), self.toolbox)
        cards = await self.toolbox.connect(names) if is_executed else {}
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
            elif self._placing is not None and is_executed:
                self._placing.ask(run)
        finally:
            self._starting -= 1
        return run

    @property
    def project(self) -> str:
        """The project whose runs it executes."""
        return self.dispatch.project

    @property
    def labels(self) -> Collection[str]:
        """What it has for the steps of its project."""
        return self.settings.labels

    def working_on(self) -> Collection[str]:
        """The runs that it is working on right now: not those that only wait for a time."""
        return {*self._claims.under_way, *(run for run, one in self.conductors.items() if one.is_at_work)}

    def could(self, needs: str) -> bool:
        """Whether a run that needs this can go on here."""
        return self._place.is_right and self._place.can(needs)

    def room(self) -> int | None:
        """How many more runs it takes now; None: as many as come."""
        return self._place.room

    async def take(self, run_id: str) -> bool:
        """Execute a run unless another worker does; whether this one does, or has done all there was to do."""
        if run_id in self.conductors:
            return True
        lease_holder = await self.store.lease_holder(run_id, project=self.dispatch.project)
        if lease_holder is None or not self._place.is_right or not await self._is_free(lease_holder):
            return False
        return run_id in await self._claims.take([lease_holder])

    def load(self) -> WorkerLoad:
        """How much it does right now."""
        calls = self._parts.throttle
        queued = sum(len(one.postponements.by_name) for one in self.conductors.values())
        return WorkerLoad(len(self.conductors), calls.under_way, calls.calls_max, queued)

    def within(self, run_id: str) -> LiveState:
        """What only this process knows of a run: postponed calls, and the progress of calls."""
        conductor = self.conductors.get(run_id)
        if conductor is None:
            return NOTHING
        postponed = {path: limit_of(postponed) for path, postponed in conductor.postponements.by_name.items()}
        return LiveState(postponed, conductor.calls.progress)

    async def settled(self, run_id: str) -> Run:
        """Wait until a run has ended or waits for an agent or a person, and return it."""
        while True:
            conductor = self.conductors.get(run_id)
            run = conductor.run if conductor is not None else await self.dispatch.current(run_id)
            if self._is_settled(run) or (conductor is None and await self._is_settled_elsewhere(run_id)):
                return run
            # With a limit, since what another node does is not reported here: then it is found by looking.
            settled = await self._waiters.next(run_id, within_s=CHECK_S)
            if settled is not None and self._is_settled(settled):
                return settled

    # --- conductors ---------------------------------------------------------------------------------

    def _conduct(self, definition: Definition, run: Run, lease: Lease) -> None:
        self._wanted.discard(run.id)
        self._parked.pop(run.id, None)
        self.resting.forget(run.id)
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
            self.resting.forget(run.id)
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
        run, rest = conductor.run, conductor.rest
        if rest is not None and self.conductors.get(run.id) is conductor:
            self._put_down(conductor, rest)
        if conductor.needs or self._place.has_slots:
            self._poke.set()  # the run goes on elsewhere, or there is room for another one
        if conductor.is_lost or conductor.is_settled:
            self._waiters.notify(run)

    def _put_down(self, conductor: Conductor, rest: Rest) -> None:
        """Give up a run that rests: whichever node goes on with it must not find it held here."""
        run = conductor.run
        del self.conductors[run.id]
        conductor.put_down()
        if conductor.calls:
            self._leaving[run.id] = conductor
        if run.project != self.dispatch.project:  # adopted by another project, whose workers can take it now
            rest = Rest(run=run.id, why=Reason.HELD, n=run.n)
            self.resting.put_down(conductor.lease, rest)
        elif run.status in RUN_UNENDED and not conductor.is_lost:
            if run.status in RUN_WORKING and not conductor.agenda.waits_for_time:
                self._parked[run.id] = run.n
            self.resting.put_down(conductor.lease, rest)
        # While this node ends, that is said when the lease is released: the next node must be able to take it.
        if not ((self.is_closing or self._is_draining) and conductor.is_lost):
            self.resting.notify(rest)

    def _is_settled(self, run: Run) -> bool:
        if run.status not in RUN_WORKING:
            return True
        conductor = self.conductors.get(run.id)
        if conductor is not None:
            return conductor.run.n == run.n and conductor.is_settled
        return self._parked.get(run.id) == run.n

    async def _is_settled_elsewhere(self, run_id: str) -> bool:
        """Whether a run that a host has placed on another node can only be moved by an agent or a person."""
        if self._placing is None:
            return False
        _, _, prospect = await self.agenda_cache.look(run_id, now=self.settings.clock())
        return prospect.is_settled

    # --- polling -----------------------------------------------------------------------------

    async def _beat(self) -> None:
        await self.beats.around(self.store.beat(self.settings.owner))

    async def _poll(self) -> None:
        self._leaving = {run_id: one for run_id, one in self._leaving.items() if one.calls}
        has_news = await self._read_news()
        await self.resting.release()
        for run_id in sorted(self._wanted):
            self._wanted.discard(run_id)  # one by one: if one raises, the others are still wanted
            if (self._placing is None and not self._place.has_room) or await self._is_others_turn(run_id):
                continue
            if self._placing is None:
                await self.take(run_id)
            elif not await self._is_held(run_id):  # a node that holds it looks again after its release
                self._placing.ask(await self.dispatch.current(run_id))
        now_s = asyncio.get_running_loop().time()
        await self._move_on()
        if self.settings.picks_up and self._place.is_right and (has_news or now_s - self._checked_s >= CHECK_S):
            self._checked_s = now_s
            await self._pick_up()

    async def _move_on(self) -> None:
        """Hand over the runs that only another node can go on with."""
        for conductor in list(self.conductors.values()):
            if (needs := conductor.needs) and self._place.may_leave(conductor, needs):
                run = conductor.run
                # First: who hears that the run was left can take it then.
                await self.store.hand_over(conductor.lease, n=run.n, needs=needs)
                conductor.leave_to(needs)
                self._parked[run.id] = run.n  # nothing is left to do here
                self._waiters.notify(run)

    async def _is_others_turn(self, run_id: str) -> bool:
        """Whether a run needs no worker now: it waits for an agent or a person, and for no timer."""
        if run_id in self.conductors:
            return False
        run, _, prospect = await self.agenda_cache.look(run_id, now=self.settings.clock())
        if run.status not in RUN_WORKING:
            return True
        if not prospect.is_settled or run.expires is not None or prospect.agenda.next_due is not None:
            return False
        self._parked[run_id] = run.n
        self._waiters.notify(run)
        return True

    async def _read_news(self) -> bool:
        """Let the conductors see what others have written; returns whether anything was."""
        if not self._seen.lanes:  # nothing was there: all runs of the store would be news
            self._seen, seen = await self.store.end(), self._seen
            return self._seen != seen
        last, heads = await self.store.heads(after=self._seen)
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
        project, now = self.dispatch.project, self.settings.clock()
        left: list[LeaseHolder] = []
        while lease_holders := await self.store.lease_holders(after=after, project=project, is_awake=True, now=now):
            after = lease_holders[-1].run
            free = [lease_holder for lease_holder in lease_holders if await self._is_wanted(lease_holder)]
            free = await self._without_own(free)
            if self._placing is not None:
                left += free
                if len(left) >= SWEPT_MAX:
                    break
                continue
            free = free[: self._place.share(len(free))]
            for start in range(0, len(free), PICK_UP_AT_ONCE):
                await self._claims.take(free[start : start + PICK_UP_AT_ONCE])
        if self._placing is not None:
            self._place.share(len(left))  # that this project wants slots; the host places
            await self._placing.sweep(left)
        for owner in self._owners.gone():
            await self.store.retire(owner)
            self._owners.forget(owner)

    async def _without_own(self, free: Sequence[LeaseHolder]) -> list[LeaseHolder]:
        """Go on with the runs that this worker holds and has no conductor for; returns the others.

        An answer of the store was lost. All other nodes leave such a run to this one, which is alive: so no host is
        asked for it, and it needs no free slot. A node that may take nothing gives it back."""
        own = [one for one in free if one.owner == self.settings.owner]
        if own and self._place.is_taking:
            await self._claims.take(own)
        else:
            await self._claims.give_back(own)
        return [one for one in free if one.owner != self.settings.owner]

    async def _is_wanted(self, lease_holder: LeaseHolder) -> bool:
        conductor = self.conductors.get(lease_holder.run)
        if conductor is not None and lease_holder.epoch > conductor.lease.epoch:
            conductor.lose()  # another worker took it over, and may be gone meanwhile
        if lease_holder.run in self.conductors or self._claims.declining.has(lease_holder.run):
            return False
        until = self.resting.until(lease_holder)
        is_parked = until is None and self._parked.get(lease_holder.run) == lease_holder.n
        if is_parked or (until is not None and until > self.settings.clock()):
            return False
        # A run that only an agent or a person could move, and that one of them has moved: taking it to see that it is
        # the next one's turn again costs two writes, for every step that an agent submits.
        is_known = until is None and not lease_holder.owner and lease_holder.run in self._parked
        if is_known and await self._is_others_turn(lease_holder.run):
            return False
        return await self._is_free(lease_holder)

    async def _is_held(self, run_id: str) -> bool:
        holder = await self.store.lease_holder(run_id, project=self.dispatch.project)
        return holder is None or bool(holder.owner)

    async def _is_free(self, lease_holder: LeaseHolder) -> bool:
        """Whether no worker executes the run: the lease is free, or its owner is gone or silent for too long."""
        if not self._place.can(lease_holder.needs):
            return False
        owner, leaving = lease_holder.owner, self._leaving.get(lease_holder.run)
        if leaving is not None and leaving.calls:
            return False  # it was lost here, and its calls have not ended yet
        self._leaving.pop(lease_holder.run, None)
        if owner == self.settings.owner:
            return not self._starting  # else it may be the run that is being started here right now
        if not owner:
            return True
        return await self._owners.is_silent(owner, lease_holder.beat)

    async def _adopt(self, lease: Lease) -> None:
        self._parked.pop(lease.run, None)  # whatever it waited for: if this fails, it is looked at again
        run = await self.dispatch.own(lease.run)
        definition = await self.dispatch.definition(run.definition)
        self._conduct(definition, run, lease)
