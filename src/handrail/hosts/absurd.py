"""The Absurd host: stretches are tasks in PostgreSQL, placed by Absurd's own SQL functions. It needs no other server.

Async. Its schema is installed by its own tool (`absurdctl init`); handrail only calls its functions, and makes its
queues. A claim that runs out is given to another node by Absurd; what a run has done is in the journal alone."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from handrail.domain.errors import HandrailError, Unavailable
from handrail.engine.passed_in import Clock
from handrail.engine.running.host import QUEUES_MAX, Conduct, HostState, Reason, Rest, Room, Wake, wait_ms
from handrail.hosts.queue_name import queue_name

TASK: Final = "handrail.conduct"
SLOTS: Final = 1_000
"""How many stretches one node takes at once; most of them only wait for their tools."""
CLAIMS_MAX: Final = 50
GATHER_S: Final = 0.02
"""How far apart claims are at least: one for many tasks costs as much as one for one."""
LOOK_S: Final = 0.05
LOOK_S_MAX: Final = 0.5
CLEAN_S: Final = 600.0
KEPT_S: Final = 86_400
"""How long Absurd keeps tasks that have ended."""
CLEANED_MAX: Final = 10_000

RETRY: Final = {"kind": "exponential", "base_seconds": 0.2, "max_seconds": 5}

HAS_SCHEMA: Final = "select to_regprocedure('absurd.spawn_task(text, text, jsonb, jsonb)') is not null"
CREATE: Final = "select absurd.create_queue($1)"
SPAWN: Final = "select task_id from absurd.spawn_task($1, $2, $3::text::jsonb, $4::text::jsonb)"
CLAIM: Final = "select run_id, params::text from absurd.claim_task($1, $2, $3, $4)"
EXTEND: Final = "select absurd.extend_claim($1, $2, $3)"
COMPLETE: Final = "select absurd.complete_run($1, $2, $3::text::jsonb)"
SLEEP: Final = "select absurd.schedule_run($1, $2, clock_timestamp() + $3::float8 * interval '1 millisecond')"
FAIL: Final = "select absurd.fail_run($1, $2, $3::text::jsonb)"
CLEAN: Final = "select absurd.cleanup_tasks($1, $2, $3)"

log = logging.getLogger(__name__)


class Database(Protocol):
    """The database of the store."""

    @property
    def name(self) -> str:
        """Where it is, without user and password."""
        ...

    def ask(self, query: str, *values: Any) -> Awaitable[list[Any]]:
        """The rows that a query finds; Unavailable if the database does not answer."""
        ...

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Call something soon after others have written; returns how to stop that."""
        ...


class AbsurdHost:
    """Places the runs of one project by Absurd."""

    def __init__(self, database: Database, clock: Clock, *, project: str, node: str, heartbeat_s: float) -> None:
        self.database = database
        self.clock = clock
        self.project = project
        self.node = node
        self.claim_s = max(1, math.ceil(heartbeat_s))
        self._queues: set[str] = set()
        """Those that are known to be there."""
        self._needs: OrderedDict[str, None] = OrderedDict()
        """What this node has that runs needed, the latest last."""
        self._going: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()
        self._is_closing = False

    @property
    def name(self) -> str:
        """Where it is."""
        return f"absurd in {self.database.name}"

    async def wake(self, wake: Wake) -> None:
        """Make a task, unless there is one for this run as of this event."""
        await self._spawn(wake.run, f"{wake.run}:{wake.n}:{wake.again}", wake.needs)
        self._news.set()

    async def serve(self, conduct: Conduct, room: Room) -> None:
        """Take tasks of this project, until this host is closed."""
        await self._queue("")
        deafen = self.database.listen(self._news.set)
        try:
            await self._serve(conduct, room)
        finally:
            deafen()

    def offer(self, needs: str) -> None:
        """Serve the queue of runs that need this, too."""
        self._needs[needs] = None
        self._needs.move_to_end(needs)
        if len(self._needs) > QUEUES_MAX:
            self._needs.popitem(last=False)

    async def close(self) -> None:
        """Take nothing more, and wait for the tasks that are under way."""
        self._is_closing = True
        self._news.set()
        await asyncio.gather(*self._going, return_exceptions=True)

    async def state(self) -> HostState:
        """Whether its functions are in the database."""
        try:
            await self._require_schema()
        except HandrailError as error:
            return HostState(name=self.name, problem=f"{error}; {error.hint}")
        return HostState(name=self.name)

    async def _serve(self, conduct: Conduct, room: Room) -> None:
        loop = asyncio.get_running_loop()
        wait_s, cleaned_s = LOOK_S, loop.time()
        while not self._is_closing:
            self._news.clear()
            claimed = 0
            try:
                for needs in ("", *self._needs):
                    claimed += await self._claim(conduct, room, needs)
                if loop.time() - cleaned_s > CLEAN_S:
                    cleaned_s = loop.time()
                    await self._clean()
            except HandrailError as error:
                log.warning("nothing is placed on this node now: %s", error)
                wait_s = LOOK_S_MAX
            if claimed:
                wait_s = LOOK_S
            else:
                await self._pause(wait_s)
                wait_s = min(2 * wait_s, LOOK_S_MAX)
            await asyncio.sleep(GATHER_S)

    async def _claim(self, conduct: Conduct, room: Room, needs: str) -> int:
        """Take tasks of a queue, as far as there is room; how many were taken."""
        left, free = room(), SLOTS - len(self._going)
        most = min(CLAIMS_MAX, free if left is None else min(left, free))
        if most <= 0:
            return 0
        queue = await self._queue(needs)
        tasks = await self.database.ask(CLAIM, queue, self.node, self.claim_s, most)
        for task, params in tasks:
            stretch = self._stretch(conduct, queue, task, json.loads(params)["run"])
            going = asyncio.get_running_loop().create_task(stretch)
            self._going.add(going)
            going.add_done_callback(self._going.discard)
        return len(tasks)

    async def _clean(self) -> None:
        for queue in sorted(self._queues):
            await self.database.ask(CLEAN, queue, KEPT_S, CLEANED_MAX)

    async def _pause(self, wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s):
                await self._news.wait()
        except TimeoutError:
            return

    async def _stretch(self, conduct: Conduct, queue: str, task: Any, run: str) -> None:
        beats = asyncio.get_running_loop().create_task(self._extend(queue, task))
        try:
            rest = await conduct(run)
            await self._end(queue, task, rest)
        except HandrailError as error:
            # The claim runs out by itself if this can't be written either.
            log.warning("run %s can't be executed here: %s", run, error)
            await self._fail(queue, task, str(error))
        except Exception:
            log.exception("run %s can't be executed here", run)
            await self._fail(queue, task, "unexpected error")
        finally:
            beats.cancel()

    async def _end(self, queue: str, task: Any, rest: Rest) -> None:
        match rest.why:
            case Reason.TIMER:
                # A distance, not an instant: the clock of the database may differ from this node's.
                await self.database.ask(SLEEP, queue, task, float(wait_ms(rest.until or 0, self.clock())))
            case Reason.HANDED_OVER:
                await self.database.ask(FAIL, queue, task, json.dumps({"message": rest.why.value}))
            case _:
                await self.database.ask(COMPLETE, queue, task, json.dumps({"why": rest.why.value}))

    async def _fail(self, queue: str, task: Any, message: str) -> None:
        try:
            await self.database.ask(FAIL, queue, task, json.dumps({"message": message}))
        except HandrailError as error:
            log.info("the claim of a stretch was not given back: %s", error)

    async def _extend(self, queue: str, task: Any) -> None:
        while True:
            await asyncio.sleep(self.claim_s / 3)
            try:
                await self.database.ask(EXTEND, queue, task, self.claim_s)
            except HandrailError as error:
                log.info("the claim of a stretch was not extended: %s", error)

    async def _spawn(self, run: str, key: str, needs: str) -> None:
        queue = await self._queue(needs)
        # No limit of attempts: a run is never given up.
        options = {"idempotency_key": key, "retry_strategy": RETRY}
        await self.database.ask(SPAWN, queue, TASK, json.dumps({"run": run}), json.dumps(options))

    async def _queue(self, needs: str) -> str:
        name = queue_name(self.project, needs)
        if name not in self._queues:
            await self._require_schema()
            await self.database.ask(CREATE, name)
            self._queues.add(name)
        return name

    async def _require_schema(self) -> None:
        ((has_schema,),) = await self.database.ask(HAS_SCHEMA)
        if not has_schema:
            raise Unavailable(
                f"Absurd is not installed in {self.database.name}",
                hint="install it there: `pip install absurdctl`, then `absurdctl init --database postgresql://...`",
            )
