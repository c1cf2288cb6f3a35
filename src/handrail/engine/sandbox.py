"""The protocol of a sandbox: the command to run, its limits, and its result.

A protocol and values only. The sandbox itself is in tools/."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from handrail.engine.tool import Progress

GIB: Final = 1_073_741_824
WANTED_BYTES_MAX: Final = 50_000_000
"""The largest size of a file that is read from the view of a command."""

Stopped: TypeAlias = Literal["", "time", "memory", "processes", "output"]
"""The limit that a command exceeded; empty if it ended by itself."""


class Bounds(Struct, frozen=True, kw_only=True):
    """How much a command may use, all its processes together."""

    time_ms: int = 60_000
    memory_bytes: int = GIB
    processes: int = 64
    output_bytes: int = 1_000_000
    """For standard output and standard error, each."""
    file_bytes: int = GIB
    """The largest size of any file."""
    network: bool = False
    """Whether it may reach the network, this machine's own services included."""


class Job(Struct, frozen=True, kw_only=True):
    """A command to run, without a shell."""

    argv: tuple[str, ...]
    cwd: str = ""
    """The working folder, relative to the project's."""
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    bounds: Bounds = Bounds()
    writable: bool = True
    """Whether it may change files of the project, at least in its own view."""
    kept: bool = False
    """Whether its changes stay. If not, it works on a view of the project that is dropped at its end."""
    apart: bool = False
    """Whether it must work on such a view even without a sandbox, where other commands work in the project itself."""
    replaced: Mapping[str, bytes | None] = field(default_factory=dict)
    """Files that it finds with another content, or not at all, relative to the project: only for a job that is `apart`,
    because they are written into its view."""
    wanted: tuple[str, ...] = ()
    """Files to read from its view when it has ended, relative to the project."""
    shows: tuple[Path, ...] = ()
    """Places outside the project where its own tools are: shown read-only, except what the sandbox never shows."""


class Ran(Struct, frozen=True, kw_only=True):
    """The result of a command."""

    exit: int
    stdout: str
    stderr: str
    took_ms: int
    stopped: Stopped = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Those of the wanted files that are there: plain files, reached without links, within WANTED_BYTES_MAX."""
    written_ns: Mapping[str, int] = field(default_factory=dict)
    """When each of these was last written: as before the command, if it did not write it."""


class Sandbox(Protocol):
    """A place where a command can change nothing outside the project, and nothing in it unless that is to be kept."""

    @property
    def caveat(self) -> str:
        """What is weaker here than in a real sandbox, for the evidence; empty if nothing is."""
        ...

    async def run(self, job: Job, *, progress: Progress = ...) -> Ran:
        """Run it to its end, or to one of its limits; none of its processes is left afterwards, even if the caller is
        cancelled. ToolFailed if it could not be started."""
        ...

    async def trial(self) -> str:
        """Try to escape, once per process: empty if that failed, else why the sandbox can't be used, and how to get
        one that can."""
        ...


def as_output(ran: Ran) -> dict[str, Any]:
    """A command's result as a step's output."""
    return {"exit": ran.exit, "stdout": ran.stdout, "stderr": ran.stderr}
