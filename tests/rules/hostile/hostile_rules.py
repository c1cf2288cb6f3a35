"""Rules that mean harm, or are just broken: what each does, it does in a process of its own.

Only to be run in a sandbox that was tried. Each gets what it reaches for by its parameter `target`."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

import handrail.domain.checks.finding
import handrail.rules.plugins.plugin_host
from handrail.rules.sdk import Context, Finding, PythonRule, TryAgain, rule


def require_sandbox() -> None:
    """What would hurt this machine is not done on it, also if somebody runs it by mistake."""
    if socket.gethostname() != "sandbox":
        raise RuntimeError("this is no sandbox")


def hostile(name: str, **more: Any) -> Callable[[Callable[..., Any]], PythonRule]:
    return rule(name, version="1.0.0", reads="project", **more)


@hostile("crashes")
def crashes(*, target: str = "") -> list[Finding]:
    """Raises something."""
    raise RuntimeError("no luck\x1b[2J")


@hostile("dies")
def dies(*, target: str = "") -> list[Finding]:
    """Reads where nothing is."""
    ctypes.string_at(0)
    return []


@hostile("exits")
def exits(*, target: str = "") -> list[Finding]:
    """Ends the program, as if all were well."""
    sys.exit(0)


@hostile("exits_hard")
def exits_hard(*, target: str = "") -> list[Finding]:
    """Ends the process, as if all were well."""
    os._exit(0)


@hostile("forks")
def forks(*, target: str = "") -> list[Finding]:
    """A fork bomb."""
    require_sandbox()
    while True:
        try:
            os.fork()
        except OSError:
            continue
        finally:
            time.sleep(0.01)  # whoever looks on, many times a second, has other work too


@hostile("eats")
def eats(*, target: str = "") -> list[Finding]:
    """Takes 1 GB."""
    require_sandbox()
    held = bytearray(1_000_000_000)
    for place in range(0, len(held), 4_096):
        held[place] = 1
    return []


@hostile("prints")
def prints(*, target: str = "") -> list[Finding]:
    """Never ends talking."""
    while True:
        sys.stdout.write("la" * 1_000)


@hostile("floods")
def floods(*, target: str = "") -> list[Finding]:
    """Never ends talking, right into the answer."""
    for handle in range(3, 20):
        try:
            while True:
                os.write(handle, b'{"findings":[]}' * 1_000)
        except OSError:
            continue
    return []


@hostile("finds_for_ever")
def finds_for_ever(*, target: str = "") -> Iterator[Finding]:
    """Never ends finding."""
    while True:
        yield Finding("once more")


@hostile("sleeps", timeout="500ms")
def sleeps(*, target: str = "") -> list[Finding]:
    """Sleeps for ever, and hears nothing."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(60)


@hostile("writes")
def writes(*, target: str) -> Iterator[Finding]:
    """Writes where it must not."""
    for name in ("journal.db", "keys/key", "new"):
        try:
            Path(target, name).write_text("was here")
        except OSError as error:
            yield Finding(f"could not write {name}: {error.strerror}")


@hostile("peeks")
def peeks(*, target: str) -> Iterator[Finding]:
    """Reads what is private."""
    for file in Path(target).rglob("*"):
        if file.is_file():
            yield Finding(file.read_text())


@hostile("calls_home")
def calls_home(*, target: str) -> Iterator[Finding]:
    """Uses the network."""
    try:
        socket.create_connection(("127.0.0.1", int(target)), timeout=2).close()
    except OSError as error:
        yield Finding(f"could not connect: {error}")


@hostile("kills")
def kills(*, target: str) -> list[Finding]:
    """Kills whoever started it."""
    require_sandbox()
    for pid in (int(target), os.getppid()):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue
    time.sleep(0.2)
    return []


@hostile("patches")
def patches(*, target: str = "") -> list[Finding]:
    """Makes handrail's own code say that nothing is ever wrong."""
    vars(handrail.domain.checks.finding)["blocks"] = lambda *_: False
    vars(handrail.rules.plugins.plugin_host)["findings_of"] = lambda *_: "all is well"
    return [Finding("anything")]


@hostile("returns_a_number")
def returns_a_number(*, target: str = "") -> Any:
    """Returns what is no finding."""
    return 42


@hostile("returns_nothing")
def returns_nothing(*, target: str = "") -> Any:
    """Forgets to return."""


@hostile("finds_words")
def finds_words(*, target: str = "") -> Any:
    """Finds what is no finding."""
    return ["something is wrong"]


@hostile("says_nonsense")
def says_nonsense(*, target: str) -> list[Finding]:
    """Answers by itself, and not as a host would."""
    for handle in range(3, 20):
        try:
            os.write(handle, target.encode())
        except OSError:
            continue
    os._exit(0)


@hostile("asks_to_retry")
def asks_to_retry(*, target: str = "") -> list[Finding]:
    """Can't today."""
    raise TryAgain("the moon is full")


@hostile("escapes_words")
def escapes_words(context: Context, *, target: str = "") -> list[Finding]:
    """Moves the cursor of whoever reads it, and says far too much."""
    return [Finding("\x1b[2Jgone\u202e" + "x" * 5_000, where="", fix="\x07", excerpt="two\nlines")]


def lying(**card: Any) -> PythonRule:
    honest = crashes
    return PythonRule(honest.function, replace(honest.card, **card), honest.signature)


other_name = lying(name="somebody_else")
on_the_network = lying(name="on_the_network", reads="network")
no_version = lying(name="no_version", version="new")
talkative = lying(name="talkative", example={"words": "x" * 200_000})
requires_more = lying(name="requires_more", required=("nothing",))
