"""The results of `handrail doctor`: one value for each check, with how to fix it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CheckLevel(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One check: its name, the result, and the fix."""

    name: str
    level: CheckLevel
    message: str
    fix: str = ""


def ok(name: str, message: str) -> DoctorCheck:
    """It works."""
    return DoctorCheck(name, CheckLevel.OK, message)


def warn(name: str, message: str, fix: str) -> DoctorCheck:
    """It works, but something should be fixed."""
    return DoctorCheck(name, CheckLevel.WARN, message, fix)


def fail(name: str, message: str, fix: str) -> DoctorCheck:
    """It does not work."""
    return DoctorCheck(name, CheckLevel.FAIL, message, fix)
