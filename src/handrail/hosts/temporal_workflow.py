"""The one workflow that Temporal executes for handrail: conduct a run now, later, or at a node with other labels.

It never changes with the workflows of handrail: all that it knows of a run is its id and why its last stretch ended. It
ends as soon as a run waits only for others: the next wake starts it again, so that a waiting run costs nothing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy, SearchAttributeKey

from handrail.engine.running.host import Reason
from handrail.hosts.queue_name import queue_name

NAME: Final = "handrail.run"
CONDUCT: Final = "handrail.conduct"
WAKE: Final = "wake"
PROJECT: Final = SearchAttributeKey.for_keyword("HandrailProject")
WORKFLOW: Final = SearchAttributeKey.for_keyword("HandrailWorkflow")
STATE: Final = SearchAttributeKey.for_keyword("HandrailState")
STRETCH_MAX: Final = timedelta(days=3_650)
"""Temporal wants a limit; a stretch has none. Whether a node is alive is known by its heartbeats."""
RETRY: Final = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=5))
TURNS_MAX: Final = 500
"""After so many stretches the workflow continues as a new one: its history must not grow without end."""
GOES_ON: Final = (Reason.TIMER.value, Reason.OTHERS.value, Reason.LABELS.value, Reason.HANDED_OVER.value)


@dataclass
class Placement:
    """A run to place, in types that Temporal can store."""

    run: str
    project: str
    heartbeat_s: float
    priority_key: int
    has_attributes: bool
    labels: list[str]


@dataclass
class Stretch:
    """How a stretch ended, in types that Temporal can store."""

    why: str
    until: int | None
    labels: list[str]


@workflow.defn(name=NAME)
class RunWorkflow:
    """Places one run."""

    def __init__(self) -> None:
        self._wakes = 0

    @workflow.signal(name=WAKE)
    def wake(self) -> None:
        """Something has happened to the run."""
        self._wakes += 1

    @workflow.run
    async def run(self, given: Placement) -> str:
        """Conduct the run until it has ended or waits only for others: why the last stretch has ended."""
        labels = given.labels
        turns = 0
        while True:
            seen = self._wakes
            stretch = await self._conducted(given, labels)
            if given.has_attributes and stretch.why in GOES_ON:  # that it has ended, Temporal shows by itself
                workflow.upsert_search_attributes([STATE.value_set(stretch.why)])
            labels = stretch.labels if stretch.why == Reason.LABELS.value else []
            is_last = stretch.why not in GOES_ON or (stretch.why == Reason.OTHERS.value and self._wakes == seen)
            if is_last:
                return stretch.why
            if stretch.until is not None:
                await self._wait(seen, stretch.until)
            turns += 1
            if turns >= TURNS_MAX:
                given.labels = labels
                workflow.continue_as_new(given)

    async def _conducted(self, given: Placement, labels: list[str]) -> Stretch:
        stretch: Stretch = await workflow.execute_activity(
            CONDUCT,
            given.run,
            task_queue=queue_name(given.project, tuple(labels)),
            start_to_close_timeout=STRETCH_MAX,
            heartbeat_timeout=timedelta(seconds=given.heartbeat_s),
            retry_policy=RETRY,
            result_type=Stretch,
            priority=Priority(priority_key=given.priority_key, fairness_key=given.project),
        )
        return stretch

    async def _wait(self, seen: int, until: int) -> None:
        left = timedelta(milliseconds=max(0, until - int(workflow.now().timestamp() * 1_000)))
        try:
            await workflow.wait_condition(lambda: self._wakes > seen, timeout=left)
        except asyncio.TimeoutError:  # noqa: UP041 - as Temporal raises it on Python 3.11, too
            return
