"""Which backups a schedule keeps: the newest of each day, week and month, for so many of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final

from msgspec import Meta, Struct

from handrail.domain.definition.duration import DURATION_PATTERN

RECIPIENTS_MAX: Final = 20
PATH_LENGTH_MAX: Final = 4_000


class BackupRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table [backup] of config.toml in HANDRAIL_HOME."""

    to: Annotated[str, Meta(min_length=1, max_length=PATH_LENGTH_MAX)]
    """The folder in which backups are made."""
    every: Annotated[str, Meta(pattern=DURATION_PATTERN)] = "1d"
    """How often a backup is made while a server or a worker is up."""
    daily: Annotated[int, Meta(ge=1, le=1_000)] = 7
    """For how many days one backup is kept."""
    weekly: Annotated[int, Meta(ge=0, le=1_000)] = 4
    """For how many weeks."""
    monthly: Annotated[int, Meta(ge=0, le=1_000)] = 12
    """For how many months."""
    verify: bool = True
    """Whether each backup is restored into a throw-away folder and verified."""
    passphrase_file: Annotated[str, Meta(max_length=PATH_LENGTH_MAX)] = ""
    """Encrypt with the passphrase in this file."""
    recipients: Annotated[tuple[str, ...], Meta(max_length=RECIPIENTS_MAX)] = ()
    """Encrypt for these public keys."""


class DatedBackup(Struct, frozen=True):
    """One backup, as rotation sees it."""

    id: str
    at: int
    is_verified: bool


def kept(backups: Sequence[DatedBackup], rules: BackupRules) -> frozenset[str]:
    """The ids of the backups to keep. The newest and the newest that is verified are always among them."""
    newest_first = sorted(backups, key=lambda one: (one.at, one.id), reverse=True)
    verified = [one for one in newest_first if one.is_verified]
    wanted = [*newest_first[:1], *verified[:1]]
    for periods, period in ((rules.daily, _day), (rules.weekly, _week), (rules.monthly, _month)):
        wanted += _newest_of_each(newest_first, period)[:periods]
    return frozenset(one.id for one in wanted)


def _newest_of_each(newest_first: Sequence[DatedBackup], period: Callable[[int], str]) -> list[DatedBackup]:
    """The newest backup of each period, a verified one if the period has any."""
    found: dict[str, DatedBackup] = {}
    for one in newest_first:
        best = found.setdefault(period(one.at), one)
        if one.is_verified and not best.is_verified:
            found[period(one.at)] = one
    return list(found.values())


def _day(at: int) -> str:
    return f"{_date(at):%Y-%m-%d}"


def _week(at: int) -> str:
    return f"{_date(at):%G-%V}"


def _month(at: int) -> str:
    return f"{_date(at):%Y-%m}"


def _date(at: int) -> datetime:
    return datetime.fromtimestamp(at // 1_000, UTC)
