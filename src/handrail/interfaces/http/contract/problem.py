"""Problem details (RFC 9457): an error as an answer, with our code, name and hint, and the request that helps.

Pure. The errors are defined in domain/errors.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from handrail.domain.checks.finding import Finding
from handrail.domain.errors import (
    Conflict,
    Forbidden,
    HandrailError,
    Invalid,
    Limited,
    NotFound,
    Unavailable,
)
from handrail.engine.reading.step_view import Shown
from handrail.interfaces.http.contract.route import API

PROBLEM: Final = "application/problem+json"
FINDINGS_MAX: Final = 50
STATUS: Final[tuple[tuple[type[HandrailError], int], ...]] = (
    (NotFound, 404),
    (Invalid, 400),
    (Conflict, 409),
    (Forbidden, 403),
    (Limited, 429),
    (Unavailable, 503),
)


class NextRequest(Shown, frozen=True):
    """A request that shows what there is."""

    method: str
    path: str


class ProblemDetails(Shown, frozen=True):
    """What went wrong, and what to do next."""

    type: str
    title: str
    status: int
    detail: str
    code: int
    name: str
    hint: str = ""
    instance: str = ""
    next: NextRequest | None = None
    findings: tuple[Finding, ...] = ()
    retry_after: int = 0
    """In seconds, where time helps."""


def status_of(error: HandrailError) -> int:
    """The HTTP status of an error."""
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def problem_of(
    error: HandrailError, *, status: int | None = None, instance: str = "", run: str = "", retry_after: int = 0
) -> ProblemDetails:
    """An error as problem details; `run` is the run that the request is about."""
    return ProblemDetails(
        type=f"urn:handrail:problem:{error.name}",
        title=error.name.replace("_", " ").capitalize(),
        status=status or status_of(error),
        detail=str(error),
        code=error.code,
        name=error.name,
        hint=error.hint,
        instance=instance,
        next=_next(error, run),
        findings=error.findings[:FINDINGS_MAX] if isinstance(error, Invalid) else (),
        retry_after=retry_after,
    )


def _next(error: HandrailError, run: str) -> NextRequest | None:
    if isinstance(error, NotFound):
        found = next((path for word, path in LISTS.items() if str(error).startswith(f"there is no {word}")), "")
        if found == STEPS:
            return NextRequest(method="GET", path=f"{API}/runs/{run}/steps") if run else None
        return NextRequest(method="GET", path=API + found) if found else None
    if isinstance(error, Conflict) and run:
        return NextRequest(method="GET", path=f"{API}/runs/{run}")
    return None


STEPS: Final = "steps"
LISTS: Final[Mapping[str, str]] = {
    "run": "/runs",
    "workflow": "/library",
    "plan": "/plans",
    "rule": "/rules",
    "server": "/tools",
    "step": STEPS,
    "stream": "/journal",
}
