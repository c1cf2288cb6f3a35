"""`/healthz` as a part of the site: the whole report for who has a token of this home, and only levels for others.

Words can name folders, addresses and tool servers, which a stranger must not learn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from handrail.domain.health.check import HealthStatus
from handrail.interfaces.health.live_checks import HealthReport
from handrail.interfaces.web.guard import Guard
from handrail.interfaces.web.responses import json_response
from handrail.interfaces.web.site import as_response

PATH: Final = "/healthz"


class HealthPart:
    """Answers how everything is."""

    def __init__(self, report: Callable[[], Awaitable[HealthReport]], guards: Sequence[Guard]) -> None:
        """Each of the guards knows a token that opens the words."""
        self._report, self._guards = report, guards

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
        """Nothing has to be opened."""
        yield

    async def close(self) -> None:
        """Nothing has to be closed."""

    async def _answer(self, request: Request) -> Response:
        report = await self._report()
        status = 503 if report.status is HealthStatus.FAILED else 200
        is_known = any(guard.check_token(request.scope["headers"]) is None for guard in self._guards)
        data = report if is_known else _levels(report)
        return as_response(json_response(status, data))


def _levels(report: HealthReport) -> dict[str, object]:
    kinds = [{"name": check.kind, "level": check.level} for check in report.checks]
    return {"status": report.status, "checks": kinds, "at": report.at}
