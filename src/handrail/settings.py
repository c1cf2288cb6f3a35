"""Settings: what a person can choose, and where each choice came from.

Read once at the edge and handed on as a value. Flags win over the environment, that over the project's
`.handrail/config.toml`, that over the one in HANDRAIL_HOME, that over the defaults."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from handrail.domain.duration import DURATION_PATTERN
from handrail.domain.errors import Invalid
from handrail.domain.suggestion import did_you_mean

CONFIG_NAME: Final = "config.toml"
PROJECT_FOLDER: Final = ".handrail"
ENV_PREFIX: Final = "HANDRAIL_"


class Choices(Struct, frozen=True, kw_only=True):
    """What may be chosen, with its limits and defaults."""

    store: str = ""
    """Where the journal is kept; empty: `journal.db` in HANDRAIL_HOME."""
    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    """The least level that is shown on stderr; the log file always keeps `info` and above."""
    log_days: Annotated[int, Meta(ge=1, le=3650)] = 14
    """How long log files are kept."""
    busy: Annotated[str, Meta(pattern=DURATION_PATTERN)] = "5s"
    """How long to wait for another process that is writing."""
    checkpoint_every: Annotated[int, Meta(ge=1, le=1_000_000)] = 1_000
    """After how many events a checkpoint is signed, beside those at the end of a run and of a process."""
    lease: Annotated[str, Meta(pattern=DURATION_PATTERN)] = "10s"
    """How long a worker may be silent before another takes its runs over."""
    calls: Annotated[int, Meta(ge=1, le=10_000)] = 100
    """How many tools are called at once, over all runs."""
    agents_may_approve: bool = False
    """Whether an agent's yes counts as an approval."""
    library: str = ""
    """More folders with workflows, separated as in PATH."""
    secrets_in: Literal["auto", "file", "keyring"] = "auto"
    """Where secrets are kept: in the platform's keyring, or in a file that only you can read."""
    checks: Literal["run", "plain"] = "run"
    """Which rules checks may apply: all, or only those that look at the output alone; others are told as not run."""
    built_in: bool = True
    """Whether the workflows that come with handrail are offered."""


TABLES: Final = ("checks", "groups", "http", "models", "secrets", "servers", "shell", "tools")
"""The tables of a config file; the parts that use them check what is inside (tools/configuration.py and others)."""
NAMES: Final = ("home", "project", *Choices.__struct_fields__)


class Settings(Struct, frozen=True, kw_only=True):
    """Every choice, the two folders, and where each came from."""

    home: Path
    project: Path
    choices: Choices
    origins: Mapping[str, str]
    tables: Mapping[str, Any] = {}
    """The tables of both config files together, for the parts that use them."""
    home_tables: Mapping[str, Any] = {}
    """The same by the file in HANDRAIL_HOME alone: what only its owner may say."""

    @property
    def journal(self) -> Path:
        """The file that holds the journal."""
        return self.home / "journal.db"

    @property
    def keys(self) -> Path:
        """The folder of the key that signs checkpoints."""
        return self.home / "keys"

    @property
    def checkpoints(self) -> Path:
        """The folder of the signed checkpoints."""
        return self.home / "checkpoints"

    @property
    def kept(self) -> Path:
        """The folder where contents wait for an undo."""
        return self.home / "kept"

    @property
    def workers(self) -> Path:
        """The folder by which processes on one store see each other."""
        return self.home / "workers"

    @property
    def workflows(self) -> Path:
        """The folder of the project's own workflows."""
        return self.project / PROJECT_FOLDER / "workflows"


def read_settings(flags: Mapping[str, str | None], environment: Mapping[str, str]) -> Settings:
    """The settings that flags, environment and config files add up to; Invalid names what does not fit."""
    given = _given(flags, environment)
    home = Path(given.get("home", (default_home(environment), ""))[0]).expanduser().absolute()
    project = Path(given.get("project", (os.curdir, ""))[0]).expanduser().absolute()
    found: dict[str, tuple[Any, str]] = {}
    own, home_tables = _file_choices(home / CONFIG_NAME)
    projects, project_tables = _file_choices(project / PROJECT_FOLDER / CONFIG_NAME)
    for file, plain in ((home / CONFIG_NAME, own), (project / PROJECT_FOLDER / CONFIG_NAME, projects)):
        found.update({name: (value, str(file)) for name, value in plain.items()})
    tables = {
        name: {**home_tables.get(name, {}), **project_tables.get(name, {})}
        for name in {**home_tables, **project_tables}
    }
    found.update(given)
    chosen = {name: found[name] for name in Choices.__struct_fields__ if name in found}
    origins = {name: found[name][1] if name in found else "default" for name in NAMES}
    return Settings(
        home=home,
        project=project,
        choices=_choices(chosen),
        origins=origins,
        tables=tables,
        home_tables=home_tables,
    )


def _given(flags: Mapping[str, str | None], environment: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What flags and environment say, flags first, each with where it was said."""
    by_flag = {name: (value, f"--{name}") for name, value in flags.items() if value}
    variables = {name: ENV_PREFIX + name.upper() for name in NAMES}
    said = {name: (environment[key], key) for name, key in variables.items() if environment.get(key)}
    return said | by_flag


def default_home(environment: Mapping[str, str], platform: str = sys.platform) -> str:
    """The platform's folder for a program's data."""
    if platform == "win32":
        return str(Path(environment.get("LOCALAPPDATA") or "~/AppData/Local") / "handrail")
    if platform == "darwin":
        return "~/Library/Application Support/handrail"
    return str(Path(environment.get("XDG_DATA_HOME") or "~/.local/share") / "handrail")


def _file_choices(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a config file says: plain settings, and tables."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):  # a home that is a file: the store will say so
        return {}, {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise Invalid(f"{file.name} can't be read: {error}", hint=f"fix {file}") from error
    plain = {name: value for name, value in data.items() if not isinstance(value, dict)}
    tables = {name: value for name, value in data.items() if isinstance(value, dict)}
    _require_known(plain, Choices.__struct_fields__, what="setting `{}`", file=file)
    _require_known(tables, TABLES, what="table [{}]", file=file)
    return plain, tables


def _require_known(given: Mapping[str, Any], known: Sequence[str], *, what: str, file: Path) -> None:
    """Refuse the first name that nothing reads: what is mistyped must not be silently without effect."""
    for name in sorted(given.keys() - set(known)):
        raise Invalid(f"{file}: unknown {what.format(name)}", hint=did_you_mean(name, sorted(known)))


def _choices(chosen: Mapping[str, tuple[Any, str]]) -> Choices:
    for name, (value, origin) in chosen.items():
        try:
            msgspec.convert({name: value}, Choices, strict=False)
        except msgspec.ValidationError as error:
            hint = f"change it where it comes from: {origin}"
            raise Invalid(f"setting `{name}` can't be {value!r}: {error}", hint=hint) from error
    return msgspec.convert({name: value for name, (value, _) in chosen.items()}, Choices, strict=False)
