"""Logging: JSON lines in a file under HANDRAIL_HOME/logs, readable text on stderr, nothing on stdout.

One file per day, which all processes append to. Files are never renamed, and old ones are deleted. A record has `run`,
`step` and `duration_ms` if the caller gives them: `log.info("...", extra={"run": run_id})`."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Final

import msgspec

FIELDS: Final = ("run", "step", "attempt", "duration_ms")
FILE_BYTES_MAX: Final = 50_000_000
ROOT: Final = "handrail"


def start_logging(folder: Path | None, *, level: str, days: int) -> None:
    """Log to stderr from `level` up, and to a daily file in `folder`, kept for `days`."""
    stop_logging()
    root = logging.getLogger(ROOT)
    root.setLevel(logging.DEBUG if level == "debug" else logging.INFO)
    root.propagate = False
    stderr = logging.StreamHandler(sys.stderr)
    stderr.setLevel(level.upper())
    stderr.setFormatter(TextFormatter())
    root.addHandler(stderr)
    if folder is not None:
        root.addHandler(DayFileHandler(folder, days=days))


def stop_logging() -> None:
    """Close what start_logging opened, and pass records to Python's root logger again."""
    root = logging.getLogger(ROOT)
    root.propagate = True
    for handler in root.handlers[:]:
        root.removeHandler(handler)
        handler.close()


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line of JSON."""
        line = {"at": _instant(record), "level": record.levelname.lower(), "from": record.name}
        line |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        line["message"] = record.getMessage()
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


class TextFormatter(logging.Formatter):
    """Formats a record for people."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line of text."""
        given = [f"{name}={getattr(record, name)}" for name in FIELDS if hasattr(record, name)]
        tail = f" ({', '.join(given)})" if given else ""
        trace = "\n" + self.formatException(record.exc_info) if record.exc_info else ""
        return f"{record.levelname.lower()}: {record.getMessage()}{tail}{trace}"


class DayFileHandler(logging.Handler):
    """Appends whole lines to `handrail-<day>.jsonl`; a file that has reached its size limit gets no more lines."""

    def __init__(self, folder: Path, *, days: int) -> None:
        super().__init__(logging.DEBUG)
        self.folder, self.days = folder, days
        self.setFormatter(JsonFormatter())
        self._day = ""
        self._file: IO[str] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; opens today's file first if needed."""
        try:
            file = self._today(_instant(record)[:10])
            if file.tell() < FILE_BYTES_MAX:
                file.write(self.format(record) + "\n")
                file.flush()  # one write per line, so that lines of several processes don't mix
        except OSError:
            self.handleError(record)

    def close(self) -> None:
        """Close today's file."""
        if self._file is not None:
            self._file.close()
            self._file = None
        super().close()

    def _today(self, day: str) -> IO[str]:
        if self._file is None or day != self._day:
            if self._file is not None:
                self._file.close()
            # In two steps: mkdir applies the mode only to the last folder, and the home must be private too.
            self.folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.folder.mkdir(exist_ok=True, mode=0o700)
            remove_old(self.folder, before=_days_before(day, self.days))
            self._file = (self.folder / f"{ROOT}-{day}.jsonl").open("a", encoding="utf-8")
            self._day = day
        return self._file


def remove_old(folder: Path, *, before: str) -> None:
    """Remove the log files of days before this one."""
    for file in folder.glob(f"{ROOT}-????-??-??.jsonl"):
        if file.stem.removeprefix(f"{ROOT}-") < before:
            file.unlink(missing_ok=True)


def _days_before(day: str, days: int) -> str:
    return (datetime.fromisoformat(day) - timedelta(days=days)).date().isoformat()


def _instant(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
