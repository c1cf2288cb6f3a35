"""Logs: JSON lines in a file under HANDRAIL_HOME/logs, readable words on stderr, nothing on stdout.

A file a day, appended to by every process at once and never renamed; old ones are removed. Records carry `run`,
`step` and `duration_ms` when the caller knows them: `log.info("...", extra={"run": run_id})`."""

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
    """Log to stderr from `level` up, and to a day's file in `folder`, kept for `days`."""
    stop_logging()
    root = logging.getLogger(ROOT)
    root.setLevel(logging.DEBUG if level == "debug" else logging.INFO)
    root.propagate = False
    words = logging.StreamHandler(sys.stderr)
    words.setLevel(level.upper())
    words.setFormatter(WordsFormatter())
    root.addHandler(words)
    if folder is not None:
        root.addHandler(DayFileHandler(folder, days=days))


def stop_logging() -> None:
    """Close what start_logging opened, and let the root of all logs hear again."""
    root = logging.getLogger(ROOT)
    root.propagate = True
    for handler in root.handlers[:]:
        root.removeHandler(handler)
        handler.close()


class JsonFormatter(logging.Formatter):
    """One record, one JSON object, one line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line of JSON."""
        line = {"at": _instant(record), "level": record.levelname.lower(), "from": record.name}
        line |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        line["message"] = record.getMessage()
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


class WordsFormatter(logging.Formatter):
    """One record as a person would read it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line of words."""
        known = [f"{name}={getattr(record, name)}" for name in FIELDS if hasattr(record, name)]
        tail = f" ({', '.join(known)})" if known else ""
        trace = "\n" + self.formatException(record.exc_info) if record.exc_info else ""
        return f"{record.levelname.lower()}: {record.getMessage()}{tail}{trace}"


class DayFileHandler(logging.Handler):
    """Appends whole lines to `handrail-<day>.jsonl`; a full day's file takes no more until tomorrow."""

    def __init__(self, folder: Path, *, days: int) -> None:
        super().__init__(logging.DEBUG)
        self.folder, self.days = folder, days
        self.setFormatter(JsonFormatter())
        self._day = ""
        self._file: IO[str] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, opening today's file first if need be."""
        try:
            file = self._today(_instant(record)[:10])
            if file.tell() < FILE_BYTES_MAX:
                file.write(self.format(record) + "\n")
                file.flush()
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
            self.folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)  # parents it makes would be open to all
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
