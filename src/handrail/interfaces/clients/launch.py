"""How a server is started: command, arguments and environment; and how this handrail is.

client.py has the form in which each client's settings store it."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from handrail.domain.errors import Conflict
from handrail.settings import Settings

NAME: Final = "handrail"
SERVE: Final = "mcp"
"""The command that clients start."""
HOME_VARIABLE: Final = "HANDRAIL_HOME"
FREE_FLAGS: Final = frozenset({"--toolsets", "--project", "--log-level"})
"""Flags that a project may put into the entry of a client: they loosen nothing."""
CACHE_MARK: Final = "CACHEDIR.TAG"


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """What a client starts."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    """Its working folder; empty: the client's."""


def own_launch(settings: Settings, *, project: str = "") -> LaunchCommand:
    """How a client starts this handrail; `project` is the folder as the client names it, if it needs one."""
    command, *args = _own_command()
    flags = ["--project", project] if project else []
    # Clients pass only a few variables to servers, so a home that the user chose must be in the entry.
    is_chosen = settings.origins.get("home") in ("--home", HOME_VARIABLE)
    return LaunchCommand(command, (*args, SERVE, *flags), {HOME_VARIABLE: str(settings.home)} if is_chosen else {})


def is_own(launch: LaunchCommand, home: Path) -> bool:
    """Whether an entry starts exactly this handrail: the same program with this home, and nothing in its environment
    that could make it run other code. A home that a stranger chose would bring settings that only an owner may make."""
    command, *args = _own_command()
    is_same = launch.command == command and list(launch.args[: len(args) + 1]) == [*args, SERVE]
    flags = {word.partition("=")[0] for word in launch.args[len(args) + 1 :] if word.startswith("-")}
    named = launch.env.get(HOME_VARIABLE)
    is_home = named is None or os.path.realpath(named) == os.path.realpath(home)
    return is_same and is_home and flags <= FREE_FLAGS and set(launch.env) <= {HOME_VARIABLE}


def merged_args(existing: Sequence[str], ours: Sequence[str]) -> list[str]:
    """Our arguments, followed by those that the user added."""
    added = list(existing[existing.index(SERVE) + 1 :]) if SERVE in existing else []
    for flag in [word for word in ours if word.startswith("--")]:
        if flag in added:
            del added[added.index(flag) : added.index(flag) + 2]
    return [*ours, *added]


def require_lasting() -> None:
    """Refuse to write this handrail into settings if it may be gone tomorrow."""
    # `uvx NAME` would be no way out: a name that we have not published may be anybody's.
    if _is_in_uv_cache(Path(sys.prefix)):
        raise Conflict(
            "this handrail runs from the cache of `uvx`, which may be deleted at any time",
            hint="install it first: `uv tool install .` in its checkout; then run `handrail init` again",
        )


def _own_command() -> list[str]:
    suffix = ".exe" if os.name == "nt" else ""
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        if (script := folder / f"{NAME}{suffix}").is_file():
            return [str(script)]
    # Without -P a project that has a file handrail.py would be started in place of this handrail.
    return [sys.executable, "-P", "-m", NAME]


def _is_in_uv_cache(prefix: Path) -> bool:
    """Whether this environment is in the cache of `uvx`, which may delete it at any time."""
    return any((folder / CACHE_MARK).is_file() and "uv" in folder.parts for folder in prefix.parents)
