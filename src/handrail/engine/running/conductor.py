"""The conductor of one run: carries out its turns, wakes up when a timer is due, and pauses while the store fails.

Async. What the run does next is decided in domain/scheduling/turn.py; a single attempt is made in attempt.py. Every
change goes through dispatch, like any other command. A conductor works under a lease: without it the store refuses
its writes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from handrail.domain.definition.model import Category, Definition, Effect, Step
from handrail.domain.errors import HandrailError, LeaseLost, NotFound, OtherProject
from handrail.domain.fleet.label import in_words, needs_of
from handrail.domain.fleet.placing import home_label, lacking, server_label
from handrail.domain.run.command import Command, FailAttempt, FailUndo, StartAttempt, StartUndo
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_OPEN, RUN_WORKING, STEP_UNENDED, RunStatus, StepStatus
from handrail.domain.run.step_path import UNDO, locate
from handrail.domain.scheduling.agenda import Agenda
from handrail.domain.scheduling.step_start import CallTool, Grant, LeaveToAgent, start_of, undo_start_of
from handrail.domain.scheduling.turn import next_turn
from handrail.engine.reading.agenda_cache import AgendaCache
from handrail.engine.running.alarm import Alarm
from handrail.engine.running.attempt import Attempt, AttemptServices
from handrail.engine.running.host import Reason, Rest
from handrail.engine.running.lease import Lease
from handrail.engine.running.postponed_steps import Postponements
from handrail.engine.running.throttle import Postponed
from handrail.engine.tool import ToolSpec

BATCH: Final = 200
"""How many commands are journaled in one append."""
POSTPONED_MAX: Final = 20
"""How many postponed steps are passed over in one turn to find one that may start."""
PAUSE_S_FIRST: Final = 0.1
PAUSE_S_MAX: Final = 5.0
PROGRESS_LENGTH_MAX: Final = 200
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
        self.calls: dict[str, asyncio.Task[None]] = {}
        """The calls in progress: of steps by path, of undos by path with `!undo`."""
        self.postponements = Postponements(parts, run.id)
        self.progress: dict[str, str] = {}
        """The latest progress message of each call in progress."""
        self.is_lost = False
        self._on_idle = on_idle
        self._task: asyncio.Task[None] | None = None
        self._is_wanted = False
        self._left_to = ""
        self._alarm = Alarm()
        self._is_paused = False
        self._is_behind = False
        self._pause_s = PAUSE_S_FIRST

    # --- called by others ---------------------------------------------------------------------------

    @property
    def run(self) -> Run:
        """The run as far as it is known here."""
        return self.agenda.run

    @property
    def is_at_work(self) -> bool:
        """Whether it does something right now, or will as soon as the store answers again; else it only waits."""
        return self._task is not None or bool(self.calls) or self._is_paused

    @property
    def needs(self) -> str:
        """What the node must have that goes on with this run; empty while there is something to do here."""
        postponed = list(self.postponements.by_name.values())
        if self.is_at_work or self.is_lost or not all(one.needs for one in postponed):
            return ""
        return needs_of(alternative.split(",") for one in postponed for alternative in one.needs.split("|"))

    @property
    def waits_for_time(self) -> bool:
        """Whether a timer or a deadline will go off: some node must be there for it."""
        return self.agenda.next_due is not None or self.run.deadline is not None

    @property
    def is_settled(self) -> bool:
        """Whether handrail can do nothing more until an agent or a person acts."""
        if self._task is not None or self.calls or self.postponements.by_name or self._is_paused:
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
            labels = tuple(self._left_to.partition("|")[0].split(","))
            return Rest(run=run.id, why=Reason.LABELS, n=run.n, labels=labels)
        if self.is_lost:
            return Rest(run=run.id, why=Reason.HANDED_OVER, n=run.n)
        if self._task is not None or self.calls or self.postponements.by_name or self._is_paused:
            return None
        if run.status not in RUN_WORKING:
            return Rest(run=run.id, why=Reason.ENDED, n=run.n)
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
        self._stop_what_ended()
        self.wake()

    def look_again(self) -> None:
        """Read the run again before doing anything else: something was written that was not reported here."""
        self._is_behind = True
        self.wake()

    def wake(self) -> None:
        """Take another turn soon."""
        self._is_wanted = True
        if self._task is None and not self.is_lost and not self._is_paused:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self, grace_s: float) -> None:
        """Start nothing more; calls in progress may end within the grace period."""
        self.lose()
        if self.calls:
            await asyncio.wait(self.calls.values(), timeout=grace_s)
        going = [task for task in (self._task, *self.calls.values()) if task is not None]
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
            while self._is_wanted and not self.is_lost and not self._is_paused:
                self._is_wanted = False
                if self._is_behind:
                    await self._catch_up()
                while not self._is_behind and await self._turn():
                    pass
                self._pause_s = PAUSE_S_FIRST
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
        self.postponements.give_back()
        if not self._is_paused:
            self._set_alarm()
        self._on_idle(self)

    async def _catch_up(self) -> None:
        """Read the run from the journal: an append without an answer may have succeeded."""
        self._is_behind = False  # before reading: a change reported during the read must set it again
        run = await self.parts.dispatch.current(self.lease.run)
        self.agenda = self.agenda_cache.renewed(run, self.definition)
        self._stop_what_ended()

    async def _turn(self) -> bool:
        """Do what can be done now; returns whether more may be possible afterwards."""
        agenda, run = self.agenda, self.run
        if self.is_lost or run.status not in RUN_WORKING:
            return False
        now = self.parts.clock()
        agenda.keep_up(now)
        self.postponements.drop_unwanted(agenda)
        slots = self.definition.max_parallel - len(self.calls)
        turn = next_turn(agenda, check=self.parts.check, under_way=self.calls, at_most=BATCH if slots > 0 else 0)
        commands = list(turn.commands)
        if turn.undos:
            commands += await self._started(turn.undos, now, is_undo=True)
        if turn.calls:
            commands += await self._started(turn.calls, now)
        for start in range(0, len(commands), BATCH):
            await self._grant(*commands[start : start + BATCH])
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
            if needs := self._server_needed(todo.work.tool):
                return self._leave_to_another(name, needs)
            return _unknown_tool(todo.path, f"{error}; {error.hint}", is_undo=is_undo)
        if needs := self._needed(todo, step, tool.spec, is_undo=is_undo):
            return self._leave_to_another(name, needs)
        progress = partial(self._note_progress, name)
        attempt = Attempt(self.parts, self.run, self.lease, step, todo, tool, is_undo=is_undo, progress=progress)
        if not await self.postponements.let_in(name, attempt, now=now):
            return []
        if tool.spec.is_instant and attempt.effect is Effect.NONE and not is_undo and not todo.work.checks:
            try:
                return await attempt.instantly()
            finally:
                self.parts.throttle.leave(tool.spec)
        task = self.calls[name] = asyncio.get_running_loop().create_task(self._attempt(attempt))
        # Not at the end of the task itself: a task that is cancelled before it starts never gets there.
        task.add_done_callback(lambda _: self._call_ended(name, tool.spec))
        return []

    def _needed(self, todo: CallTool, step: Step, spec: ToolSpec, *, is_undo: bool) -> str:
        """What another node must have to make this call; empty if this one can."""
        # What a tool did to this machine's folder is undone from what was stored here: nowhere else is either of them.
        asked = {*step.runs_on, *spec.runs_on}
        if is_undo and todo.own_undo and self.parts.is_shared and not spec.server:
            asked |= {home_label(self.run.step(todo.path).actor)} - {""}
        return lacking(asked, self.parts.labels)

    def _server_needed(self, tool: str) -> str:
        """The label of nodes that have the server of a tool, if others may have it; empty for a tool of ours."""
        server = tool.partition(".")[0]
        known = {spec.name.partition(".")[0] for spec in self.parts.toolbox.specs()}
        return server_label(self.run.project, server) if self.parts.is_shared and server not in known else ""

    def _leave_to_another(self, name: str, needs: str) -> list[Command]:
        self.postponements.by_name[name] = Postponed(f"waits for a node with {in_words(needs)}", needs=needs)
        return []

    def _note_progress(self, name: str, message: str) -> None:
        self.progress[name] = message[:PROGRESS_LENGTH_MAX]

    def _call_ended(self, name: str, spec: ToolSpec) -> None:
        self.calls.pop(name, None)
        self.progress.pop(name, None)
        self.parts.throttle.leave(spec)
        self.wake()

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

    def _stop_what_ended(self) -> None:
        """Cancel the calls of steps that were stopped with their run, or are being undone."""
        run = self.run
        if run.status in RUN_OPEN:
            return
        for name, task in self.calls.items():
            if name.endswith(UNDO):
                continue
            state = run.step(name)
            if state.status is StepStatus.COMPLETED and run.status is not RunStatus.COMPENSATING:
                continue  # another worker has completed it meanwhile: the answer here is late, and is journaled as such
            if run.status is not RunStatus.COMPENSATING or state.status not in STEP_UNENDED:
                task.cancel()

    # --- pausing and waking up -------------------------------------------------------------------------

    def _pause_after(self, error: Exception) -> None:
        """Retry after a pause, from the state in the journal: the store failed, or another writer was first."""
        log.warning("run %s pauses for %.1f s: %s", self.lease.run, self._pause_s, error)
        self._is_behind = True
        self.postponements.by_name.clear()
        self._is_paused = True
        self._alarm.set(self._pause_s, self._resume)
        self._pause_s = min(2 * self._pause_s, PAUSE_S_MAX)

    def _resume(self) -> None:
        self._alarm.clear()
        self._is_paused = False
        self.wake()

    def _set_alarm(self) -> None:
        """Wake up at the next timer or deadline."""
        self._alarm.clear()
        due = self._next_due()
        if due is not None and self.run.status in RUN_WORKING and not self.is_lost:
            delay_s = max(0.0, (due - self.parts.clock()) / 1_000)
            self._alarm.set(delay_s + 0.001, self.wake)

    def _next_due(self) -> int | None:
        dues = (self.agenda.next_due, self.run.deadline, *self.postponements.dues())
        return min((due for due in dues if due is not None), default=None)

    async def _grant(self, *commands: Command) -> None:
        await self.parts.dispatch.grant(self.run.id, *commands, actor=self.parts.actor, lease=self.lease)


def _unknown_tool(path: str, message: str, *, is_undo: bool) -> list[Command]:
    if is_undo:
        return [StartUndo(step=path), FailUndo(step=path, category=Category.NOT_FOUND, message=message)]
    start = StartAttempt(step=path, effect=Effect.NONE)
    return [start, FailAttempt(step=path, category=Category.NOT_FOUND, message=message)]
