"""Reads the log files of a home: one file per day and part, in order, and what is appended while somebody follows.

How lines are written: handrail/logs.py. A line that can't be read is left out: a crash may have cut it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from handrail.logs import ROOT

LINE_MAX: Final = 1_000_000
LOOK_S: Final = 0.2
LEVELS: Final = ("debug", "info", "warning", "error", "critical")


class LogFilter(Struct, frozen=True, kw_only=True):
    """Which lines are wanted."""

    run: str = ""
    level: str = "debug"
    since: str = ""
    """RFC 3339, as in the lines: they compare as text."""
    until: str = ""

    def wants(self, line: dict[str, Any]) -> bool:
        """Whether a line is one of them."""
        at, level = str(line.get("at", "")), str(line.get("level", ""))
        is_loud = level not in LEVELS or LEVELS.index(level) >= LEVELS.index(self.level)
        return is_loud and line.get("run") == (self.run or line.get("run")) and self.since <= at <= (self.until or at)


def latest(folder: Path, wanted: LogFilter, *, limit: int) -> list[dict[str, Any]]:
    """The last lines that are wanted, oldest first."""
    found: deque[dict[str, Any]] = deque(maxlen=limit)
    for file in _files(folder, wanted):
        with file.open("rb") as lines:
            found.extend(one for raw in lines if (one := _read(raw)) is not None and wanted.wants(one))
    return list(found)


def follow(folder: Path, wanted: LogFilter) -> Iterator[dict[str, Any]]:
    """Lines that are appended from now on, without end."""
    read = {file: file.stat().st_size for file in _files(folder, wanted)}
    while True:
        for file in _files(folder, wanted):
            for raw in _appended(file, read.get(file, 0)):
                read[file] = read.get(file, 0) + len(raw)
                if (one := _read(raw)) is not None and wanted.wants(one):
                    yield one
        time.sleep(LOOK_S)


def _appended(file: Path, after: int) -> Iterator[bytes]:
    """The whole lines behind a place; one that is being written is read by the next look."""
    with file.open("rb") as lines:
        lines.seek(after)
        yield from takewhile(lambda raw: raw.endswith(b"\n"), lines)


def _files(folder: Path, wanted: LogFilter) -> list[Path]:
    """The files that can have such lines, oldest first: `handrail-2026-11-18.jsonl`, then its part `.1.jsonl`."""
    first, last = wanted.since[:10], wanted.until[:10] or "9999-99-99"
    named = [(_day_and_part(file), file) for file in folder.glob(f"{ROOT}-????-??-??*.jsonl")]
    return [file for (day, _), file in sorted(named) if first <= day <= last]


def _day_and_part(file: Path) -> tuple[str, int]:
    day, _, rest = file.name.removeprefix(f"{ROOT}-").partition(".")
    part = rest.partition(".")[0]
    return day, int(part) if part.isdecimal() else 0


def _read(raw: bytes) -> dict[str, Any] | None:
    try:
        line = msgspec.json.decode(raw) if len(raw) <= LINE_MAX else None
    except msgspec.DecodeError:
        return None
    return line if isinstance(line, dict) else None
