"""Settings: what the user can choose, and where each choice came from.

Read once at the start and passed on as a value. Highest priority first: flags, environment variables, the project's
`.handrail/config.toml`, `config.toml` in HANDRAIL_HOME, defaults."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from handrail.domain.definition.duration import DURATION_PATTERN
from handrail.domain.errors import Invalid
from handrail.domain.suggestion import did_you_mean

CONFIG_NAME: Final = "config.toml"
PROJECT_FOLDER: Final = ".handrail"
ENV_PREFIX: Final = "HANDRAIL_"


class Choices(Struct, frozen=True, kw_only=True):
    """The settings, with their limits and defaults."""

    store: str = ""
    """Where the journal is stored; if empty, in `journal.db` in HANDRAIL_HOME."""
    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    """The lowest level shown on stderr; the log file always contains `info` and above."""
    log_days: Annotated[int, Meta(ge=1, le=3650)] = 14
    """How long log files are kept."""
    busy: Annotated[str, Meta(pattern=DURATION_PATTERN)] = "5s"
    """How long to wait while another process is writing."""
    checkpoint_every: Annotated[int, Meta(ge=1, le=1_000_000)] = 1_000
    """After how many events a checkpoint is signed; one is also signed at the end of a run and of a process."""
    lease: Annotated[str, Meta(pattern=DURATION_PATTERN)] = "10s"
    """How long a worker may be silent before another one takes over its runs."""
    calls: Annotated[int, Meta(ge=1, le=10_000)] = 100
    """How many tools are called at once, across all runs."""
    agents_may_approve: bool = False
    """Whether an agent may approve in place of a person."""
    library: str = ""
    """More folders with workflows, separated as in PATH."""
    secrets_in: Literal["auto", "file", "keyring"] = "auto"
    """Where secrets are stored: in the platform's keyring, or in a file that only you can read."""
    checks: Literal["run", "plain"] = "run"
    """Which rules checks may run: all, or only those that need just the output; others are reported as not run."""
    built_in: bool = True
    """Whether the workflows that come with handrail are offered."""


TABLES: Final = ("checks", "groups", "http", "models", "secrets", "servers", "shell", "tools")
"""The tables of a config file; the modules that read them check their content (tools/configuration.py and others)."""
NAMES: Final = ("home", "project", *Choices.__struct_fields__)


class Settings(Struct, frozen=True, kw_only=True):
    """All choices, the two folders, and where each value came from."""

    home: Path
    project: Path
    choices: Choices
    origins: Mapping[str, str]
    tables: Mapping[str, Any] = {}
    """The tables of both config files, for the modules that read them: see TABLES."""
    home_tables: Mapping[str, Any] = {}
    """The tables of the file in HANDRAIL_HOME only: for settings that a cloned project must not be able to change."""

    @property
    def journal(self) -> Path:
        """The journal file."""
        return self.home / "journal.db"

    @property
    def keys(self) -> Path:
        """The folder with the key that signs checkpoints."""
        return self.home / "keys"

    @property
    def checkpoints(self) -> Path:
        """The folder with the signed checkpoints."""
        return self.home / "checkpoints"

    @property
    def kept(self) -> Path:
        """The folder with file contents that an undo would restore."""
        return self.home / "kept"

    @property
    def workers(self) -> Path:
        """The folder in which processes on one store announce themselves to each other."""
        return self.home / "workers"

    @property
    def workflows(self) -> Path:
        """The folder with the project's own workflows."""
        return self.project / PROJECT_FOLDER / "workflows"


def read_settings(flags: Mapping[str, str | None], environment: Mapping[str, str]) -> Settings:
    """The settings from flags, environment and config files; raises Invalid for a wrong name or value."""
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
    """The values from flags and environment, each with its origin; flags win."""
    by_flag = {name: (value, f"--{name}") for name, value in flags.items() if value}
    variables = {name: ENV_PREFIX + name.upper() for name in NAMES}
    by_variable = {name: (environment[key], key) for name, key in variables.items() if environment.get(key)}
    return by_variable | by_flag


def default_home(environment: Mapping[str, str], platform: str = sys.platform) -> str:
    """The platform's folder for a program's data."""
    if platform == "win32":
        return str(Path(environment.get("LOCALAPPDATA") or "~/AppData/Local") / "handrail")
    if platform == "darwin":
        return "~/Library/Application Support/handrail"
    return str(Path(environment.get("XDG_DATA_HOME") or "~/.local/share") / "handrail")


def _file_choices(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The plain settings and the tables in a config file."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):  # if the home is a file, opening the store reports it
        return {}, {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise Invalid(f"{file.name} can't be read: {error}", hint=f"fix {file}") from error
    plain = {name: value for name, value in data.items() if not isinstance(value, dict)}
    tables = {name: value for name, value in data.items() if isinstance(value, dict)}
    _require_known(plain, Choices.__struct_fields__, what="setting `{}`", file=file)
    _require_known(tables, TABLES, what="table [{}]", file=file)
    return plain, tables


def _require_known(given: Mapping[str, Any], known: Sequence[str], *, what: str, file: Path) -> None:
    """Refuse the first unknown name: a mistyped one must not be ignored silently."""
    for name in sorted(given.keys() - set(known)):
        raise Invalid(f"{file}: unknown {what.format(name)}", hint=did_you_mean(name, sorted(known)))


def _choices(chosen: Mapping[str, tuple[Any, str]]) -> Choices:
    for name, (value, origin) in chosen.items():  # one by one, so that the error can say where the value came from
        try:
            msgspec.convert({name: value}, Choices, strict=False)
        except msgspec.ValidationError as error:
            hint = f"change it where it comes from: {origin}"
            raise Invalid(f"setting `{name}` can't be {value!r}: {error}", hint=hint) from error
    return msgspec.convert({name: value for name, (value, _) in chosen.items()}, Choices, strict=False)
