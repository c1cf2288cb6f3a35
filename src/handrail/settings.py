"""Settings: what the user can choose, and where each choice came from.

Read once at the start and passed on as a value. Highest priority first: flags, environment variables, the project's
`.handrail/config.toml`, `config.toml` in HANDRAIL_HOME, defaults. The project's file counts only as far as its reach
goes (domain/trust/reach.py), and in full once a person has trusted it."""

from __future__ import annotations

import getpass
import os
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from handrail.domain.definition.duration import DURATION_PATTERN
from handrail.domain.errors import Invalid
from handrail.domain.policy.actor import PERSON_PREFIX
from handrail.domain.suggestion import did_you_mean
from handrail.domain.trust.decision import ProjectTrust, TrustItem, content_digest, trust_of
from handrail.domain.trust.reach import ProjectSetting, Reach, project_settings
from handrail.domain.trust.reach import with_project as merged_with_project
from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.storage.trust_file import TrustFile

try:
    import pwd
except ImportError:  # Windows
    pwd = None  # type: ignore[assignment]

CONFIG_NAME: Final = "config.toml"
TOOLS_NAME: Final = "tools.json"
PROJECT_FOLDER: Final = ".handrail"
ENV_PREFIX: Final = "HANDRAIL_"
CONFIG_BYTES_MAX: Final = 1_000_000
TOOLS_BYTES_MAX: Final = 1_000_000


class Choices(Struct, frozen=True, kw_only=True):
    """The settings, with their limits and defaults."""

    store: str = ""
    """Where the journal is stored: `postgresql://user:password@host/database`, or a file in HANDRAIL_HOME if empty."""
    host: str = ""
    """Who places runs on nodes: `local`, `absurd`, or `temporal://host:7233/namespace`; `local` if empty."""
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
    slots: Annotated[int, Meta(ge=0, le=10_000)] = 0
    """How many runs a process works on at once; 0: as many as come. More wait, or go to another node."""
    labels: str = ""
    """What this machine has that steps can ask for with `runs_on`, separated by commas: `gpu,linux`."""
    runs_on: str = ""
    """Which labels a node needs to take runs of the project, separated by commas."""
    agents_may_approve: bool = False
    """Whether an agent may approve in place of a person."""
    library: str = ""
    """More folders with workflows, separated as in PATH."""
    secrets_in: Literal["auto", "file", "keyring"] = "auto"
    """Where secrets are stored: in the platform's keyring, or in a file that only you can read."""
    checks: Literal["run", "plain"] = "run"
    """Which rules checks may run: all, or only those that need just the output; others are reported as not run.
    Whether the commands of checks run in a sandbox is another setting: the table [checks]."""
    trace_endpoint: str = ""
    """Where spans are sent, by OTLP over HTTP: `http://127.0.0.1:4318`. Empty: where OTEL_EXPORTER_OTLP_ENDPOINT says,
    and nowhere without it."""
    built_in: bool = True
    """Whether the workflows that come with handrail are offered."""


TABLES: Final = (
    *("approvals", "backup", "cache", "checks", "groups", "http", "models", "notify", "policy", "retention"),
    *("secrets", "servers", "shell", "tools", "witnesses"),
)
"""The tables of a config file; the modules that read them check their content (tools/configuration.py and others)."""
SANDBOX: Final = "sandbox"
SANDBOXES: Final = ("required", "off")
"""What `[checks] sandbox` can be: whether the commands of checks run in one."""
NAMES: Final = ("home", "project", *Choices.__struct_fields__)


class Settings(Struct, frozen=True, kw_only=True):
    """All choices, the two folders, and where each value came from."""

    home: Path
    project: Path
    choices: Choices
    origins: Mapping[str, str]
    tables: Mapping[str, Any] = {}
    """The tables that count, of both config files, for the modules that read them: see TABLES."""
    home_tables: Mapping[str, Any] = {}
    """The tables of the file in HANDRAIL_HOME only: for settings that a cloned project must not be able to change."""
    project_tables: Mapping[str, Any] = {}
    """The tables of the project's file, whether they count or not: only to report what is wrong with them."""
    trust: ProjectTrust = ProjectTrust()
    """Whether a person has trusted the project's files as they are now."""
    tools_text: bytes | None = None
    """The project's tools.json as it was when its trust was looked up: read once, so that it can't change between."""

    @property
    def journal(self) -> Path:
        """The journal file."""
        return self.home / "journal.db"

    @property
    def archives(self) -> Path:
        """The folder with the archives of ended runs."""
        return self.home / "archives"

    @property
    def keys(self) -> Path:
        """The folder with the key that signs checkpoints."""
        return self.home / "keys"

    @property
    def checkpoints(self) -> Path:
        """The folder with the signed checkpoints."""
        return self.home / "checkpoints"

    @property
    def shared_checkpoints(self) -> Path:
        """The folder with this home's copy of the checkpoints of a store that other homes share."""
        return self.checkpoints / "shared"

    @property
    def kept(self) -> Path:
        """The folder with file contents that an undo would restore."""
        return self.home / "kept"

    @property
    def workers(self) -> Path:
        """The folder in which processes on one store announce themselves to each other."""
        return self.home / "workers"

    @property
    def neutral(self) -> Path:
        """A folder in which nothing of the project is found, also not by looking upwards: for programs that look into
        the current folder for what they start. It may not exist yet."""
        is_inside = Path(os.path.realpath(self.home)).is_relative_to(os.path.realpath(self.project))
        return Path(self.home.anchor) if is_inside else self.home / "servers"

    @property
    def workflows(self) -> Path:
        """The folder with the project's own workflows."""
        return self.project / PROJECT_FOLDER / "workflows"


class _Files(NamedTuple):
    """The config files, and the project's tools.json."""

    home: Mapping[str, Any]
    project: Mapping[str, Any]
    trust: ProjectTrust
    settings: tuple[ProjectSetting, ...]
    tools_text: bytes | None


def read_settings(
    flags: Mapping[str, str | None], environment: Mapping[str, str], *, with_project: bool = True
) -> Settings:
    """The settings from flags, environment and config files; raises Invalid for a wrong name or value.

    Without `with_project` the project's own files are not read: to look around when they are wrong."""
    given = _given(flags, environment)
    home = Path(given.get("home", (default_home(environment), ""))[0]).expanduser().absolute()
    project = Path(given.get("project", (os.curdir, ""))[0]).expanduser().absolute()
    files = _read_files(home, project, with_project=with_project)
    merged = merged_with_project(files.home, files.settings, is_trusted=files.trust.is_trusted)
    found = _plain(files.home, home / CONFIG_NAME)
    own = _plain(files.project, project / PROJECT_FOLDER / CONFIG_NAME)
    _choices(own)  # also what does not count must be well-formed: it may count tomorrow
    found.update({name: (value, origin) for name, (value, origin) in own.items() if merged.get(name) == value})
    found.update(given)
    chosen = {name: found[name] for name in Choices.__struct_fields__ if name in found}
    origins = {name: found[name][1] if name in found else "default" for name in NAMES}
    return Settings(
        home=home,
        project=project,
        choices=_choices(chosen),
        origins=origins,
        tables=_tables(merged),
        home_tables=_tables(files.home),
        project_tables=_tables(files.project),
        trust=files.trust,
        tools_text=files.tools_text,
    )


def settings_of_other(own: Settings, folder: str, environment: Mapping[str, str]) -> Settings:
    """The settings of another project of the same home, exactly as a process in its folder would read them."""
    return read_settings({"home": str(own.home), "project": folder}, environment)


def local_person() -> str:
    """The actor of what the user of this machine does: the account that runs this process.

    Not what the environment says: a variable must not make somebody somebody else."""
    return f"{PERSON_PREFIX}{_account()}"


def _account() -> str:
    if pwd is None:
        return getpass.getuser()
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # an account without a name, as in some containers
        return f"uid-{os.getuid()}"


def real_path(project: Path) -> str:
    """The project's folder with all links followed: what trust is kept by."""
    return os.path.normcase(os.path.realpath(project))


def _read_files(home: Path, project: Path, *, with_project: bool) -> _Files:
    own_folder = project / PROJECT_FOLDER
    own, _ = _file_choices(home / CONFIG_NAME)
    # The user may have chosen this folder to hold all state.
    if not with_project or os.path.realpath(own_folder) == os.path.realpath(home):
        return _Files(own, {}, ProjectTrust(), (), None)
    projects, content = _file_choices(own_folder / CONFIG_NAME, within=project)
    tools_text = _content(own_folder / TOOLS_NAME, TOOLS_BYTES_MAX, within=project)
    settings = project_settings(own, projects)
    _require_not_home(settings, own_folder / CONFIG_NAME, home)
    asked = [TrustItem(one.name, _written(one.value)) for one in settings if not one.counts]
    digest = content_digest({CONFIG_NAME: content, TOOLS_NAME: tools_text})
    has_files = content is not None or tools_text is not None
    decision = TrustFile(home).find(real_path(project)) if has_files else None
    trust = trust_of(decision, digest=digest, settings=asked, has_servers=tools_text is not None)
    return _Files(own, projects, trust, settings, tools_text)


def _require_not_home(settings: Sequence[ProjectSetting], file: Path, home: Path) -> None:
    for one in settings:
        if one.reach is Reach.HOME:
            raise Invalid(
                f"{file}: a project may not set {one.name}",
                hint=f"remove it there; it belongs in {home / CONFIG_NAME}, which only you write",
            )


def _written(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()


def _plain(data: Mapping[str, Any], file: Path) -> dict[str, tuple[Any, str]]:
    return {name: (value, str(file)) for name, value in data.items() if not isinstance(value, dict)}


def _tables(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if isinstance(value, dict)}


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


def _file_choices(file: Path, *, within: Path | None = None) -> tuple[dict[str, Any], bytes | None]:
    """The settings and tables in a config file, and its content; None if there is no such file."""
    content = _content(file, CONFIG_BYTES_MAX, within=within)
    try:
        data = tomllib.loads((content or b"").decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        both = f"; `checks` can't stand beside the table [checks]: set it by {ENV_PREFIX}CHECKS"
        is_both = re.search(rb"^\s*checks\s*=", content or b"", re.MULTILINE) and b"[checks]" in (content or b"")
        raise Invalid(f"{file.name} can't be read: {error}", hint=f"fix {file}{both if is_both else ''}") from error
    plain = {name: value for name, value in data.items() if not isinstance(value, dict)}
    _require_known(plain, Choices.__struct_fields__, what="setting `{}`", file=file)
    _require_known(_tables(data), TABLES, what="table [{}]", file=file)
    _require_sandbox(_tables(data).get("checks", {}), file)
    return data, content


def _require_sandbox(table: Mapping[str, Any], file: Path) -> None:
    """Refuse a mistyped key or value of [checks] in every command: its author must not wait for a check."""
    _require_known(table, (SANDBOX,), what="key `{}` of the table [checks]", file=file)
    value = table.get(SANDBOX, SANDBOXES[0])
    if value not in SANDBOXES:
        can_be = " or ".join(f'"{one}"' for one in SANDBOXES)
        raise Invalid(
            f"{file}: `[checks] {SANDBOX}` can't be {value!r}: it is {can_be}", hint=did_you_mean(str(value), SANDBOXES)
        )


def _content(file: Path, bytes_max: int, *, within: Path | None) -> bytes | None:
    """What a file contains; None if there is none. Invalid if it is not a regular file of a sensible size."""
    try:
        return read_plain(file, bytes_max=bytes_max, within=within)
    except (FileNotFoundError, NotADirectoryError):  # if the home is a file, opening the store reports it
        return None
    except NotPlain as error:
        raise Invalid(f"{file.name} can't be read: {error}", hint=f"fix {file}, or remove it") from error


def _require_known(given: Mapping[str, Any], known: Sequence[str], *, what: str, file: Path) -> None:
    """Refuse the first unknown name: a mistyped one must not be ignored silently."""
    for name in sorted(given.keys() - set(known)):
        raise Invalid(f"{file}: unknown {what.format(name)}", hint=did_you_mean(name, sorted(known)))


def _choices(chosen: Mapping[str, tuple[Any, str]]) -> Choices:
    for name, (value, origin) in chosen.items():  # one by one, so that the error can say where the value came from
        try:
            msgspec.convert({name: value}, Choices, strict=False)
        except msgspec.ValidationError as error:
            raise _unfit(name, value, origin, error) from error
    return msgspec.convert({name: value for name, (value, _) in chosen.items()}, Choices, strict=False)


def _unfit(name: str, value: Any, origin: str, error: msgspec.ValidationError) -> Invalid:
    hint = f"change it where it comes from: {origin}"
    allowed = [str(one) for one in get_args(get_type_hints(Choices)[name])]
    if get_origin(get_type_hints(Choices)[name]) is not Literal:
        return Invalid(f"setting `{name}` can't be {value!r}: {error}", hint=hint)
    if name == "checks":  # the one name that is a setting and a table
        hint += "; whether their commands run in a sandbox is set in the table [checks]: sandbox"
    can_be = " or ".join(f"`{one}`" for one in allowed)
    return Invalid(
        f"setting `{name}` can't be {value!r}: it is {can_be}", hint=f"{did_you_mean(str(value), allowed)} {hint}"
    )
