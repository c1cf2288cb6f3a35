"""Logs: JSON lines in a day's file, words on stderr, nothing on stdout."""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from handrail import logs
from handrail.foundation.log_text import clean_logs_with
from handrail.logs import DayFileHandler, remove_old, start_logging, stop_logging

log = logging.getLogger("handrail.test")


@pytest.fixture(autouse=True)
def quiet_end() -> Iterator[None]:
    yield
    stop_logging()


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]


def test_a_record_is_a_json_line_with_the_fields_that_the_caller_gives(tmp_path: Path) -> None:
    start_logging(tmp_path / "logs", level="warning", days=3)
    log.info("did %s", "it", extra={"run": "run_a", "step": "tag", "duration_ms": 12})
    (line,) = lines(tmp_path / "logs")
    assert line["message"] == "did it"
    assert (line["level"], line["from"], line["run"], line["step"]) == ("info", "handrail.test", "run_a", "tag")
    assert line["duration_ms"] == 12
    assert str(line["at"]).endswith("Z")


def test_stderr_shows_text_from_its_level_up_and_stdout_stays_empty(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging(None, level="warning", days=3)
    log.info("too quiet")
    log.warning("look out", extra={"run": "run_a"})
    try:
        raise ValueError("boom")
    except ValueError:
        log.exception("it broke")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "too quiet" not in shown.err
    assert "warning: look out (run=run_a)" in shown.err
    assert "ValueError: boom" in shown.err


def test_debug_reaches_the_file_only_when_asked_for(tmp_path: Path) -> None:
    start_logging(tmp_path, level="error", days=3)
    log.debug("hidden")
    start_logging(tmp_path, level="debug", days=3)
    log.debug("shown")
    try:
        raise ValueError("boom")
    except ValueError:
        log.exception("with a trace")
    assert [line["message"] for line in lines(tmp_path)] == ["shown", "with a trace"]
    assert "ValueError: boom" in str(lines(tmp_path)[1]["trace"])


def test_no_file_is_created_before_the_first_record(tmp_path: Path) -> None:
    start_logging(tmp_path / "logs", level="warning", days=3)
    assert not (tmp_path / "logs").exists()


def test_old_days_are_removed_and_other_files_left_alone(tmp_path: Path) -> None:
    for name in ("handrail-2026-01-01.jsonl", "handrail-2026-01-09.jsonl", "other-2026-01-01.jsonl"):
        (tmp_path / name).write_text("")
    remove_old(tmp_path, before="2026-01-05")
    assert {file.name for file in tmp_path.iterdir()} == {"handrail-2026-01-09.jsonl", "other-2026-01-01.jsonl"}


def test_a_new_day_opens_a_new_file_and_removes_the_old(tmp_path: Path) -> None:
    handler = DayFileHandler(tmp_path, days=2)
    for day in (1, 2, 9):
        record = logging.makeLogRecord({"msg": f"day {day}", "levelname": "INFO", "created": day * 86_400.0})
        handler.emit(record)
    handler.close()
    assert {file.name for file in tmp_path.iterdir()} == {"handrail-1970-01-10.jsonl"}


def test_a_full_file_is_followed_by_the_next_part_and_no_line_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "FILE_BYTES_MAX", 2_000)
    start_logging(tmp_path, level="error", days=3)
    for n in range(50):
        log.info("line %d", n)
    assert len(list(tmp_path.iterdir())) > 1
    assert sorted(str(line["message"]) for line in lines(tmp_path)) == sorted(f"line {n}" for n in range(50))
    start_logging(tmp_path, level="error", days=3)  # another process goes on in the last part
    files = len(list(tmp_path.iterdir()))
    log.info("one more")
    assert len(list(tmp_path.iterdir())) == files


def test_only_the_newest_parts_of_a_day_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "FILE_BYTES_MAX", 200)
    start_logging(tmp_path, level="error", days=3)
    for n in range(200):
        log.info("line %d", n)
    assert len(list(tmp_path.iterdir())) == logs.PARTS_MAX
    assert any(line["message"] == "line 199" for line in lines(tmp_path))
    remove_old(tmp_path, before="9999-01-01")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such mode")
@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_log_files_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    day = datetime.now(UTC).date().isoformat()
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / f"handrail-{day}.jsonl").touch(mode=0o644)  # left by an earlier version
    (tmp_path / "logs" / f"handrail-{day}.jsonl").chmod(0o644)
    before = os.umask(umask)
    try:
        start_logging(tmp_path / "logs", level="error", days=3)
        log.info("secret")
        start_logging(tmp_path / "new" / "logs", level="error", days=3)
        log.info("secret")
    finally:
        os.umask(before)
    files = [*(tmp_path / "logs").iterdir(), *(tmp_path / "new" / "logs").iterdir()]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_link_in_place_of_a_log_file_is_not_written_through(tmp_path: Path) -> None:
    day = datetime.now(UTC).date().isoformat()
    (tmp_path / f"handrail-{day}.jsonl").symlink_to(tmp_path / "elsewhere")
    start_logging(tmp_path, level="error", days=3)
    log.info("secret")
    assert not (tmp_path / "elsewhere").exists()


def test_a_message_can_not_pass_for_two_records_nor_control_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start_logging(tmp_path, level="warning", days=3)
    log.warning("a \x1b[2J\u202e\nerror: forged")
    assert capsys.readouterr().err == "warning: a \\x1b[2J\\u202e\n    error: forged\n"
    (file,) = tmp_path.iterdir()
    assert "\u202e" not in file.read_text()
    assert lines(tmp_path)[0]["message"] == "a \x1b[2J\u202e\nerror: forged"


def test_a_log_that_can_not_be_written_is_said_once_and_shows_no_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "file" / "logs"
    folder.parent.write_text("")
    start_logging(folder, level="error", days=3)
    for _ in range(2):
        log.info("it said %s", "hunter22")
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.partition(": ")[2].rpartition(":")[0] for line in err.splitlines()] == [
        f"the log in {folder} can't be written"
    ]


def test_a_record_that_can_not_be_formatted_is_not_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging(None, level="warning", days=3)
    log.warning("no such value: %d", "hunter22")
    assert capsys.readouterr() == ("", "warning: a line of the log can't be written: TypeError\n")


def test_secrets_are_kept_out_of_every_part_of_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start_logging(tmp_path, level="warning", days=3)
    clean_logs_with(lambda text: text.replace("hunter22", "[redacted]"))
    try:
        raise ValueError("the key is hunter22")
    except ValueError:
        log.exception("it said %s", "hunter22", extra={"run": "hunter22", "duration_ms": 3})
    (line,) = lines(tmp_path)
    assert (line["message"], line["run"], line["duration_ms"]) == ("it said [redacted]", "[redacted]", 3)
    assert "the key is [redacted]" in str(line["trace"])
    shown = capsys.readouterr().err
    assert "hunter22" not in shown
    assert "it said [redacted] (run=[redacted]" in shown
