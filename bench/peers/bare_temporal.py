"""A worker of Temporal with one workflow that has one activity, which does nothing (see bench/placing.py).

python -m bench.peers.bare_temporal HOST:PORT"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker


@activity.defn(name="nothing")
async def nothing(value: str) -> str:
    return value


@workflow.defn(name="bare")
class Bare:
    """One activity."""

    @workflow.run
    async def run(self, value: str) -> str:
        return str(await workflow.execute_activity("nothing", value, start_to_close_timeout=timedelta(seconds=30)))


async def main(address: str) -> None:
    worker = Worker(
        await Client.connect(address),
        task_queue="bare",
        workflows=[Bare],
        activities=[nothing],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_activities=1_000,
    )
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
