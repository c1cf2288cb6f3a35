"""What a check-up finds: one value for each thing that was looked at, with words on how to mend it.

Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How a thing is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """A thing that was looked at."""

    name: str
    level: Level
    message: str
    fix: str = ""


def ok(name: str, message: str) -> Check:
    """It is as it should be."""
    return Check(name, Level.OK, message)


def warn(name: str, message: str, fix: str) -> Check:
    """It works, but a person should know."""
    return Check(name, Level.WARN, message, fix)


def fail(name: str, message: str, fix: str) -> Check:
    """It does not work."""
    return Check(name, Level.FAIL, message, fix)
