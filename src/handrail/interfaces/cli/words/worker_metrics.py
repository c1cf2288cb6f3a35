"""The port of `handrail worker --metrics`: figures and health of a worker, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from handrail.assembly.opening import Assembly, ProjectAssemblies
from handrail.interfaces.health.health_part import HealthPart
from handrail.interfaces.health.live_checks import ProgramHealth
from handrail.interfaces.metrics.metrics_part import MetricsPart, metrics_guard
from handrail.interfaces.metrics.process_figures import ProcessFigures
from handrail.interfaces.web.http_server import Endpoint, ServeOptions, serve
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.site import Ready, SitePart
from handrail.settings import Settings


@asynccontextmanager
async def serving_metrics(
    settings: Settings, address: tuple[str, int, Sequence[str]], opener: ProjectAssemblies, process: ProcessFigures
) -> AsyncIterator[str]:
    """Serve the figures of the projects that are open, until the block ends; the address. It is given as the host and
    the port to listen on, and further names that scrapers may use."""
    host, port, allowed = address

    async def program() -> Assembly:
        return opener.opened[0]

    async def ready() -> None:
        await opener.opened[0].writer.reader.store.runs(limit=1)

    @asynccontextmanager
    async def parts(endpoint: Endpoint, _: HttpLimits) -> AsyncIterator[tuple[Sequence[SitePart], Ready]]:
        health = ProgramHealth(settings, program, lambda: opener.opened)
        guards = [endpoint.guard, metrics_guard(endpoint.guard, settings.home)]
        figures = MetricsPart(program, lambda: opener.opened, report=health.report, process=process, guards=guards)
        yield [HealthPart(health.report, guards), figures], ready

    loop = asyncio.get_running_loop()
    stop: asyncio.Future[None] = loop.create_future()
    started: asyncio.Future[Endpoint] = loop.create_future()
    options = ServeOptions(home=settings.home, host=host, port=port, allowed=allowed)
    serving = loop.create_task(serve(options, parts, stop=stop, on_ready=started.set_result, answered=process.answered))
    try:
        waiting: set[asyncio.Future[Any]] = {serving, started}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            await serving  # it could not start: this raises why
        yield started.result().url
    finally:
        if not stop.done():
            stop.set_result(None)
        await serving
