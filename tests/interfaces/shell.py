"""A person's shell for tests: commands in this process, in real ones, and in a real terminal."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from handrail.interfaces.cli.program import program
from support import trust_project

PATIENCE_S = 60.0


class Shell:
    """A person's shell with a home and a project of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        self.at = folder
        """Where the person is."""

    def write(self, text: str, name: str = "plan.yaml") -> str:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, encoding="utf-8")
        return str(self.folder / name)

    def trust(self) -> None:
        """What a person does after a look at the project's files."""
        trust_project(self.home, self.folder)

    def run(self, *words: str, stdin: str | None = None) -> Result:
        with chdir(self.at):
            return CliRunner(env=self._chosen).invoke(program, list(words), input=stdin, prog_name="handrail")

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
        return Process([sys.executable, "-m", "handrail", *words], self.folder, self._chosen)

    def terminal(self, *words: str, typed: str = "", **environment: str) -> str:
        """All that a command shows in a terminal of 100 columns, where this is typed."""
        command = [sys.executable, "-m", "handrail", *words]
        return in_terminal(command, self.folder, typed, {**self._chosen, **environment})

    def at_terminal(self, *words: str, **environment: str) -> Terminal:
        """A command at a terminal of its own, that runs beside the test."""
        return Terminal([sys.executable, "-m", "handrail", *words], self.at, {**self._chosen, **environment})

    @property
    def _chosen(self) -> dict[str, str]:
        """As most people have it: they are in the folder of their project, and never name it."""
        elsewhere = {"HANDRAIL_PROJECT": str(self.folder)} if self.at != self.folder else {}
        return {"HANDRAIL_HOME": str(self.home), **elsewhere}


class Process:
    """A command that runs beside the test."""

    def __init__(self, command: list[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()  # also of one that has ended by itself: else a later test is told of a file left open

    @property
    def pid(self) -> int:
        return self._process.pid

    def line(self) -> str:
        """The next line of its stdout."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def complaint(self) -> str:
        """The next line of its stderr."""
        assert self._process.stderr is not None
        return self._process.stderr.readline().strip()

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


def until(holds: Callable[[], Any], *, within_s: float = PATIENCE_S) -> Any:
    """Wait until something is the case: what it says then."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if value := holds():
            return value
        time.sleep(0.05)
    raise AssertionError("it never came to that")


def in_terminal(command: list[str], folder: Path, typed: str, environment: dict[str, str]) -> str:
    """All that a command shows in a real terminal."""
    with Terminal(command, folder, environment) as terminal:
        terminal.type(typed)
        terminal.end()
        return terminal.shown


class Terminal:
    """A command at a real terminal, its controlling one, so that Ctrl-C is a signal to it."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        import fcntl  # only POSIX has these
        import pty
        import termios

        def at_its_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that run under nohup hand down that it is ignored

        self._ours, theirs = pty.openpty()
        size = {"COLUMNS": "100", "LINES": "40", "TERM": "xterm-256color", "PYTHONUTF8": "1"}
        inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**inherited, **size, **environment},
            start_new_session=True,
            preexec_fn=at_its_terminal,
        )
        os.close(theirs)
        self._bytes = b""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(timeout=PATIENCE_S)
        os.close(self._ours)

    @property
    def shown(self) -> str:
        """All that it has shown so far."""
        return self._bytes.decode("utf-8", errors="replace")

    def type(self, text: str) -> None:
        """What somebody types."""
        os.write(self._ours, text.encode())

    def send(self, number: int) -> None:
        """A signal to it."""
        self._process.send_signal(number)

    def until(self, sign: re.Pattern[str]) -> re.Match[str]:
        """Wait until it shows this."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if found := sign.search(self.shown):
                return found
            if not self._read():
                break
        raise AssertionError(f"{sign.pattern!r} was never shown: {self.shown}")

    def end(self) -> int:
        """Its exit code, once it has ended and everything is read."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and self._read():
            pass
        return self._process.wait(timeout=PATIENCE_S)

    def _read(self) -> bool:
        """Read what there is; False once the other side is gone."""
        if not select.select([self._ours], [], [], 0.2)[0]:
            return True
        try:
            piece = os.read(self._ours, 65_536)
        except OSError:  # how a terminal says that the other side is gone
            return False
        self._bytes += piece
        return bool(piece)
