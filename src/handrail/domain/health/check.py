"""A health check: one value with its name, its level, its words, its age and its fix; and what several add up to."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType

from handrail.domain.errors import HandrailError


class CheckLevel(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class HealthStatus(StrEnum):
    """What all checks together say."""

    OK = "ok"
    DEGRADED = "degraded"
    """Everything is answered, but something should be looked at."""
    FAILED = "failed"
    """Something that is asked for can't be done now."""


class HealthCheck(Struct, frozen=True):
    """One check: its name, the result, and the fix."""

    name: str
    level: CheckLevel
    message: str
    fix: str = ""
    age_ms: int | UnsetType = UNSET
    """How long ago what it is about happened last: a beat, a checkpoint, a copy; of a problem, how long it lasts."""

    @property
    def kind(self) -> str:
        """Its name without the name of a tool server or witness: a word from a closed set."""
        return "tool_server" if self.name.startswith("tool server ") else self.name.partition(" ")[0]


def ok(name: str, message: str, *, age_ms: int | None = None) -> HealthCheck:
    """It works."""
    return HealthCheck(name, CheckLevel.OK, message, age_ms=_given(age_ms))


def warn(name: str, message: str, fix: str, *, age_ms: int | None = None) -> HealthCheck:
    """It works, but something should be fixed."""
    return HealthCheck(name, CheckLevel.WARN, message, fix, _given(age_ms))


def fail(name: str, message: str, fix: str, *, age_ms: int | None = None) -> HealthCheck:
    """It does not work."""
    return HealthCheck(name, CheckLevel.FAIL, message, fix, _given(age_ms))


def failed_with(name: str, error: HandrailError, *, age_ms: int | None = None) -> HealthCheck:
    """It does not work, for a reason that has its own words and its own fix."""
    return fail(name, str(error), error.hint, age_ms=age_ms)


def overall(checks: Iterable[HealthCheck]) -> HealthStatus:
    """What the checks add up to: the worst of them decides."""
    levels = {check.level for check in checks}
    if CheckLevel.FAIL in levels:
        return HealthStatus.FAILED
    return HealthStatus.DEGRADED if CheckLevel.WARN in levels else HealthStatus.OK


def _given(age_ms: int | None) -> int | UnsetType:
    return UNSET if age_ms is None else age_ms
