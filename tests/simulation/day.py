"""One simulated day of handrail: workers on one store, runs of random plans, people who interfere, and all that breaks.

First chaos, then calm: from then on nothing fails any more but tools that always do, and every run has to come to an
end, or wait for somebody. Somebody then helps, until all runs have ended."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import signal
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, cast

from handrail.domain.definition.model import Definition
from handrail.domain.errors import HandrailError
from handrail.domain.policy.answering import AnswerRules
from handrail.engine.clock import steady_clock
from handrail.engine.dispatch import Dispatch
from handrail.engine.record_writer import RecordWriter
from handrail.engine.running.answers import ApprovalAnswers
from handrail.engine.running.control import Control
from handrail.engine.running.worker import Worker, WorkerStore
from handrail.engine.running.worker_settings import WorkerSettings
from handrail.storage.memory import MemoryStore
from simulation.disk import Disk, Weather
from simulation.endings import is_at_rest, left_behind, why_not_at_rest
from simulation.lanes import Lanes, NewsReader
from simulation.loop import Process, Stuck, VirtualLoop, bury
from simulation.lossy_host import HostedNode, LossyHost
from simulation.outside import Box, Outside
from simulation.people import help_out, interfere
from simulation.plans import draw_plan
from simulation.witness import Witness

START_MS: Final = 1_763_230_000_000
LEASE_S: Final = 2.0
SETTLE_S: Final = 400.0
"""Within which virtual time everything must have come to rest, once nothing fails any more."""
HELPS_MAX: Final = 60
LABEL: Final = "gpu"
REAL_S_MAX: Final = 30.0
"""Within which real time a seed must be over: no code may turn without end."""

logging.getLogger("handrail").setLevel(logging.CRITICAL)


@dataclass
class Place:
    """A process with what runs in it."""

    process: Process
    dispatch: Dispatch
    control: Control
    worker: Worker | None = None


@dataclass
class Outcome:
    """What came of a seed."""

    seed: int
    broken: list[str]
    tale: list[str]
    digest: str
    events: int
    statuses: list[str] = field(default_factory=list)
    is_fleet: bool = False


class Simulation:
    """One seed."""

    def __init__(self, seed: int, *, plan: Definition | None = None, is_fleet: bool = False) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.loop = VirtualLoop()
        self.store = MemoryStore()
        self.outside = Outside(self.loop, self.random)
        self.weather = Weather(self.random, is_calm=self.random.random() < 0.3)
        self.witness = Witness(self.loop, self.store, self.outside, lease_s=LEASE_S)
        self.outside.observer = self.witness
        self.places: list[Place] = []
        self.processes: list[Process] = []
        self.offset_ms = 0
        self.plan = plan
        self.is_fragile = self.outside.is_fragile = self.random.random() < 0.7
        self._count = 0
        self._is_over = False
        self.lanes = Lanes(self.store, self.outside) if is_fleet else None
        self.host = LossyHost(self.outside, lease_s=LEASE_S, wall=self.wall) if is_fleet else None
        if is_fleet and self.random.random() < 0.5:
            self.outside.labelled = (LABEL,)

    # --- the machine --------------------------------------------------------------------------------

    def wall(self) -> int:
        """What the clock on the wall says, which people may set."""
        return START_MS + int(self.loop.time() * 1_000) + self.offset_ms

    def entropy(self, size: int) -> bytes:
        """Chance that can be repeated."""
        return self.random.randbytes(size)

    def is_alive(self, owner: str) -> bool:
        """Whether a process is there; another machine has to say yes to everyone."""
        if self.host is not None:
            return True
        process = self.witness.processes.get(owner)
        return process is None or not process.is_dead

    def new_place(self, *, works: bool = True) -> Place:
        """A new process on the store."""
        self._count += 1
        process = Process(f"{'w' if works else 'p'}{self._count}", self.loop)
        self.processes.append(process)
        self.witness.processes[process.name] = process
        if works and self.is_fragile and not self.outside.is_calm:
            process.crash_at = self.random.choice((None, self.random.randint(1, 60), self.random.randint(1, 250)))
        process.on_crash = lambda gone: self.witness.tell(f"{gone.name:4} crashes in the middle of a call")
        disk = Disk(self.store, process, self.weather, self.witness, self.lanes)
        clock = steady_clock(self.wall, self.loop.time)
        dispatch = Dispatch(disk, RecordWriter(clock, self.entropy))  # one clock for all: deadlines are held against it
        self.witness.clocks[process.name] = clock
        worker = self._worker(process, disk, dispatch, clock) if works else None
        place = Place(
            process, dispatch, Control(dispatch, clock, ApprovalAnswers(AnswerRules(), clock), worker), worker
        )
        self.places.append(place)
        return place

    def _worker(self, process: Process, disk: Disk, dispatch: Dispatch, clock: Callable[[], int]) -> Worker:
        host = HostedNode(self.host, process) if self.host is not None else None
        has_label = self.host is not None and (self.random.random() < 0.5 or self.outside.is_calm)
        labels = self.witness.labels[process.name] = frozenset({LABEL} if has_label else ())
        terms = WorkerSettings(
            owner=process.name,
            actor="handrail",
            clock=clock,
            check=lambda definition, given: ({**_defaults(definition), **given}, []),
            fits=lambda schema, value: [],
            lease_s=LEASE_S,
            calls_max=self.random.choice((2, 100)),
            labels=labels,
        )
        return Worker(dispatch, cast("WorkerStore", disk), Box(self.outside), self, terms, host)

    async def open(self) -> Place:
        """Start a worker; a worker that can't start is started again."""
        while True:
            place = self.new_place()
            self.witness.tell(f"{place.process.name:4} starts")
            assert place.worker is not None
            if await self.within(place, place.worker.open(), patience_s=30.0):
                return place
            self.kill(place)
            self.weather.is_full = False

    async def within(self, place: Place, work: Coroutine[Any, Any, Any], *, patience_s: float = 5.0) -> bool:
        """Do something inside a process; whether it was done, as far as one can see from here."""
        task = place.process.do(work)
        await asyncio.wait({task}, timeout=patience_s)
        if not task.done():
            return False
        error = task.exception() if not task.cancelled() else None
        if error is not None and not isinstance(error, HandrailError):
            self.witness.complain(f"invariant 16: {error!r} came out of {place.process.name}")
        return error is None

    def workers(self) -> list[Place]:
        """Workers that are alive."""
        return [place for place in self.places if place.worker is not None and not place.process.is_dead]

    # --- the day ------------------------------------------------------------------------------------

    async def day(self) -> None:
        """All of it."""
        self.outside.is_calm = self.random.random() < 0.1
        person = self.new_place(works=False)
        reader = self._read_news(NewsReader(self.lanes)) if self.lanes is not None else None
        reading = self.loop.create_task(reader, context=self.outside.context) if reader is not None else None
        places = [await self.open() for _ in range(self.random.choice((1, 1, 2)) if self.host is None else 2)]
        for _ in range(self.random.choice((1, 1, 1, 2))):
            await self._start_run(self.random.choice(places))
        await self._chaos(person)
        await self._calm()
        for number in range(HELPS_MAX):
            if not await help_out(self, person):
                break
            # At last patiently: for two clocks that differ by a minute every answer comes too late, until the tenth
            # request has expired.
            await asyncio.sleep(self.random.choice((0.0, 0.5, 2.0)) + (20.0 if number > HELPS_MAX // 2 else 0.0))
            await self.settle()
        else:
            self.witness.complain("invariant 15: people have helped for long, and a run has not ended")
        await self._close()
        if reading is not None:
            await reading

    async def _read_news(self, reader: NewsReader) -> None:
        while not self._is_over:
            reader.look()
            await asyncio.sleep(0.05)
        reader.look()
        for flaw in reader.flaws():
            self.witness.complain(f"missed news: {flaw}")

    async def _start_run(self, place: Place) -> None:
        definition = self.plan or draw_plan(self.random)
        assert place.worker is not None
        await self.within(place, place.worker.start(definition, _defaults(definition), actor="person:ada"))

    async def _chaos(self, person: Place) -> None:
        until_s = self.loop.time() + self.random.choice((0.5, 2.0, 6.0))
        while self.loop.time() < until_s:
            await asyncio.sleep(self.random.choice((0.0, 0.02, 0.1, 0.4, 1.0)))
            await self._trouble(person)
            if not self.workers():
                await asyncio.sleep(self.random.choice((0.0, 0.3, 3.0)))
                await self.open()

    async def _trouble(self, person: Place) -> None:
        random = self.random
        match random.choice(("person", "person", "person", "kill", "stop", "jump", "worker", "disk", "close", "rest")):
            case "person":
                await interfere(self, random.choice([person, *self.workers()]))
            case "kill" if self.workers() and random.random() < 0.5:
                self.kill(random.choice(self.workers()))
            case "stop" if self.workers():
                self.stop(random.choice(self.workers()), random.choice((0.3, 2.5, 5.0)))
            case "jump":
                self.offset_ms += random.choice((-60_000, -700, 700, 60_000))
                self.witness.tell(f"the wall's clock is {self.offset_ms} ms off")
            case "worker" if len(self.workers()) < 2:
                await self.open()
            case "disk":
                self.weather.is_full = not self.weather.is_full and random.random() < 0.4
            case "close" if len(self.workers()) > 1:
                await self._leave(random.choice(self.workers()))
            case _:
                pass

    def kill(self, place: Place) -> None:
        """End a process without a word."""
        self.witness.tell(f"{place.process.name:4} is killed")
        place.process.kill()

    def stop(self, place: Place, for_s: float) -> None:
        """Stop a process for a while."""
        self.witness.tell(f"{place.process.name:4} is stopped for {for_s} s")
        place.process.stop()
        self.outside.later(for_s, place.process.go_on)

    async def _leave(self, place: Place) -> None:
        """Close a worker properly."""
        self.witness.tell(f"{place.process.name:4} closes")
        assert place.worker is not None
        if await self.within(place, place.worker.close(self.random.choice((0.0, 1.0))), patience_s=30.0):
            place.process.kill()

    async def _calm(self) -> None:
        """From now on nothing fails any more."""
        self.weather.is_calm = self.outside.is_calm = True
        self.weather.is_full = False
        self.witness.tell("all is calm")
        for place in self.places:
            place.process.crash_at = None
            place.process.go_on()
        if not any(not self.host or self.witness.labels[place.process.name] for place in self.workers()):
            await self.open()
        await self.settle()

    async def settle(self) -> None:
        """Wait until all runs have ended or wait for somebody (invariant 15)."""
        until_s = self.loop.time() + SETTLE_S
        while not is_at_rest(self.witness, [place.worker for place in self.workers()]):
            if self.loop.time() > until_s:
                reasons = why_not_at_rest(self.witness, [place.worker for place in self.workers()])
                self.witness.complain(f"invariant 15: not at rest: {'; '.join(reasons)}")
                await asyncio.sleep(1)
            await asyncio.sleep(0.1)

    async def _close(self) -> None:
        await asyncio.sleep(2)  # whoever was asked while its process was stopped answers now
        self.witness.whole_journal()
        for place in self.workers():
            assert place.worker is not None
            for complaint in left_behind(place.worker, place.process):
                self.witness.complain(f"invariant 18: {place.process.name}: {complaint}")
            if not await self.within(place, place.worker.close(0.0), patience_s=30.0):
                self.witness.complain(f"{place.process.name} can't be closed")
            if any(not task.done() for task in place.process.tasks):
                self.witness.complain(f"invariant 18: {place.process.name} leaves tasks behind")
        self._is_over = True
        for words in self.loop.broken:
            self.witness.complain(f"the loop was told: {words}")


def _defaults(definition: Definition) -> dict[str, Any]:
    return {name: schema["default"] for name, schema in definition.inputs.items() if "default" in schema}


def _too_long(*_: object) -> None:
    raise Stuck("some code turns without end: " + "".join(traceback.format_stack(limit=9)))


def simulate(seed: int, *, plan: Definition | None = None, is_fleet: bool = False) -> Outcome:
    """What comes of a seed; `is_fleet`: on several machines, with lanes, labels and a host that loses things."""
    return lived(Simulation(seed, plan=plan, is_fleet=is_fleet))


def lived(simulation: Simulation) -> Outcome:
    """What comes of a simulation that has not begun yet."""
    loop, witness = simulation.loop, simulation.witness
    broken: list[str] = []
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, REAL_S_MAX)
    try:
        loop.run_until_complete(simulation.day())
    except Stuck as error:
        broken.append(f"invariant 15: {error}")
    except RuntimeError as error:
        if not witness.broken:
            broken.append(repr(error))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        bury(loop, simulation.processes)
    digest = hashlib.sha256(b"".join(record.hash for record in simulation.store._places)).hexdigest()
    statuses = [story.run.status.value for story in witness.stories.values()]
    events = len(simulation.store._places)
    broken = [*witness.broken, *broken]
    is_fleet = simulation.lanes is not None
    return Outcome(simulation.seed, broken, witness.tale, digest, events, statuses, is_fleet)
