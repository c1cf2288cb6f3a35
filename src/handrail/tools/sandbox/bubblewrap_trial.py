"""The trial of a sandbox: a probe tries to escape from it, before any command may run in it.

It runs once per process for each bubblewrap, and finds a kernel with an unusual configuration before damage is done.
The long list of attempts is in the tests; these few show whether a whole layer of protection is missing."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from handrail.engine.sandbox import Bounds, Job, Ran, Sandbox
from handrail.engine.tool import ToolFailed

TRIAL_MS: Final = 10_000
WORDS_MAX: Final = 500
HOW_TO_GET: Final = (
    "ask a person to install bubblewrap 0.8 or newer (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install "
    "bubblewrap)"
)
CANARY: Final = "a canary of handrail"
PROBE: Final = r"""
import ctypes, json, os, socket, sys
given = json.load(sys.stdin)
out = []
def attempt(words, deed):
    try:
        if deed():
            out.append(words)
    except OSError:
        pass
def reaches(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as wire:
        wire.settimeout(1)
        wire.connect(address)
    return True
def writes(path):
    with open(path, "w") as file:
        file.write("was here")
libc = ctypes.CDLL(None, use_errno=True)
attempt("it reads files outside", lambda: given["canary"] in open(given["outside"] + "/canary").read())
attempt("it reads private files", lambda: given["canary"] in open(given["private"] + "/canary").read())
attempt("it writes files outside", lambda: writes(given["outside"] + "/written"))
attempt("it changes handrail's settings", lambda: writes(given["settings"]) or True)
attempt("it reaches this machine's network", lambda: reaches(socket.AF_INET, ("127.0.0.1", given["port"])))
attempt("it reaches this machine's sockets", lambda: reaches(socket.AF_UNIX, "\0" + given["name"]))
attempt("it reaches the machine around this one", lambda: socket.socket(40, socket.SOCK_STREAM).close() or True)
attempt("it sees other processes", lambda: sum(name.isdigit() for name in os.listdir("/proc")) > 2)
attempt("it reaches other processes", lambda: os.kill(given["pid"], 0) or True)
attempt("it sees our environment", lambda: set(os.environ) - {"HOME", "LANG", "LC_CTYPE", "PATH", "PWD", "TMPDIR"})
attempt("it holds capabilities", lambda: "CapEff:\t0000000000000000" not in open("/proc/self/status").read())
attempt("it changes the kernel's settings", lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY) >= 0)
attempt("it makes namespaces", lambda: libc.unshare(0x10000000) == 0)
print(json.dumps(out))
"""

_verdicts: dict[str, str] = {}


class Scene(NamedTuple):
    """A project for the trial only."""

    root: Path
    private: Sequence[Path]
    read: Sequence[Path]


async def tried(program: str, around: Callable[[Scene], Sandbox]) -> str:
    """The result of the trial: empty if nothing escaped from the sandbox that `around` makes, else what did."""
    if program not in _verdicts:
        _verdicts[program] = await _verdict(around)
    return _verdicts[program]


async def _verdict(around: Callable[[Scene], Sandbox]) -> str:
    with ExitStack() as scene:
        folder = Path(scene.enter_context(tempfile.TemporaryDirectory(prefix="handrail-trial-")))
        given = _scene(folder, scene)
        python = [Path(sys.base_prefix), Path(sys.base_exec_prefix)]
        sandbox = around(Scene(folder / "project", private=[folder / "project" / "private"], read=python))
        stdin = msgspec.json.encode(given).decode()
        try:
            ran = await sandbox.run(Job(argv=_command(), stdin=stdin, bounds=Bounds(time_ms=TRIAL_MS), kept=True))
        except ToolFailed as error:
            return f"{error.message}; {HOW_TO_GET}; user namespaces must be allowed"
        escapes = _escapes(ran)
        if (folder / "outside" / "written").exists():
            escapes.append("it writes files outside")
    if not escapes:
        return ""
    return f"the sandbox is not safe on this machine: {'; '.join(escapes)}; {HOW_TO_GET}"


def _command() -> tuple[str, ...]:
    """The probe in handrail's own Python, in isolated mode: a Python is always available."""
    return (str(Path(sys.executable).resolve()), "-I", "-S", "-c", PROBE)


def _scene(folder: Path, scene: ExitStack) -> dict[str, Any]:
    """Create targets for the probe, outside and inside of the sandbox."""
    private, settings = folder / "project" / "private", folder / "project" / ".handrail" / "config.toml"
    outside = folder / "outside"
    for place in (private, outside, settings.parent):
        place.mkdir(parents=True)
    for place in (private, outside):
        (place / "canary").write_text(CANARY)
    network = scene.enter_context(socket.create_server(("127.0.0.1", 0)))
    local = scene.enter_context(socket.socket(socket.AF_UNIX))
    local.bind("")  # the kernel chooses a free name
    local.listen()
    return {
        "canary": CANARY,
        "outside": str(outside),
        "private": str(private),
        "settings": str(settings),
        "port": network.getsockname()[1],
        "name": local.getsockname()[1:].decode(),
        "pid": os.getpid(),
    }


def _escapes(ran: Ran) -> list[str]:
    """The escapes that the probe reports; a probe without a report counts as one."""
    try:
        return msgspec.json.decode(ran.stdout, type=list[str])
    except msgspec.MsgspecError:
        words = (ran.stderr or ran.stdout).strip()[-WORDS_MAX:]
        return [f"the trial could not run (exit {ran.exit} {ran.stopped}): {words}"]
