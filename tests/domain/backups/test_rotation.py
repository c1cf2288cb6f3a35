"""Rotation keeps the newest of each day, week and month, and never the last proof that there is."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from handrail.domain.backups.rotation import BackupRules, DatedBackup, kept

RULES = BackupRules(to="/b", daily=3, weekly=2, monthly=2)
START = datetime(2026, 3, 31, 12, tzinfo=UTC)


def made(*days_ago: float, verified: bool = True) -> list[DatedBackup]:
    return [
        DatedBackup(f"{days:06.2f}", int((START - timedelta(days=days)).timestamp() * 1_000), verified)
        for days in days_ago
    ]


def kept_days(backups: list[DatedBackup], rules: BackupRules = RULES) -> list[float]:
    return sorted(float(one) for one in kept(backups, rules))


def test_the_newest_of_each_day_week_and_month_is_kept() -> None:
    every_six_hours = made(*(quarter / 4 for quarter in range(400)))
    # 31 March 2026 is a Tuesday: the week before ends on Sunday the 29th; February ends 31 days before.
    assert kept_days(every_six_hours) == [0.0, 0.75, 1.75, 30.75]


def test_a_verified_one_stands_for_its_day_and_the_last_proof_is_never_removed() -> None:
    backups = [*made(0, 0.1, verified=False), *made(0.2), *made(400)]
    assert kept_days(backups, BackupRules(to="/b", daily=1, weekly=0, monthly=0)) == [0.0, 0.2]
    only_old = [*made(0, 1, 2, 3, verified=False), *made(90)]
    assert 90.0 in kept_days(only_old, BackupRules(to="/b", daily=1, weekly=0, monthly=0))


def test_nothing_is_kept_of_nothing() -> None:
    assert kept([], RULES) == frozenset()


def test_years_of_daily_backups_stay_few_and_the_newest_stays() -> None:
    draw = random.Random(18)
    backups: list[DatedBackup] = []
    for day in range(800, -1, -1):
        backups += made(day, verified=draw.random() < 0.8)
        wanted = kept(backups, RULES)
        backups = [one for one in backups if one.id in wanted]
        assert len(backups) <= 3 + 2 + 2 + 1
        assert f"{day:06.2f}" in wanted
