"""The Temporal host: a short workflow of a fixed kind for each run, one activity with heartbeats for each stretch.

Async. Imported only when a setting names it: the library is an extra, and takes long to load. Temporal places, waits
for timers and notices silent nodes; what a run has done is in the journal alone."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from temporalio import activity
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.common import (
    Priority,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.envconfig import ClientConfig
from temporalio.exceptions import ApplicationError
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import (
    CustomSlotSupplier,
    FixedSizeSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    UnsandboxedWorkflowRunner,
    Worker,
    WorkerTuner,
)

from handrail.domain.errors import Invalid, Unavailable
from handrail.engine.running.host import QUEUES_MAX, Conduct, HostState, Reason, Rest, Room, Wake
from handrail.hosts.queue_name import queue_name
from handrail.hosts.temporal_workflow import (
    CONDUCT,
    NAME,
    PROJECT,
    STATE,
    WAKE,
    WORKFLOW,
    Placement,
    RunWorkflow,
    Stretch,
)

SCHEME: Final = "temporal"
CONNECT_S: Final = 5.0
RPC_S: Final = 5.0
SLOTS: Final = 1_000
"""How many stretches one node takes at once from one queue; most of them only wait for their tools."""
LOOK_S: Final = 0.1
"""How often a node that is full or paused looks whether it is not any more."""
FULL_S: Final = 1.0
"""How soon a stretch that this node had no room for is placed again."""
STATES: Final = {Reason.OTHERS: "waiting", Reason.TIMER: "timer", Reason.LABELS: "needs a node"}
"""What Temporal's pages show as the state of a run; of one that has ended, how."""
GRACE_S: Final = 30.0
PRIORITY_MIDDLE: Final = 3
PRIORITY_FIRST: Final = 1
PRIORITY_LAST: Final = 5
ATTRIBUTES: Final = (PROJECT, WORKFLOW, STATE)

log = logging.getLogger(__name__)


class TemporalHost:
    """Places the runs of one project by a Temporal server."""

    def __init__(self, address: str, *, project: str, heartbeat_s: float) -> None:
        self.target, self.namespace = parsed(address)
        self.project = project
        self.heartbeat_s = heartbeat_s
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._has_attributes = False
        self._needs: OrderedDict[str, None] = OrderedDict()
        """What this node has that runs needed, the latest last."""
        self._workers: dict[str, Worker] = {}
        """By what their runs need."""
        self._offered = asyncio.Event()
        self._is_closing = False

    @property
    def name(self) -> str:
        """Where it is."""
        return f"{SCHEME}://{self.target}/{self.namespace}"

    async def wake(self, wake: Wake) -> None:
        """Start the workflow of the run, or tell the one that there is."""
        client = await self._connected()
        placement = Placement(
            run=wake.run,
            project=wake.project,
            heartbeat_s=self.heartbeat_s,
            priority_key=priority_key(wake.priority),
            has_attributes=self._has_attributes,
            needs=wake.needs,
        )
        try:
            await client.start_workflow(
                NAME,
                placement,
                id=wake.run,
                task_queue=queue_name(wake.project),
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                start_signal=WAKE if is_signalled(wake) else None,
                start_signal_args=[wake.needs] if wake.needs else [],
                search_attributes=self._attributes(wake),
                priority=Priority(priority_key=placement.priority_key, fairness_key=wake.project),
                rpc_timeout=timedelta(seconds=RPC_S),
            )
        except RPCError as error:
            if error.status is RPCStatusCode.INVALID_ARGUMENT:
                self._client = None  # the server may have lost our search attributes: look again
            raise self._unavailable(error) from error

    async def serve(self, conduct: Conduct, room: Room) -> None:
        """Take workflows and activities of this project, until this host is closed."""
        client = await self._connected()

        @activity.defn(name=CONDUCT)
        async def conducted(run: str) -> Stretch:
            return await self._conducted(conduct, run)

        self._workers = {}
        async with asyncio.TaskGroup() as group:
            while not self._is_closing:
                self._offered.clear()
                for needs in ("", *self._needs):
                    if needs not in self._workers:
                        worker = self._workers[needs] = self._worker(client, conducted, room, needs)
                        group.create_task(worker.run())
                for needs in [one for one in self._workers if one and one not in self._needs]:
                    group.create_task(self._workers.pop(needs).shutdown())
                await self._offered.wait()

    def offer(self, needs: str) -> None:
        """Serve the queue of runs that need this, too."""
        is_new = needs not in self._needs
        self._needs[needs] = None
        self._needs.move_to_end(needs)
        if is_new:
            if len(self._needs) > QUEUES_MAX:
                self._needs.popitem(last=False)
            self._offered.set()

    def _worker(self, client: Client, conducted: Callable[..., Any], room: Room, needs: str) -> Worker:
        beat = timedelta(seconds=self.heartbeat_s / 3)
        fixed = FixedSizeSlotSupplier(SLOTS)
        return Worker(
            client,
            task_queue=queue_name(self.project, needs),
            workflows=[] if needs else [RunWorkflow],
            activities=[conducted],
            # The workflow is ours and does nothing but what Temporal asks for: a sandbox would only cost time.
            workflow_runner=UnsandboxedWorkflowRunner(),
            tuner=WorkerTuner.create_composite(
                workflow_supplier=fixed,
                activity_supplier=RoomSlots(room),
                local_activity_supplier=fixed,
                nexus_supplier=fixed,
            ),
            max_heartbeat_throttle_interval=beat,
            default_heartbeat_throttle_interval=beat,
            graceful_shutdown_timeout=timedelta(seconds=GRACE_S),
        )

    async def close(self) -> None:
        """Take nothing more, and wait for the activities that are under way."""
        self._is_closing = True
        self._offered.set()
        workers, self._workers = self._workers, {}
        await asyncio.gather(*(worker.shutdown() for worker in workers.values() if worker.is_running))

    async def state(self) -> HostState:
        """Whether the server answers, and knows the namespace."""
        try:
            client = await self._connected()
            await client.service_client.check_health(timeout=timedelta(seconds=RPC_S))
        except (Unavailable, RPCError) as error:
            return HostState(name=self.name, problem=str(error))
        return HostState(name=self.name)

    async def _conducted(self, conduct: Conduct, run: str) -> Stretch:
        beats = asyncio.get_running_loop().create_task(self._beat())
        try:
            rest = await conduct(run)
        finally:
            beats.cancel()
        if rest.why is Reason.HANDED_OVER:  # as a failure, Temporal places it again by itself
            raise ApplicationError("this node gives the run up", next_retry_delay=timedelta(seconds=FULL_S))
        return Stretch(why=rest.why.value, until=rest.until, state=_state(rest))

    async def _beat(self) -> None:
        while True:  # not at once: most stretches are shorter, and each heartbeat is a call
            await asyncio.sleep(self.heartbeat_s / 3)
            activity.heartbeat()

    async def _connected(self) -> Client:
        async with self._connecting:
            if self._client is None:
                try:
                    client = await Client.connect(**self._connection())
                except (RuntimeError, RPCError) as error:
                    raise self._unavailable(error) from error
                self._has_attributes = await self._register(client)
                self._client = client
            return self._client

    def _connection(self) -> Mapping[str, Any]:
        """How to connect: where is our setting; keys and certificates are where Temporal's own tools look for them."""
        known = {**ClientConfig.load_client_connect_config()}
        wait = timedelta(seconds=CONNECT_S)
        own = {"target_host": self.target, "namespace": self.namespace, "connect_timeout": wait, "runtime": _runtime()}
        return {**known, **own}

    async def _register(self, client: Client) -> bool:
        """Make the search attributes that Temporal's own pages can list runs by; whether they are there."""
        wanted = {key.name for key in ATTRIBUTES}
        operator, wait = client.operator_service, timedelta(seconds=RPC_S)
        asked = ListSearchAttributesRequest(namespace=self.namespace)
        try:
            there = await operator.list_search_attributes(asked, timeout=wait)
            missing = wanted - set(there.custom_attributes)
            if missing:
                new = dict.fromkeys(missing, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD)
                await operator.add_search_attributes(
                    AddSearchAttributesRequest(namespace=self.namespace, search_attributes=new), timeout=wait
                )
                there = await operator.list_search_attributes(asked, timeout=wait)
        except RPCError as error:
            log.warning("%s: runs are placed without search attributes: %s", self.name, error)
            return False
        return wanted <= set(there.custom_attributes)

    def _attributes(self, wake: Wake) -> TypedSearchAttributes | None:
        if not self._has_attributes:
            return None
        values = ((PROJECT, wake.project), (WORKFLOW, wake.workflow), (STATE, wake.status))
        return TypedSearchAttributes([SearchAttributePair(key, value) for key, value in values])

    def _unavailable(self, error: Exception) -> Unavailable:
        return Unavailable(f"{self.name} does not answer: {error}", hint="runs wait in the journal until it does")


class RoomSlots(CustomSlotSupplier):
    """Lets a worker ask for another activity only while its node has room: not if it is full, paused or draining.

    The node counts the runs themselves. What is asked for by several polls at once may be too much: that is handed
    back (engine/running/stretch.py)."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._used = 0

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        """Wait until there is room."""
        while self._used >= SLOTS or self._room() == 0:  # noqa: ASYNC110 - the node has no event for it
            await asyncio.sleep(LOOK_S)
        return SlotPermit()

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        """A slot for an activity that comes with the answer to a workflow: that saves a poll."""
        try:
            return SlotPermit() if self._used < SLOTS and self._room() != 0 else None
        except RuntimeError:
            return None  # asked from a thread of the library: a node with slots counts in its own loop only

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """One more activity is under way."""
        self._used += 1

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        """It has ended, or there was none."""
        if ctx.slot_info is not None:
            self._used -= 1


@cache
def _runtime() -> Runtime:
    """The library's own threads, one set for a process; they log where we log, not on the terminal."""
    forwarding = LogForwardingConfig(logger=log, append_target_to_name=False)
    filtering = TelemetryFilter(core_level="WARN", other_level="ERROR")
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=filtering, forwarding=forwarding)))


def parsed(address: str) -> tuple[str, str]:
    """The server and the namespace of `temporal://host:port/namespace`."""
    parts = urlsplit(address)
    try:
        port = parts.port or 7233
    except ValueError:
        port = 0
    namespace = parts.path.strip("/") or "default"
    if parts.scheme != SCHEME or not parts.hostname or not port or "/" in namespace or parts.username is not None:
        raise Invalid(
            f"HANDRAIL_HOST is {address!r}: it is not the address of a Temporal server",
            hint="write temporal://host:7233/namespace; keys are where Temporal's own tools look for them",
        )
    return f"{parts.hostname}:{port}", namespace


def is_signalled(wake: Wake) -> bool:
    """Whether a workflow that there is gets a signal: not if the run has just started, nor when the sweep asks for the
    first time. It may only wait in a queue then, and a signal for each run there would make that queue slower. Who has
    what the run needs says so in any case: the workflow may just be about to end."""
    return bool(wake.needs) or wake.again > 1 or (wake.again == 0 and wake.n > 1)


def _state(rest: Rest) -> str:
    return rest.status if rest.why is Reason.ENDED else STATES.get(rest.why, "")


def priority_key(priority: int) -> int:
    """A priority of handrail, where more is sooner, as one of Temporal's five, where 1 is first."""
    return max(PRIORITY_FIRST, min(PRIORITY_LAST, PRIORITY_MIDDLE - priority))
