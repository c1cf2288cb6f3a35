"""A person's shell for tests: commands in this process, in real ones, and in a real terminal."""

from __future__ import annotations

import json
import os
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from handrail.interfaces.cli.program import program
from support import trust_project

PATIENCE_S = 30.0


class Shell:
    """A person's shell with a home and a project of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"

    def write(self, text: str, name: str = "plan.yaml") -> str:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, encoding="utf-8")
        return str(self.folder / name)

    def trust(self) -> None:
        """What a person does after a look at the project's files."""
        trust_project(self.home, self.folder)

    def run(self, *words: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(program, [*self._chosen, *words], input=stdin, prog_name="handrail")

    def json(self, *words: str, code: int = 0) -> Any:
        result = self.run(*words, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def configure(self, text: str) -> None:
        """Write config.toml in HANDRAIL_HOME."""
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "config.toml").write_text(text, encoding="utf-8")

    def seen(self, run: str, step: str = "") -> list[str]:
        """The options of an approval by somebody without a terminal who has looked at what is asked."""
        asked = self.json("approvals")["approvals"]
        (one,) = [one for one in asked if one["run"] == run and step in ("", one["step"])]
        return ["--digest", one["digest"]]

    def execute(self, script: str) -> None:
        """What somebody with a SQLite shell can do to the journal."""
        with sqlite3.connect(self.home / "journal.db") as database:
            triggers = database.execute("select name from sqlite_master where type = 'trigger'").fetchall()
            for (trigger,) in triggers:
                database.execute(f"drop trigger {trigger}")
            database.executescript(script)
        database.close()

    def process(self, *words: str) -> Process:
        """The same command as a process of its own."""
        return Process([sys.executable, "-m", "handrail", *self._chosen, *words], self.folder)

    def terminal(self, *words: str, typed: str = "", **environment: str) -> str:
        """All that a command shows in a terminal of 100 columns, where this is typed."""
        command = [sys.executable, "-m", "handrail", *self._chosen, *words]
        return in_terminal(command, self.folder, typed, environment)

    @property
    def _chosen(self) -> list[str]:
        return ["--home", str(self.home), "--project", str(self.folder)]


class Process:
    """A command that runs beside the test."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def line(self) -> str:
        """The next line of its stdout."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """As the power would."""
        self._process.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        self._process.communicate()

    def end(self) -> tuple[int, str, str]:
        """Its exit code, stdout and stderr."""
        out, err = self._process.communicate(timeout=PATIENCE_S)
        return self._process.returncode, out, err


def until(holds: Callable[[], Any]) -> Any:
    """Wait until something is the case: what it says then."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if value := holds():
            return value
        time.sleep(0.05)
    raise AssertionError("it never came to that")


def in_terminal(command: list[str], folder: Path, typed: str, environment: dict[str, str]) -> str:
    """All that a command shows in a real terminal."""
    import pty  # only POSIX has it

    ours, theirs = pty.openpty()
    size = {"COLUMNS": "100", "LINES": "40", "TERM": "xterm-256color", "PYTHONUTF8": "1"}
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    process = subprocess.Popen(
        command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env={**inherited, **size, **environment}
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    shown, deadline = b"", time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 0.2)[0]:
                continue
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # how a terminal says that the other side is gone
                break
            if not piece:
                break
            shown += piece
    finally:
        os.close(ours)
        process.wait(timeout=PATIENCE_S)
    return shown.decode("utf-8", errors="replace")
