"""Logging: JSON lines in a file under HANDRAIL_HOME/logs, readable text on stderr, nothing on stdout.

One file per day, which all processes append to, and the next part of it when one is full. Files are private, never
renamed, and old ones are deleted. A record has the process, the ids of the task that logs it (project, run, step,
trace: foundation/log_context.py), and what the caller gives: `log.info("...", extra={"duration_ms": 12})`."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from handrail.foundation.atomic_file import make_private_folder
from handrail.foundation.log_context import log_ids
from handrail.foundation.log_text import clean_log_text, clean_logs_with
from handrail.foundation.private_append import open_to_append
from handrail.foundation.visible_text import visible, visible_json

IDS: Final = ("project", "run", "step", "trace_id")
FIELDS: Final = ("run", "step", "attempt", "duration_ms")
FILE_BYTES_MAX: Final = 50_000_000
PARTS_MAX: Final = 4
"""How many files of one day are kept: when the next starts, the oldest part is deleted."""
ROOT: Final = "handrail"


def start_logging(folder: Path | None, *, level: str, days: int) -> None:
    """Log to stderr from `level` up, and to a daily file in `folder`, kept for `days`."""
    stop_logging()
    root = logging.getLogger(ROOT)
    root.setLevel(logging.DEBUG if level == "debug" else logging.INFO)
    root.propagate = False
    stderr = StderrHandler(sys.stderr)
    stderr.setLevel(level.upper())
    stderr.setFormatter(TextFormatter())
    root.addHandler(stderr)
    if folder is not None:
        root.addHandler(DayFileHandler(folder, days=days))


def stop_logging() -> None:
    """Close what start_logging opened, and pass records to Python's root logger again."""
    root = logging.getLogger(ROOT)
    root.propagate = True
    clean_logs_with(None)
    for handler in root.handlers[:]:
        root.removeHandler(handler)
        handler.close()


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line of JSON."""
        line: dict[str, Any] = {"at": _instant(record), "level": record.levelname.lower(), "from": record.name}
        line["process"] = record.process
        ids = log_ids()
        line |= {name: ids[name] for name in IDS if name in ids}
        line |= {name: _cleaned(getattr(record, name)) for name in FIELDS if hasattr(record, name)}
        line["message"] = clean_log_text(record.getMessage())
        if record.exc_info:
            line["trace"] = clean_log_text(self.formatException(record.exc_info))
        return visible_json(msgspec.json.encode(line, enc_hook=str).decode())


class TextFormatter(logging.Formatter):
    """Formats a record for people."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line of text."""
        given = [f"{name}={getattr(record, name)}" for name in FIELDS if hasattr(record, name)]
        tail = f" ({', '.join(given)})" if given else ""
        trace = "\n" + self.formatException(record.exc_info) if record.exc_info else ""
        # Lines after the first are indented: a message with a line end can't pass for two records.
        text = f"{record.getMessage()}{tail}{trace}".replace("\n", "\n    ")
        return visible(clean_log_text(f"{record.levelname.lower()}: {text}"))


class QuietHandler(logging.Handler):
    """Says once, in one line, that it can't write. Python's own way would print the record as it is: with secrets."""

    has_complained = False

    def handleError(self, _record: logging.LogRecord) -> None:  # noqa: N802 - Python's own name
        """Called by Python, or by `emit`, within the handling of an error."""
        error = sys.exc_info()[1]
        if self.has_complained or sys.stderr is None:
            return
        self.has_complained = True
        reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
        with suppress(OSError, ValueError):  # stderr itself may be closed
            sys.stderr.write(f"warning: {self.what} can't be written: {reason}\n")

    @property
    def what(self) -> str:
        """What it writes."""
        return "a line of the log"


class StderrHandler(QuietHandler, logging.StreamHandler[IO[str]]):
    """Writes records for people."""


class DayFileHandler(QuietHandler):
    """Appends whole lines to `handrail-<day>.jsonl`, and when that is full to `handrail-<day>.1.jsonl`, and so on."""

    def __init__(self, folder: Path, *, days: int) -> None:
        super().__init__(logging.DEBUG)
        self.folder, self.days = folder, days
        self.setFormatter(JsonFormatter())
        self._day = ""
        self._part = 0
        self._file: IO[str] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; opens today's file first if needed."""
        try:
            file = self._today(_instant(record)[:10])
            file.write(self.format(record) + "\n")
            file.flush()  # one write per line, so that lines of several processes don't mix
        except (OSError, ValueError):  # the latter: another thread closed it
            self.handleError(record)

    @property
    def what(self) -> str:
        """What it writes."""
        return visible(f"the log in {self.folder}")

    def close(self) -> None:
        """Close today's file."""
        if self._file is not None:
            self._file.close()
            self._file = None
        super().close()

    def _today(self, day: str) -> IO[str]:
        """The file for the next line: another one on a new day, or when the last part is full."""
        if self._file is None or day != self._day:
            make_private_folder(self.folder)
            remove_old(self.folder, before=_days_before(day, self.days))
            self._day, self._part = day, max(_parts(self.folder, day), default=0)
            self._file = self._opened()
        while self._file.tell() >= FILE_BYTES_MAX:
            self._part += 1
            oldest = _name(day, self._part - PARTS_MAX) if self._part >= PARTS_MAX else None
            self._file = self._opened()
            if oldest is not None:
                (self.folder / oldest).unlink(missing_ok=True)
        return self._file

    def _opened(self) -> IO[str]:
        if self._file is not None:
            self._file.close()
            self._file = None
        file = os.fdopen(open_to_append(self.folder / _name(self._day, self._part)), "a", encoding="utf-8")
        file.seek(0, os.SEEK_END)  # so that `tell` knows what is in it already
        return file


def _cleaned(value: Any) -> Any:
    return clean_log_text(value) if isinstance(value, str) else value


def remove_old(folder: Path, *, before: str) -> None:
    """Remove the log files of days before this one."""
    for file in folder.glob(f"{ROOT}-????-??-??*.jsonl"):
        if file.name.removeprefix(f"{ROOT}-")[:10] < before:
            file.unlink(missing_ok=True)


def _name(day: str, part: int) -> str:
    return f"{ROOT}-{day}.{part}.jsonl" if part else f"{ROOT}-{day}.jsonl"


def _parts(folder: Path, day: str) -> list[int]:
    """The numbers of the parts of a day that there are."""
    found = (file.name.split(".")[1] for file in folder.glob(f"{ROOT}-{day}.*.jsonl"))
    return [int(number) for number in found if number.isdecimal()]


def _days_before(day: str, days: int) -> str:
    return (datetime.fromisoformat(day) - timedelta(days=days)).date().isoformat()


def _instant(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
