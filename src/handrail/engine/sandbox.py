"""A sandbox, as whoever runs a command in one sees it: what is run, within which bounds, and what came of it.

A protocol and values only. The sandbox itself is in tools/."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from handrail.engine.tool import Progress

GIB: Final = 1_073_741_824

Stopped: TypeAlias = Literal["", "time", "memory", "processes", "output"]
"""The bound that a command went beyond; empty if it ended by itself."""


class Bounds(Struct, frozen=True, kw_only=True):
    """How much a command may use up, all its processes together."""

    time_ms: int = 60_000
    memory_bytes: int = GIB
    processes: int = 64
    output_bytes: int = 1_000_000
    """Of standard output and of standard error, each."""
    file_bytes: int = GIB
    """How large any one file may grow."""
    network: bool = False
    """Whether it may reach the network, this machine's own services included."""


class Job(Struct, frozen=True, kw_only=True):
    """A command to run: never read by a shell."""

    argv: tuple[str, ...]
    cwd: str = ""
    """The folder to start in, relative to the project's."""
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    bounds: Bounds = Bounds()
    writable: bool = True
    """Whether the project's files may be changed."""


class Ran(Struct, frozen=True, kw_only=True):
    """What came of a command."""

    exit: int
    stdout: str
    stderr: str
    took_ms: int
    stopped: Stopped = ""


class Sandbox(Protocol):
    """A place where a command can do no harm outside the project."""

    async def run(self, job: Job, *, progress: Progress = ...) -> Ran:
        """Run it to its end, or to one of its bounds; nothing of it is alive afterwards, also if the caller is
        cancelled. ToolFailed if it could not be begun."""
        ...

    async def trial(self) -> str:
        """Try to get out, once in a process: empty if nothing did, else why the sandbox may not be used, and how to
        get one that may."""
        ...


def as_output(ran: Ran) -> dict[str, Any]:
    """What a step gets to see of a command."""
    return {"exit": ran.exit, "stdout": ran.stdout, "stderr": ran.stderr}
