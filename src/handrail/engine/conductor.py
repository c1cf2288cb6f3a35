"""The conductor of one run: begins what is ready, wakes what is due, ends what is over, undoes what must be undone.

Async. What could be done next is the agenda's word (domain/agenda.py), how one try goes is attempt.py's; whatever
changes goes through dispatch, like anybody's command. A conductor works under a lease: without it the store refuses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import chain
from typing import Final

from handrail.domain.agenda import Agenda
from handrail.domain.beginning import Beginning, ForAgent, ToCall, ToGrant, begin, begin_undo
from handrail.domain.command import (
    Command,
    ExpireApproval,
    ExpireRun,
    FailAttempt,
    FailUndo,
    FinishCompensation,
    FinishRun,
    LoseAttempt,
    LoseUndo,
    StartAttempt,
    StartCompensation,
    StartUndo,
)
from handrail.domain.definition import Call, Category, Definition, Effect, OnFailure, Prompt
from handrail.domain.errors import HandrailError, Invalid, LeaseLost, NotFound
from handrail.domain.path import UNDO, locate, top_lane
from handrail.domain.rounds import look_at_holders, outputs_of
from handrail.domain.run import Run
from handrail.domain.status import RUN_OPEN, RUN_WORKING, STEP_UNENDED, RunStatus, StepStatus
from handrail.engine.attempt import Attempt, Means
from handrail.engine.lease import Lease
from handrail.engine.throttle import Hold
from handrail.engine.tool import ToolSpec

BATCH: Final = 200
"""How many commands are granted in one append at most."""
HELD_MAX: Final = 20
"""How many steps that are held back are looked past in one turn, to find one that may begin."""
TROUBLE_S_FIRST: Final = 0.1
TROUBLE_S_MAX: Final = 5.0
WORDS_LENGTH_MAX: Final = 200


log = logging.getLogger(__name__)


class Conductor:
    """Drives one run, as long as its lease holds."""

    def __init__(
        self,
        means: Means,
        definition: Definition,
        run: Run,
        lease: Lease,
        *,
        on_rest: Callable[[Conductor], None],
    ) -> None:
        self.means = means
        self.definition = definition
        self.run = run
        self.lease = lease
        self.agenda = Agenda(definition, run)
        self.calls: dict[str, asyncio.Task[None]] = {}
        self.holds: dict[str, Hold] = {}
        """Why steps that are ready do not begin."""
        self.words: dict[str, str] = {}
        """What the tools of steps that are under way say about how far they are."""
        self.is_lost = False
        self._on_rest = on_rest
        self._task: asyncio.Task[None] | None = None
        self._is_wanted = False
        self._alarm: asyncio.TimerHandle | None = None
        self._is_resting = False
        self._is_behind = False
        self._trouble_s = TROUBLE_S_FIRST

    # --- what others call ---------------------------------------------------------------------------

    @property
    def is_settled(self) -> bool:
        """Whether handrail can do nothing more until an agent or a person does something."""
        if self._task is not None or self.calls or self.holds or self._is_resting:
            return False
        return self.run.status not in RUN_WORKING or not self.agenda.waits_for_time(self.run)

    @property
    def is_idle(self) -> bool:
        """Whether not even time will bring it anything to do."""
        return self.is_settled and (self.run.status not in RUN_WORKING or self._alarm is None)

    def notice(self, run: Run, steps: Collection[str]) -> None:
        """Take in a change of the run that is synced."""
        if run.n <= self.run.n:
            return
        self.run = run
        self.agenda.update(run, steps)
        self._stop_what_ended()
        self.wake()

    def look_again(self) -> None:
        """Read the run anew before anything else is done: something was written that nobody told of."""
        self._is_behind = True
        self.wake()

    def wake(self) -> None:
        """Look at the run again soon."""
        self._is_wanted = True
        if self._task is None and not self.is_lost and not self._is_resting:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self, grace_s: float) -> None:
        """Begin nothing more; calls that are under way may end within the grace."""
        self.lose()
        if self.calls:
            await asyncio.wait(self.calls.values(), timeout=grace_s)
        going = [task for task in (self._task, *self.calls.values()) if task is not None]
        for task in going:
            task.cancel()
        if going:
            await asyncio.wait(going)

    # --- the work -----------------------------------------------------------------------------------

    async def _work(self) -> None:
        try:
            while self._is_wanted and not self.is_lost and not self._is_resting:
                self._is_wanted = False
                if self._is_behind:
                    await self._catch_up()
                while not self._is_behind and await self._turn():
                    pass
                self._trouble_s = TROUBLE_S_FIRST
        except LeaseLost:
            self.lose()
        except HandrailError as error:
            self._rest_from(error)
        except Exception as error:  # one broken run must never stop the worker
            log.exception("run %s can't go on", self.run.id)
            self._rest_from(error)
        finally:
            self._task = None
        self._drop_holds()
        self._give_back()
        if not self._is_resting:
            self._set_alarm()
        self._on_rest(self)

    def _drop_holds(self) -> None:
        """Hold nothing back that is not to begin any more."""
        agenda, is_working = self.agenda, self.run.status in RUN_WORKING
        undos = agenda.to_undo | agenda.undoing
        for name in list(self.holds):
            is_wanted = name.removesuffix(UNDO) in undos if name.endswith(UNDO) else name in agenda.ready
            if not is_working or not is_wanted:
                del self.holds[name]

    def _give_back(self) -> None:
        """Pass on the turns that there was no use for."""
        if self.holds:
            self.means.throttle.give_back(self.run.id)
        else:
            self.means.throttle.forget(self.run.id)

    async def _catch_up(self) -> None:
        """Take the run as the journal tells it: an append that was not answered may have been done."""
        self.run = await self.means.dispatch.current(self.run.id)
        self.agenda = Agenda(self.definition, self.run)
        self._is_behind = False
        self._stop_what_ended()

    async def _turn(self) -> bool:
        """Do what can be done now; whether anything was journaled, so that more may be possible."""
        if self.is_lost or self.run.status not in RUN_WORKING:
            return False
        self._drop_holds()
        now = self.means.clock()
        is_undoing = self.run.status is RunStatus.COMPENSATING
        commands = await (self._undoing(now) if is_undoing else self._doing(now))
        for start in range(0, len(commands), BATCH):
            await self._grant(*commands[start : start + BATCH])
        return bool(commands)

    async def _doing(self, now: int) -> list[Command]:
        run, agenda = self.run, self.agenda
        if run.deadline is not None and now >= run.deadline:
            return [ExpireRun()]
        commands = self._noted(now)
        if commands:
            return commands
        if agenda.halt is not None:
            return self._halted(agenda.halt)
        commands += await self._begin_ready(now)
        if commands or self.calls:
            return commands
        return self._over()

    async def _undoing(self, now: int) -> list[Command]:
        agenda = self.agenda
        commands = self._noted(now)
        again, lost = self._lost_undos()
        commands += lost
        if commands:
            return commands
        commands += await self._begin_undos(again, now)
        commands += await self._begin_ready(now)
        if commands or self.calls or self.holds or agenda.undoing or agenda.to_undo:
            return commands
        return [FinishCompensation()]

    async def _begin_undos(self, again: list[str], now: int) -> list[Command]:
        commands: list[Command] = []
        held: list[str] = []
        for path in chain(again, self.agenda.undo_in_order()):
            if path + UNDO in self.calls:
                held.append(path)  # it has begun, though this agenda does not know it yet
                continue
            if len(self.calls) >= self.definition.max_parallel or len(held) >= HELD_MAX:
                held.append(path)
                break
            beginning = begin_undo(self.run, self.definition, path, check=self.means.check)
            commands += await self._begun(beginning, now, is_undo=True)
            if path + UNDO in self.holds:
                held.append(path)
        for path in held:
            if path in self.agenda.to_undo:
                self.agenda.put_back_undo(path)
        return commands

    def _noted(self, now: int) -> list[Command]:
        """What has to be said of steps before any other begins: times that have come, rounds, tries that were lost."""
        # In this order: the tries inside a loop are known once its holder was looked at.
        due = list(self._come_due(now))
        return [*due, *look_at_holders(self.agenda, self.run, now=now), *self._lost_attempts()]

    def _come_due(self, now: int) -> Iterator[Command]:
        for path in self.agenda.due(self.run, now):
            state = self.run.step(path)
            if state.status is StepStatus.WAITING and state.digest:
                yield ExpireApproval(step=path)
            elif state.status is StepStatus.WAITING:
                if not isinstance(locate(self.definition, path).step.work, Prompt):
                    self.agenda.put_back(path)
            elif state.status is StepStatus.RUNNING:
                self.agenda.holders.add(path)

    def _lost_attempts(self) -> list[Command]:
        """What to say of tries that nobody works on."""
        return [LoseAttempt(step=path) for path in sorted(self.agenda.busy) if path not in self.calls]

    def _lost_undos(self) -> tuple[list[str], list[Command]]:
        """Undos that have begun and that nobody works on: those to be tried again, and what to say of the others."""
        again: list[str] = []
        lost: list[Command] = []
        for path in sorted(self.agenda.undoing):
            state = self.run.step(path)
            is_others_work = isinstance(locate(self.definition, path).step.undo, Prompt | Call)
            if is_others_work or path + UNDO in self.calls or (state.due or 0) > self.means.clock():
                continue
            # A failure has been journaled for each try that ended; the last one was lost if it has none.
            if state.due is None and not state.repeatable:
                lost.append(LoseUndo(step=path))
            else:
                again.append(path)
        return again, lost

    def _halted(self, policy: OnFailure) -> list[Command]:
        if self.calls:
            return []  # running attempts end and are recorded
        if policy is OnFailure.STOP:
            return [FinishRun()]
        path = next(path for path, own in self.agenda.failed.items() if own is policy)
        message = self.run.step(path).message
        return [StartCompensation(reason=f"{path} failed: {message}")]

    def _over(self) -> list[Command]:
        if self.agenda.is_stuck:
            return [FinishRun()]
        if not self.agenda.is_done:
            return []
        try:
            outputs = outputs_of(self.definition, self.run, top_lane(self.definition))
        except Invalid as error:
            return [FinishRun(flaw=f"the outputs can't be worked out: {error}")]
        return [FinishRun(outputs=outputs)]

    # --- beginning steps ----------------------------------------------------------------------------

    async def _begin_ready(self, now: int) -> list[Command]:
        commands: list[Command] = []
        for path in self.agenda.others():
            commands += await self._begun(self._beginning(path, now), now)
        held: list[str] = []
        for path in self.agenda.in_order():
            if path in self.calls:
                held.append(path)  # its last try has ended, but not all that belongs to it
                continue
            if len(self.calls) >= self.definition.max_parallel or len(held) >= HELD_MAX or len(commands) >= BATCH:
                held.append(path)
                break
            commands += await self._begun(self._beginning(path, now), now)
            if path in self.holds:
                held.append(path)
        for path in held:
            self.agenda.put_back(path)
        return commands

    def _beginning(self, path: str, now: int) -> Beginning:
        return begin(self.run, self.definition, path, now=now, check=self.means.check)

    async def _begun(self, beginning: Beginning, now: int, *, is_undo: bool = False) -> list[Command]:
        match beginning:
            case ToGrant(commands=commands):
                return list(commands)
            case ForAgent(path=path):
                self.agenda.leave_to_agent(path)
                return []
            case ToCall():
                return await self._called(beginning, now, is_undo=is_undo)

    async def _called(self, todo: ToCall, now: int, *, is_undo: bool) -> list[Command]:
        """Call a tool, now if it waits for nothing, else beside everything; or note why it has to wait."""
        name = todo.path + UNDO if is_undo else todo.path
        try:
            tool = self.means.toolbox.find(todo.work.tool)
        except NotFound as error:
            return _no_such_tool(todo.path, f"{error}; {error.hint}", is_undo=is_undo)
        step = locate(self.definition, todo.path).step
        saying = partial(self._say, name)
        attempt = Attempt(self.means, self.run, self.lease, step, todo, tool, is_undo=is_undo, progress=saying)
        if hold := await self._hold(attempt, now):
            self.holds[name] = hold
            return []
        self.holds.pop(name, None)
        if tool.spec.is_instant and attempt.effect is Effect.NONE and not is_undo and not todo.work.checks:
            try:
                return await attempt.instantly()
            finally:
                self.means.throttle.leave(tool.spec)
        task = self.calls[name] = asyncio.get_running_loop().create_task(self._attempt(attempt))
        # Not at the end of the task itself: one that is cancelled before it has begun never gets there.
        task.add_done_callback(lambda _: self._call_ended(name, tool.spec))
        return []

    async def _hold(self, attempt: Attempt, now: int) -> Hold | None:
        spec, server = attempt.tool.spec, attempt.server
        held = self.means.throttle.enter(self.run.id, self.run.priority, spec, now=now)
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

    def _say(self, name: str, words: str) -> None:
        self.words[name] = words[:WORDS_LENGTH_MAX]

    def _call_ended(self, name: str, spec: ToolSpec) -> None:
        self.calls.pop(name, None)
        self.words.pop(name, None)
        self.means.throttle.leave(spec)
        self.wake()

    async def _attempt(self, attempt: Attempt) -> None:
        try:
            await attempt.make()
        except LeaseLost:
            self.lose()
        except HandrailError as error:
            self._rest_from(error)
        except Exception as error:  # a mistake in one attempt must never stop the run, let alone the worker
            log.exception("an attempt of %s in run %s broke", attempt.path, self.run.id)
            self._rest_from(error)

    # --- endings ------------------------------------------------------------------------------------

    def _stop_what_ended(self) -> None:
        """Cancel the calls of steps that have been stopped with their run, or turned to undoing."""
        for name, task in self.calls.items():
            if self.run.status in RUN_OPEN:
                return
            if name.endswith(UNDO):
                continue
            state = self.run.step(name)
            if state.status is StepStatus.COMPLETED and self.run.status is not RunStatus.COMPENSATING:
                continue  # another worker has done it meanwhile: what is said here is late, and is to be known
            if self.run.status is not RunStatus.COMPENSATING or state.status not in STEP_UNENDED:
                task.cancel()

    def lose(self) -> None:
        """Let the run go: somebody else executes it, or will."""
        if not self.is_lost:
            log.info("run %s is let go", self.run.id)
        self.is_lost = True
        self._clear_alarm()
        self.means.throttle.forget(self.run.id)
        self._on_rest(self)

    def _rest_from(self, error: Exception) -> None:
        """Try again after a while, from what the journal says: the store is in trouble, or someone was first."""
        log.warning("run %s rests for %.1f s: %s", self.run.id, self._trouble_s, error)
        self._is_behind = True
        self.holds.clear()
        self._clear_alarm()
        self._is_resting = True
        self._alarm = asyncio.get_running_loop().call_later(self._trouble_s, self._rested)
        self._trouble_s = min(2 * self._trouble_s, TROUBLE_S_MAX)

    def _rested(self) -> None:
        self._alarm = None
        self._is_resting = False
        self.wake()

    def _clear_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _set_alarm(self) -> None:
        """Wake up when the next time has come."""
        self._clear_alarm()
        dues = [due for due in (self.agenda.next_due(self.run), self.run.deadline) if due is not None]
        dues += [hold.due for hold in self.holds.values() if hold.due is not None]
        if dues and self.run.status in RUN_WORKING and not self.is_lost:
            delay_s = max(0.0, (min(dues) - self.means.clock()) / 1_000)
            self._alarm = asyncio.get_running_loop().call_later(delay_s + 0.001, self.wake)

    async def _grant(self, *commands: Command) -> None:
        await self.means.dispatch.grant(self.run.id, *commands, actor=self.means.actor, lease=self.lease)


def _no_such_tool(path: str, message: str, *, is_undo: bool) -> list[Command]:
    if is_undo:
        return [StartUndo(step=path), FailUndo(step=path, category=Category.NOT_FOUND, message=message)]
    start = StartAttempt(step=path, effect=Effect.NONE)
    return [start, FailAttempt(step=path, category=Category.NOT_FOUND, message=message)]
