"""`shell.run`: one command in a sandbox, and what its exit means for the step.

    [shell]
    allow = true
    timeout = "5m"
    memory = "2GiB"

No shell is involved: the arguments are passed as they are. Off until a person allows it. The sandbox is in
bubblewrap.py."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from handrail.domain.definition.duration import DURATION_PATTERN, duration_ms, duration_text
from handrail.domain.definition.model import Category, Effect
from handrail.domain.definition.size import SIZE_PATTERN, size_bytes
from handrail.domain.errors import Invalid
from handrail.domain.suggestion import did_you_mean
from handrail.engine.sandbox import Bounds, Job, Ran, as_output
from handrail.engine.tool import ToolCall, ToolFailed, ToolSpec
from handrail.foundation.rooted import PATH_LENGTH_MAX
from handrail.tools.arguments import closed
from handrail.tools.files.rooted import path_parts
from handrail.tools.python.function_tool import FunctionTool

if TYPE_CHECKING:
    from handrail.tools.sandbox.bubblewrap import Bubblewrap

WORDS_MAX: Final = 1_000
WORD_LENGTH_MAX: Final = 32_000
ARGUMENTS_BYTES_MAX: Final = 500_000
"""The size of the arguments and the environment together: less than the limit of any Linux."""
NAMES_MAX: Final = 100
STDIN_BYTES_MAX: Final = 1_000_000
TIME_MS_MAX: Final = 86_400_000
OUTPUT_BYTES_MAX: Final = 100_000_000
MEMORY_BYTES_MIN: Final = 16_777_216
SLACK_MS: Final = 5_000
"""The sandbox stops a slow command itself, with a better message; so the engine waits a little longer."""
SHOWN_LINES: Final = 5
SHOWN_LENGTH_MAX: Final = 1_000
PROGRAM: Final = "bubblewrap"
SHELL: Final = "shell.run"
OFF: Final = "shell.run is off here; only a person can allow commands, so ask one if the step needs it"

Size = Annotated[str, Meta(pattern=SIZE_PATTERN)]

_name = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class ShellConfiguration(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration of commands."""

    allow: bool = False
    network: bool = False
    timeout: Annotated[str, Meta(pattern=DURATION_PATTERN)] = "60s"
    memory: Size = "1GiB"
    processes: Annotated[int, Meta(ge=1, le=10_000)] = 64
    output: Size = "1MB"
    read: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    """Folders outside the project that commands may read."""
    write: bool = True
    """Whether what commands change in the project stays; if not, they work on a view that is dropped at their end."""
    bubblewrap: str = ""
    """The path of bubblewrap, if it is not on PATH. Only HANDRAIL_HOME may name it: it runs outside of the sandbox."""

    def bounds(self) -> Bounds:
        """The limits of every command."""
        return Bounds(
            time_ms=duration_ms(self.timeout),
            memory_bytes=size_bytes(self.memory),
            processes=self.processes,
            output_bytes=size_bytes(self.output),
            network=self.network,
        )


def shell_configuration(
    tables: Mapping[str, Any], *, home_tables: Mapping[str, Any] | None = None
) -> ShellConfiguration:
    """The configuration from the table [shell] of config.toml; Invalid names the key and how to write it.

    `home_tables` are those of HANDRAIL_HOME alone, if `tables` may also be a project's."""
    table = tables.get("shell", {})
    known = ShellConfiguration.__struct_fields__
    if not isinstance(table, Mapping):
        raise Invalid("config.toml: [shell] is not a table", hint="write it as a table: [shell] allow = true")
    for name in table:
        if name not in known:
            raise Invalid(f"[shell]: unknown key `{name}`", hint=did_you_mean(name, known))
    if home_tables is not None and table.get(PROGRAM) != home_tables.get("shell", {}).get(PROGRAM):
        message = f"config.toml: [shell] {PROGRAM} can't be set by a project: it is run outside of the sandbox"
        raise Invalid(message, hint="remove it there; a person can set it in HANDRAIL_HOME/config.toml")
    hint = 'write times like 30s or 5m, sizes like 512MiB or 1GB, read like ["/folder"]'
    try:
        found = msgspec.convert(table, ShellConfiguration)
    except msgspec.ValidationError as error:
        raise Invalid(f"config.toml: [shell]: {error}", hint=hint) from error
    if flaw := next(filter(None, _flaws(found)), ""):
        raise Invalid(f"config.toml: [shell] {flaw}", hint=hint)
    return found


def _flaws(found: ShellConfiguration) -> list[str]:
    bounds = found.bounds()
    relative = next((name for name in found.read if not Path(name).expanduser().is_absolute()), "")
    return [
        f"timeout is not between 1ms and {duration_text(TIME_MS_MAX)}" if not 0 < bounds.time_ms <= TIME_MS_MAX else "",
        "memory is less than 16MiB" if bounds.memory_bytes < MEMORY_BYTES_MIN else "",
        "output is more than 100MB" if bounds.output_bytes > OUTPUT_BYTES_MAX else "",
        f"read contains `{relative}`, which is not an absolute path" if relative else "",
    ]


def shell_sandbox(root: Path, configuration: ShellConfiguration, *, private: Sequence[Path]) -> Bubblewrap:
    """The sandbox around commands of a project."""
    # Imported late: plans without commands do not need it, and parts of it exist only on Linux.
    from handrail.tools.sandbox.bubblewrap import Bubblewrap

    read = [Path(name).expanduser() for name in configuration.read]
    return Bubblewrap(root, program=configuration.bubblewrap, private=private, read=read)


def can_run_commands(root: Path, configuration: ShellConfiguration) -> bool:
    """Whether commands are allowed here, and there is a program for their sandbox. Whether it holds is tried later."""
    return configuration.allow and shell_sandbox(root, configuration, private=()).is_there


def shell_tools(
    root: Path, configuration: ShellConfiguration, *, private: Sequence[Path], off: str = OFF
) -> Sequence[FunctionTool]:
    """The tools of this family; `off` is what a caller sees while commands are not allowed."""
    bounds = configuration.bounds()

    async def run(call: ToolCall) -> Any:
        if not configuration.allow:
            raise ToolFailed(Category.PERMISSION, off)
        sandbox = shell_sandbox(root, configuration, private=private)
        if why_not := await sandbox.trial():
            raise ToolFailed(Category.PERMISSION, f"shell.run can't be used here: {why_not}")
        job = _job(call.args, bounds, kept=configuration.write)
        ran = await sandbox.run(job, progress=call.progress)
        _require_done(ran, bounds, call.args.get("expect", [0]))
        return as_output(ran)

    return [FunctionTool(spec=_spec(bounds), do=run, flaws_of=command_flaws, visible=frozenset({"argv"}))]


def _spec(bounds: Bounds) -> ToolSpec:
    word = {"type": "string", "maxLength": WORD_LENGTH_MAX}
    exits = {"type": "integer", "minimum": 0, "maximum": 255}
    return ToolSpec(
        name=SHELL,
        description="Run a command in a sandbox, in the project's folder; fails unless its exit is expected (0).",
        effect=Effect.IRREVERSIBLE,
        args=closed(
            {
                "argv": {"type": "array", "minItems": 1, "maxItems": WORDS_MAX, "items": word},
                "cwd": {"type": "string", "maxLength": PATH_LENGTH_MAX},
                "env": {"type": "object", "maxProperties": NAMES_MAX, "additionalProperties": word},
                "stdin": {"type": "string", "maxLength": STDIN_BYTES_MAX},
                "expect": {"type": "array", "minItems": 1, "maxItems": 256, "items": exits},
            },
            required=["argv"],
        ),
        timeout=duration_text(bounds.time_ms + SLACK_MS),
        is_command=True,
    )


def command_flaws(args: Mapping[str, Any]) -> Sequence[str]:
    """Errors in a command that fits the schema."""
    env: Mapping[str, str] = args.get("env", {})
    words = [*args["argv"], *env.values()]
    flaws = [
        f"`env.{name[:50]!r}` is not a valid name: use letters, digits and _"
        for name in env
        if not _name.fullmatch(name)
    ]
    if not args["argv"][0]:
        flaws.append("`argv` starts with an empty string; give a program")
    if any("\0" in word for word in words):
        flaws.append("`argv` or `env` contains the character NUL; leave it out")
    if sum(len(word.encode(errors="replace")) for word in words) > ARGUMENTS_BYTES_MAX:
        flaws.append(f"`argv` and `env` are larger than {ARGUMENTS_BYTES_MAX:,} bytes; use `stdin` or a file")
    return [*flaws, *_folder_flaws(args.get("cwd", ""))]


def _folder_flaws(folder: str) -> list[str]:
    if folder in {"", "."}:
        return []
    try:
        path_parts(folder)
    except ToolFailed as error:
        return [f"`cwd`: {error.message}"]
    return []


def _job(args: Mapping[str, Any], bounds: Bounds, *, kept: bool) -> Job:
    return Job(
        argv=tuple(args["argv"]),
        cwd=args.get("cwd", ""),
        env=dict(args.get("env", {})),
        stdin=args.get("stdin", ""),
        bounds=bounds,
        kept=kept,
    )


def _require_done(ran: Ran, bounds: Bounds, expected: Sequence[int]) -> None:
    match ran.stopped:
        case "time":
            message = f"stopped after {duration_text(bounds.time_ms)}; {_knob('timeout')}"
            raise ToolFailed(Category.TIMEOUT, message + _last_lines(ran))
        case "memory":
            message = f"stopped: it used more than {bounds.memory_bytes:,} bytes of memory; {_knob('memory')}"
        case "processes":
            message = f"stopped: it had more than {bounds.processes} processes; {_knob('processes')}"
        case "output":
            message = f"stopped: it wrote more than {bounds.output_bytes:,} bytes; {_knob('output')}"
        case "":
            if ran.exit in expected:
                return
            message = f"exit {ran.exit}"
    raise ToolFailed(Category.TOOL_ERROR, message + _last_lines(ran))


def _knob(key: str) -> str:
    return f"ask a person if it needs a larger {key}"


def _last_lines(ran: Ran) -> str:
    """The last lines of a command's output, which usually say what is wrong."""
    lines = (ran.stderr.strip() or ran.stdout.strip())[-SHOWN_LENGTH_MAX:].splitlines()[-SHOWN_LINES:]
    return "\n".join([":", *lines]).rstrip() if lines else ""
