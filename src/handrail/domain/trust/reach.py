"""Reach: what a project's config.toml may set by itself, what needs a person's trust, and what it may not set at all.

One table, which settings.py reads and docs/reference/settings.md prints. Pure. How trust is given and kept:
domain/trust/decision.py and storage/trust_file.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias

from msgspec import Struct

from handrail.domain.definition.duration import duration_ms
from handrail.domain.definition.size import size_bytes
from handrail.domain.errors import HandrailError

ANY_NAME: Final = "*"
UNSET: Final = object()

SettingPath: TypeAlias = tuple[str, ...]
"""A setting (`calls`) or a key of a table (`shell`, `allow`)."""


class Reach(StrEnum):
    """What a project may do with a setting."""

    FREE = "free"
    TIGHTENS = "tightens"
    TRUSTED = "trusted"
    HOME = "home"


REACH_MEANINGS: Final[Mapping[Reach, str]] = {
    Reach.FREE: "a project may set it: it guards nothing",
    Reach.TIGHTENS: "a project may make it stricter; anything else counts once a person has trusted the project",
    Reach.TRUSTED: "a project's value counts once a person has trusted the project",
    Reach.HOME: "only config.toml in HANDRAIL_HOME may have it; in a project it is an error",
}


class Stricter(StrEnum):
    """Which of two values is the stricter one."""

    NO = "false"
    SMALLER = "a smaller number"
    SHORTER = "a shorter time"
    LESS = "a smaller size"
    FEWER = "fewer entries"


class SettingReach(Struct, frozen=True):
    """One line of the table."""

    path: SettingPath
    reach: Reach
    why: str
    stricter: Stricter | None = None
    otherwise: Any = None
    """The value that counts when neither file sets it; a test compares it with the part that reads the setting."""


def _home(*path: str, why: str) -> SettingReach:
    return SettingReach(path, Reach.HOME, why)


def _trusted(*path: str, why: str) -> SettingReach:
    return SettingReach(path, Reach.TRUSTED, why)


def _tightens(*path: str, stricter: Stricter, otherwise: Any, why: str) -> SettingReach:
    return SettingReach(path, Reach.TIGHTENS, why, stricter, otherwise)


REACHES: Final[tuple[SettingReach, ...]] = (
    _home("store", why="where the journal of all projects is"),
    _home("host", why="who decides on which node the runs of all projects are executed"),
    SettingReach(("log_level",), Reach.FREE, "what is shown on stderr; the log file has everything"),
    _home("log_days", why="deletes logs of all projects"),
    _tightens("busy", stricter=Stricter.SHORTER, otherwise="5s", why="how long a command may wait"),
    _tightens("checkpoint_every", stricter=Stricter.SMALLER, otherwise=1_000, why="how much a signature covers"),
    _trusted("lease", why="when a worker takes over the runs of another one"),
    _tightens("calls", stricter=Stricter.SMALLER, otherwise=100, why="how much runs at once"),
    _home("slots", why="how much this machine takes, of all projects"),
    _home("labels", why="what this machine has, for all projects"),
    SettingReach(("runs_on",), Reach.FREE, "where its runs are executed: only on fewer nodes"),
    _tightens("agents_may_approve", stricter=Stricter.NO, otherwise=False, why="who answers an approval"),
    _trusted("library", why="reads folders outside the project"),
    _home("secrets_in", why="where the secrets of all projects are"),
    _trusted("checks", why="which rules checks apply: `plain` checks less, `run` starts more"),
    _home("trace_endpoint", why="who sees what all projects do"),
    SettingReach(("built_in",), Reach.FREE, "which workflows are offered"),
    _home("approvals", why="which answers of people count"),
    _home("backup", why="where copies of all projects' runs and of the keys are written"),
    _home("cache", why="whose results of checks are taken over"),
    _home("checks", ANY_NAME, why="the table: `sandbox`, whether the commands of checks are confined"),
    _trusted("groups", ANY_NAME, why="who may approve"),
    _tightens("http", "allow", stricter=Stricter.FEWER, otherwise=(), why="which private addresses can be reached"),
    SettingReach(("models", ANY_NAME), Reach.FREE, "hints about models"),
    _home("notify", why="where notices of all projects go, and which programs that starts"),
    _home("policy", why="what agents may do by themselves"),
    _home("retention", why="when runs of all projects leave the journal, and which count as abandoned"),
    _home("secrets", why="which variables plans may read"),
    _trusted("servers", ANY_NAME, ANY_NAME, why="limits that a server or its user has set"),
    _tightens("shell", "allow", stricter=Stricter.NO, otherwise=False, why="whether plans run commands"),
    _tightens("shell", "network", stricter=Stricter.NO, otherwise=False, why="whether commands reach the network"),
    _tightens("shell", "timeout", stricter=Stricter.SHORTER, otherwise="60s", why="how long a command may run"),
    _tightens("shell", "memory", stricter=Stricter.LESS, otherwise="1GiB", why="what a command may use"),
    _tightens("shell", "processes", stricter=Stricter.SMALLER, otherwise=64, why="what a command may use"),
    _tightens("shell", "output", stricter=Stricter.LESS, otherwise="1MB", why="what a command may write"),
    _tightens("shell", "read", stricter=Stricter.FEWER, otherwise=(), why="folders outside that commands may read"),
    _tightens("shell", "write", stricter=Stricter.NO, otherwise=True, why="whether commands change the project"),
    _home("shell", "bubblewrap", why="the program that confines commands"),
    _trusted("tools", ANY_NAME, ANY_NAME, why="limits that a tool or its user has set"),
    _home("witnesses", why="who keeps copies of checkpoints"),
)

UNLISTED: Final = SettingReach((), Reach.TRUSTED, "not listed: a key that this table does not know counts least")

_TABLES_BY_KEY: Final = frozenset(one.path[0] for one in REACHES if len(one.path) > 1)
"""Tables whose keys have rules of their own; `checks` is a setting and a table."""
_NOT_STRICTER: Final = (HandrailError, TypeError, ValueError)

_is_at_least_as_strict: Final[Mapping[Stricter, Callable[[Any, Any], bool]]] = {
    Stricter.NO: lambda new, _: new is False,
    Stricter.SMALLER: lambda new, old: type(new) is int and new <= old,
    Stricter.SHORTER: lambda new, old: duration_ms(new) <= duration_ms(old),
    Stricter.LESS: lambda new, old: size_bytes(new) <= size_bytes(old),
    Stricter.FEWER: lambda new, old: not isinstance(new, str) and set(new) <= set(old),
}


class ProjectSetting(Struct, frozen=True):
    """One value in a project's file, and whether it counts without trust."""

    path: SettingPath
    value: Any
    reach: Reach
    counts: bool

    @property
    def name(self) -> str:
        """The setting as people write it: `calls`, `[shell] allow`, or `[secrets]` for a whole table."""
        return f"[{self.path[0]}]" if self.is_table else setting_name(self.path)

    @property
    def is_table(self) -> bool:
        """Whether it is a whole table."""
        return len(self.path) == 1 and isinstance(self.value, Mapping)


def project_settings(home: Mapping[str, Any], project: Mapping[str, Any]) -> tuple[ProjectSetting, ...]:
    """Every value of a project's file, judged against the file in HANDRAIL_HOME."""
    return tuple(
        ProjectSetting(path, value, rule.reach, _counts(rule, value, _at(home, path)))
        for path, value, rule in _values(project, ())
    )


def with_project(home: Mapping[str, Any], settings: tuple[ProjectSetting, ...], *, is_trusted: bool) -> dict[str, Any]:
    """The values of HANDRAIL_HOME's file, replaced by those of the project that count."""
    merged = {name: _copied(value) for name, value in home.items()}
    for one in settings:
        if one.reach is Reach.HOME or not (one.counts or is_trusted):
            continue
        place = merged
        for name in one.path[:-1]:
            if not isinstance(place.get(name), dict):
                place[name] = {}
            place = place[name]
        place[one.path[-1]] = one.value
    return merged


def setting_name(path: SettingPath) -> str:
    """A path as people write it in config.toml."""
    if len(path) == 1:
        return path[0]
    quoted = [name if name.replace("-", "").replace("_", "").isalnum() else f'"{name}"' for name in path[:-1]]
    return f"[{'.'.join(quoted)}] {path[-1]}"


def _values(data: Mapping[str, Any], above: SettingPath) -> Iterator[tuple[SettingPath, Any, SettingReach]]:
    """Each value that a rule is about; of what no rule knows, the whole."""
    for name, value in data.items():
        path = (*above, name)
        is_table = not above and isinstance(value, Mapping) and name in _TABLES_BY_KEY
        rule = None if is_table else next((one for one in REACHES if _fits(one.path, path)), None)
        if rule is not None:
            yield path, value, rule
        elif isinstance(value, Mapping) and value and any(_fits(one.path[: len(path)], path) for one in REACHES):
            yield from _values(value, path)
        elif value != {}:
            yield path, value, UNLISTED


def _fits(pattern: SettingPath, path: SettingPath) -> bool:
    return len(pattern) == len(path) and all(one in (ANY_NAME, name) for one, name in zip(pattern, path, strict=True))


def _counts(rule: SettingReach, value: Any, home: Any) -> bool:
    if rule.reach is Reach.FREE or (rule.reach is not Reach.HOME and value == home):
        return True
    if rule.reach is not Reach.TIGHTENS or rule.stricter is None:
        return False
    try:
        return _is_at_least_as_strict[rule.stricter](value, rule.otherwise if home is UNSET else home)
    except _NOT_STRICTER:  # a value that can't be read is reported by the part that reads it
        return False


def _at(data: Mapping[str, Any], path: SettingPath) -> Any:
    found: Any = data
    for name in path:
        if not isinstance(found, Mapping) or name not in found:
            return UNSET
        found = found[name]
    return found


def _copied(value: Any) -> Any:
    return {name: _copied(inner) for name, inner in value.items()} if isinstance(value, Mapping) else value
