"""The one workflow that Temporal executes for handrail: conduct a run now, later, or at a node that has what it needs.

It never changes with the workflows of handrail: all that it knows of a run is its id and why its last stretch ended. It
ends as soon as a run waits only for others, or for a node that has something: the next wake starts it again, so that a
waiting run costs nothing. A node that has what a run needs wakes it by itself, and serves the queue for that."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ActivityError, TimeoutType
from temporalio.exceptions import TimeoutError as TemporalTimeout

from handrail.engine.running.host import Reason, wait_ms
from handrail.hosts.queue_name import queue_name

NAME: Final = "handrail.run"
CONDUCT: Final = "handrail.conduct"
WAKE: Final = "wake"
PROJECT: Final = SearchAttributeKey.for_keyword("HandrailProject")
WORKFLOW: Final = SearchAttributeKey.for_keyword("HandrailWorkflow")
STATE: Final = SearchAttributeKey.for_keyword("HandrailState")
STRETCH_MAX: Final = timedelta(days=3_650)
"""Temporal wants a limit; a stretch has none. Whether a node is alive is known by its heartbeats."""
TAKEN_MAX: Final = timedelta(seconds=60)
"""How long a run stays in the queue for what it needs: the node that asked may be gone. Then it is asked for again."""
RETRY: Final = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=5))
TURNS_MAX: Final = 500
"""After so many stretches the workflow continues as a new one: its history must not grow without end."""
UNLESS_WOKEN: Final = (Reason.OTHERS.value, Reason.LABELS.value)
"""Reasons to end, unless something has happened meanwhile."""


@dataclass
class Placement:
    """A run to place, in types that Temporal can store."""

    run: str
    project: str
    heartbeat_s: float
    priority_key: int
    has_attributes: bool
    needs: str = ""


@dataclass
class Stretch:
    """How a stretch ended, in types that Temporal can store."""

    why: str
    until: int | None = None
    state: str = ""


@workflow.defn(name=NAME)
class RunWorkflow:
    """Places one run."""

    def __init__(self) -> None:
        self._wakes = 0
        self._needs = ""

    @workflow.signal(name=WAKE)
    def wake(self, needs: str = "") -> None:
        """Something has happened to the run, or a node is there that has what it needs."""
        self._wakes += 1
        self._needs = needs

    @workflow.run
    async def run(self, given: Placement) -> str:
        """Conduct the run until it has ended or waits only for others: why the last stretch has ended."""
        self._needs = self._needs or given.needs
        for _ in range(TURNS_MAX):
            seen, needs, self._needs = self._wakes, self._needs, ""
            stretch = await self._conducted(given, needs)
            if given.has_attributes and stretch.state:
                workflow.upsert_search_attributes([STATE.value_set(stretch.state)])
            is_woken = self._wakes > seen
            if not (stretch.why == Reason.TIMER.value or (stretch.why in UNLESS_WOKEN and is_woken)):
                return stretch.why
            if stretch.until is not None:
                await self._wait(seen, stretch.until)
        given.needs = self._needs
        return workflow.continue_as_new(given)

    async def _conducted(self, given: Placement, needs: str) -> Stretch:
        try:
            stretch: Stretch = await workflow.execute_activity(
                CONDUCT,
                given.run,
                task_queue=queue_name(given.project, needs),
                schedule_to_start_timeout=TAKEN_MAX if needs else None,
                start_to_close_timeout=STRETCH_MAX,
                heartbeat_timeout=timedelta(seconds=given.heartbeat_s),
                retry_policy=RETRY,
                result_type=Stretch,
                priority=Priority(priority_key=given.priority_key, fairness_key=given.project),
            )
        except ActivityError as error:
            if isinstance(error.cause, TemporalTimeout) and error.cause.type is TimeoutType.SCHEDULE_TO_START:
                return Stretch(why=Reason.LABELS.value)
            raise
        return stretch

    async def _wait(self, seen: int, until: int) -> None:
        left = timedelta(milliseconds=wait_ms(until, int(workflow.now().timestamp() * 1_000)))
        try:
            await workflow.wait_condition(lambda: self._wakes > seen, timeout=left)
        except asyncio.TimeoutError:  # noqa: UP041 - as Temporal raises it on Python 3.11, too
            return
