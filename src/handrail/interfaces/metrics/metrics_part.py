"""`/metrics` as a part of the site: follows the journal while the server runs, and writes everything when it is asked.

Scraping needs a token of its own (`metrics-token` in the home), which opens nothing else: a monitoring system should
not hold what lets it start runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from handrail.domain.errors import HandrailError
from handrail.domain.secrets.key_files import TokenName
from handrail.engine.measuring.journal_figures import JournalFigures
from handrail.interfaces.health.live_checks import HealthReport, OpenedPrograms, OpenProgram
from handrail.interfaces.metrics.exposition import exposed
from handrail.interfaces.metrics.process_figures import ProcessFigures
from handrail.interfaces.metrics.store_gauges import Gauges, ServerCounts, gauges_of
from handrail.interfaces.web.guard import Guard
from handrail.interfaces.web.site import as_response
from handrail.interfaces.web.token_file import open_token

PATH: Final = "/metrics"
RETRY_S: Final = 1.0
ANSWER_S: Final = 8.0
"""How long the store may take: Prometheus gives up after 10 s by default."""

log = logging.getLogger(__name__)


def metrics_guard(guard: Guard, home: Path) -> Guard:
    """The guard of scrapes: the same hosts, another token; none where MCP needs none."""
    return replace(guard, token=open_token(home, TokenName.METRICS)[0]) if guard.token is not None else guard


class MetricsPart:
    """Answers scrapes."""

    def __init__(
        self,
        open_program: OpenProgram,
        opened: OpenedPrograms,
        *,
        report: Callable[[], Awaitable[HealthReport]],
        process: ProcessFigures,
        guards: Sequence[Guard],
        counts: ServerCounts | None = None,
    ) -> None:
        self._open, self._opened, self._report = open_program, opened, report
        self._process, self._guards = process, guards
        self.counts = counts or ServerCounts()
        self._journal: JournalFigures | None = None

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """One address."""
        return [Route(PATH, self._answer)]

    @property
    def streams(self) -> frozenset[str]:
        """None."""
        return frozenset()

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Follow the journal, and watch the event loop."""
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(self._start()), loop.create_task(self._process.watch_loop())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._journal is not None:
                await self._journal.close()

    async def close(self) -> None:
        """Nothing is left to close."""

    async def _start(self) -> None:
        """Follow as soon as the store can be opened."""
        while self._journal is None:
            try:
                program = await self._open()
                figures = JournalFigures(program.writer.reader.store, self._process.figures)
                await figures.open()
                self._journal = figures
            except HandrailError as error:
                log.info("the figures wait for the store: %s", error)
                await asyncio.sleep(RETRY_S)

    async def _answer(self, request: Request) -> Response:
        refusals = [guard.check_token(request.scope["headers"]) for guard in self._guards]
        if all(refusal is not None for refusal in refusals):
            return as_response(next(refusal for refusal in refusals if refusal is not None))
        gauges = await self._gauges()
        content, media_type = exposed(self._process.figures, gauges, accept=request.headers.get("accept", ""))
        return Response(content, media_type=media_type)

    async def _gauges(self) -> Gauges:
        """How everything is now; if the store does not answer, what is known without it."""
        report = await self._report()
        try:
            async with asyncio.timeout(ANSWER_S):
                behind = await self._journal.behind() if self._journal is not None else 0
                return await gauges_of(self._opened(), report, self.counts, behind=behind)
        except (HandrailError, TimeoutError) as error:
            log.info("a scrape is answered without the store: %s", error)
            return await gauges_of((), report, self.counts, behind=0)
