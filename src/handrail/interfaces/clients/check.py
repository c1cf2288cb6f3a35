"""The results of `handrail doctor`: one value for each check, with how to fix it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """A check: what was looked at, the result, and the fix."""

    name: str
    level: Level
    message: str
    fix: str = ""


def ok(name: str, message: str) -> Check:
    """It works."""
    return Check(name, Level.OK, message)


def warn(name: str, message: str, fix: str) -> Check:
    """It works, but something should be fixed."""
    return Check(name, Level.WARN, message, fix)


def fail(name: str, message: str, fix: str) -> Check:
    """It does not work."""
    return Check(name, Level.FAIL, message, fix)
