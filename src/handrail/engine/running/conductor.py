"""The conductor of one run: carries out its turns, wakes up when a timer is due, and pauses while the store fails.

Async. What the run does next is decided in domain/scheduling/turn.py; a single attempt is made in calls/attempt.py.
Every change goes through dispatch, like any other command. A conductor works under a lease: without it the store
refuses its writes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from handrail.domain.definition.model import Category, Definition, Effect
from handrail.domain.errors import HandrailError, LeaseLost, NotFound, OtherProject
from handrail.domain.run.command import Command, FailAttempt, FailUndo, StartAttempt, StartUndo
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_WORKING
from handrail.domain.run.step_path import UNDO, locate
from handrail.domain.scheduling.agenda import Agenda
from handrail.domain.scheduling.step_start import CallTool, Grant, LeaveToAgent, start_of, undo_start_of
from handrail.domain.scheduling.turn import next_turn
from handrail.engine.reading.agenda_cache import AgendaCache
from handrail.engine.running.alarm import Alarm
from handrail.engine.running.calls.attempt import Attempt, AttemptServices
from handrail.engine.running.calls.call_place import needed_for_call, server_needed
from handrail.engine.running.calls.calls_in_progress import CallsInProgress
from handrail.engine.running.calls.postponed_steps import Postponements
from handrail.engine.running.host import Reason, Rest
from handrail.engine.running.lease import Lease
from handrail.engine.running.pause import Pause
from handrail.foundation.log_context import logged_as

BATCH: Final = 200
"""How many commands are journaled in one append."""
POSTPONED_MAX: Final = 20
"""How many postponed steps are passed over in one turn to find one that may start."""
REST_MS: Final = 5_000
"""A run that waits longer than this for a timer is released until then; a shorter wait is cheaper than a new lease."""

log = logging.getLogger(__name__)


class Conductor:
    """Drives one run for as long as it has the lease."""

    def __init__(
        self,
        parts: AttemptServices,
        definition: Definition,
        run: Run,
        lease: Lease,
        *,
        agenda_cache: AgendaCache,
        on_idle: Callable[[Conductor], None],
    ) -> None:
        self.parts = parts
        self.definition = definition
        self.lease = lease
        self.agenda_cache = agenda_cache
        self.agenda: Agenda = agenda_cache.agenda(run, definition)
        """Shared with the readers of the run; agenda_cache.py keeps it up to date."""
        self.calls = CallsInProgress()
        self.postponements = Postponements(parts, run.id)
        self.is_lost = False
        self._on_idle = on_idle
        self._task: asyncio.Task[None] | None = None
        self._is_wanted = False
        self._left_to = ""
        self._alarm = Alarm()
        self._pause = Pause(self._alarm)
        self._is_behind = False

    # --- called by others ---------------------------------------------------------------------------

    @property
    def run(self) -> Run:
        """The run as far as it is known here."""
        return self.agenda.run

    @property
    def is_at_work(self) -> bool:
        """Whether it does something right now, or will as soon as the store answers again; else it only waits."""
        return self._task is not None or bool(self.calls) or self._pause.is_on

    @property
    def needs(self) -> str:
        """What the node must have that goes on with this run; empty while there is something to do here."""
        return "" if self.is_at_work or self.is_lost else self.postponements.needs

    @property
    def waits_for_time(self) -> bool:
        """Whether a timer or a deadline will go off: some node must be there for it."""
        return self.agenda.next_due is not None or self.run.expires is not None

    @property
    def is_settled(self) -> bool:
        """Whether handrail can do nothing more until an agent or a person acts."""
        if self.is_at_work or self.postponements.by_name:
            return False
        if self.run.status not in RUN_WORKING:
            return True
        # A reader may have processed a timer just now, before the alarm for it went off.
        return not self.agenda.waits_for_time and not next_turn(self.agenda, check=self.parts.check, at_most=1)

    @property
    def rest(self) -> Rest | None:
        """Reason nothing is left to do here for now, or for long; None while something is."""
        run = self.run
        if self._left_to:
            return Rest(run=run.id, why=Reason.LABELS, n=run.n)
        if self.is_lost:
            return Rest(run=run.id, why=Reason.HANDED_OVER, n=run.n)
        if self.is_at_work or self.postponements.by_name:
            return None
        if run.status not in RUN_WORKING:
            return Rest(run=run.id, why=Reason.ENDED, n=run.n, status=run.status.value)
        until = self._next_due()
        if until is not None and until - self.parts.clock() < REST_MS:
            return None
        # A reader may have processed a timer just now, before the alarm for it went off.
        if next_turn(self.agenda, check=self.parts.check, at_most=1):
            return None
        return Rest(run=run.id, why=Reason.OTHERS if until is None else Reason.TIMER, n=run.n, until=until)

    def put_down(self) -> None:
        """Do nothing more by itself: the run rests."""
        self._alarm.clear()

    def notice(self, run: Run) -> None:
        """React to a change of the run; its agenda is already up to date unless an event was missed."""
        if self.run.n < run.n:
            self.look_again()
            return
        self.calls.cancel_stopped(self.run)
        self.wake()

    def look_again(self) -> None:
        """Read the run again before doing anything else: something was written that was not reported here."""
        self._is_behind = True
        self.wake()

    def wake(self) -> None:
        """Take another turn soon."""
        self._is_wanted = True
        if self._task is None and not self.is_lost and not self._pause.is_on:
            self._task = asyncio.get_running_loop().create_task(
                # The task inherits the context of who woke it, which may be a request about something else.
                logged_as(
                    self._work,
                    run=self.lease.run,
                    project=self.run.project,
                    step="",
                    trace_id=self.parts.dispatch.tracer.trace_id(self.run),
                )
            )

    async def stop(self, grace_s: float) -> None:
        """Start nothing more; calls in progress may end within the grace period."""
        self.lose()
        if self.calls:
            await asyncio.wait(self.calls.tasks.values(), timeout=grace_s)
        # Both at once: a turn in progress could start another call after the calls were cancelled.
        going = [task for task in (self._task, *self.calls.tasks.values()) if task is not None]
        for task in going:
            task.cancel()
        if going:
            await asyncio.wait(going)

    def leave_to(self, needs: str) -> None:
        """Give the run up for a node that has what it needs."""
        self._left_to = needs
        self.lose()

    def lose(self) -> None:
        """Give the run up: another worker executes it, or will."""
        if not self.is_lost:
            log.info("run %s is released", self.lease.run)
        self.is_lost = True
        self._alarm.clear()
        self.parts.throttle.forget(self.lease.run)
        self._on_idle(self)

    # --- the work -----------------------------------------------------------------------------------

    async def _work(self) -> None:
        try:
            while self._is_wanted and not self.is_lost and not self._pause.is_on:
                self._is_wanted = False
                if self._is_behind:
                    await self._catch_up()
                # Turn after turn until nothing moves: one event may make the next step ready.
                while not self._is_behind and await self._turn():
                    pass
                self._pause.reset()
        except (LeaseLost, OtherProject):
            self.lose()
        except HandrailError as error:
            self._pause_after(error)
        except Exception as error:  # one broken run must never stop the worker
            log.exception("run %s can't continue", self.lease.run)
            self._pause_after(error)
        finally:
            self._task = None
        self.postponements.drop_unwanted(self.agenda)
        # Turns of the throttle that this run was offered and did not use: another run waits for them.
        self.postponements.give_back()
        if not self._pause.is_on:
            self._set_alarm()
        self._on_idle(self)

    async def _catch_up(self) -> None:
        """Read the run from the journal: an append without an answer may have succeeded."""
        self._is_behind = False  # before reading: a change reported during the read must set it again
        run = await self.parts.dispatch.current(self.lease.run)
        # A new one: an append without an answer may be in the journal or not, so the old agenda can't be updated.
        self.agenda = self.agenda_cache.renewed(run, self.definition)
        self.calls.cancel_stopped(self.run)

    async def _turn(self) -> bool:
        """Do what can be done now; returns whether more may be possible afterwards."""
        agenda, run = self.agenda, self.run
        if self.is_lost or run.status not in RUN_WORKING:
            return False
        now = self.parts.clock()
        agenda.keep_up(now)
        self.postponements.drop_unwanted(agenda)
        slots = self.definition.max_parallel - len(self.calls)
        turn = next_turn(agenda, check=self.parts.check, under_way=self.calls.tasks, at_most=BATCH if slots > 0 else 0)
        commands = list(turn.commands)
        if turn.undos:
            commands += await self._started(turn.undos, now, is_undo=True)
        if turn.calls:
            commands += await self._started(turn.calls, now)
        for start in range(0, len(commands), BATCH):
            batch = commands[start : start + BATCH]
            await self.parts.dispatch.grant(run.id, *batch, actor=self.parts.actor, lease=self.lease)
        # Readers also advance the agenda's time: a timer that they processed while tools were called is not in this
        # turn, and no alarm will go off for it any more. So there must be another turn.
        return agenda.run.n > run.n or agenda.now > now

    async def _started(self, paths: Sequence[str], now: int, *, is_undo: bool = False) -> list[Command]:
        """Start steps, or undos, up to the limit of parallel calls."""
        commands: list[Command] = []
        postponed = 0
        for path in paths:
            is_full = len(self.calls) >= self.definition.max_parallel
            if is_full or postponed >= POSTPONED_MAX or len(commands) >= BATCH:
                break
            commands += await self._start(path, now, is_undo=is_undo)
            # Passed over, but not without end: behind a closed breaker there may be thousands of steps of one server.
            postponed += (path + UNDO if is_undo else path) in self.postponements.by_name
        return commands

    async def _start(self, path: str, now: int, *, is_undo: bool) -> list[Command]:
        run, definition, check = self.run, self.definition, self.parts.check
        started = (
            undo_start_of(run, definition, path, check=check)
            if is_undo
            else start_of(run, definition, path, now=now, check=check)
        )
        match started:
            case Grant(commands=commands):
                return list(commands)
            case LeaveToAgent():
                return []
            case CallTool():
                return await self._called(started, now, is_undo=is_undo)

    # --- calls --------------------------------------------------------------------------------------

    async def _called(self, todo: CallTool, now: int, *, is_undo: bool) -> list[Command]:
        """Call a tool: directly if it is instant, else in a task; or note why the call is postponed."""
        name = todo.path + UNDO if is_undo else todo.path
        step = locate(self.definition, todo.path).step
        try:
            tool = self.parts.toolbox.find(todo.work.tool)
        except NotFound as error:
            if needs := server_needed(self.parts, self.run, todo.work.tool):
                self.postponements.leave_to_another(name, needs)
                return []
            return _unknown_tool(todo.path, f"{error}; {error.hint}", is_undo=is_undo)
        if needs := needed_for_call(self.parts, self.run, step, todo, tool.spec, is_undo=is_undo):
            self.postponements.leave_to_another(name, needs)
            return []
        progress = partial(self.calls.note_progress, name)
        attempt = Attempt(self.parts, self.run, self.lease, step, todo, tool, is_undo=is_undo, progress=progress)
        if not await self.postponements.let_in(name, attempt, now=now):
            return []
        if tool.spec.is_instant and attempt.effect is Effect.NONE and not is_undo and not todo.work.checks:
            try:
                return await attempt.instantly()
            finally:
                self.parts.throttle.leave(tool.spec)

        def ended() -> None:
            self.parts.throttle.leave(tool.spec)
            self.wake()

        self.calls.start(name, logged_as(lambda: self._attempt(attempt), step=attempt.path), on_end=ended)
        return []

    async def _attempt(self, attempt: Attempt) -> None:
        try:
            await attempt.make()
        except (LeaseLost, OtherProject):
            self.lose()
        except HandrailError as error:
            self._pause_after(error)
        except Exception as error:  # a bug in one attempt must never stop the run, let alone the worker
            log.exception("an attempt of %s in run %s crashed", attempt.path, self.run.id)
            self._pause_after(error)

    # --- pausing and waking up -------------------------------------------------------------------------

    def _pause_after(self, error: Exception) -> None:
        """Retry after a pause, from the state in the journal: the store failed, or another writer was first."""
        log.warning("run %s pauses for %.1f s: %s", self.lease.run, self._pause.next_s, error)
        self._is_behind = True
        self.postponements.by_name.clear()
        self._pause.start(self.wake)

    def _set_alarm(self) -> None:
        """Wake up at the next timer or deadline."""
        self._alarm.clear()
        due = self._next_due()
        if due is not None and self.run.status in RUN_WORKING and not self.is_lost:
            delay_s = max(0.0, (due - self.parts.clock()) / 1_000)
            self._alarm.set(delay_s + 0.001, self.wake)

    def _next_due(self) -> int | None:
        dues = (self.agenda.next_due, self.run.expires, *self.postponements.dues())
        return min((due for due in dues if due is not None), default=None)


def _unknown_tool(path: str, message: str, *, is_undo: bool) -> list[Command]:
    if is_undo:
        return [StartUndo(step=path), FailUndo(step=path, category=Category.NOT_FOUND, message=message)]
    start = StartAttempt(step=path, effect=Effect.NONE)
    return [start, FailAttempt(step=path, category=Category.NOT_FOUND, message=message)]
