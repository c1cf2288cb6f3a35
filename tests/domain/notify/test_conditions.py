"""What is the case and worth a notice although no event says it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from handrail.domain.notify.conditions import CONDITIONS_MAX, HomeLook, WaitsFor, conditions_of
from handrail.domain.notify.notice import Message, Notice
from handrail.domain.notify.retrying import DeliveryFailure, after_failure, backoff_ms
from handrail.domain.notify.rules import NotifyRule, NotifyWhen

NOW = 1_763_230_000_000
HOUR = 3_600_000
WAITS = WaitsFor(run="run_a", workflow="ship@1.0.0", project="prj_1", kind="approval", step="go", since=NOW - 2 * HOUR)


def rule(when: NotifyWhen, **more: str) -> NotifyRule:
    return NotifyRule(when=when, to=("ops",), **more)  # type: ignore[arg-type]


def texts(look: HomeLook, *rules: NotifyRule) -> list[str]:
    return [one.text for one in conditions_of(rules, look, now=NOW)]


@pytest.mark.parametrize(
    ("when", "well", "ill", "words"),
    [
        (NotifyWhen.DISK, HomeLook(disk_free=10**9), HomeLook(disk_free=10**9 - 1), "only 1.0 GB left"),
        (NotifyWhen.JOURNAL_SIZE, HomeLook(journal_bytes=10**10), HomeLook(journal_bytes=2 * 10**10), "has 20.0 GB"),
        (
            NotifyWhen.BACKUP_OLD,
            HomeLook(has_journal=True, backup_at=NOW - 48 * HOUR),
            HomeLook(has_journal=True, backup_at=NOW - 49 * HOUR),
            "the newest backup is from 2025-11-13",
        ),
        (NotifyWhen.BACKUP_OLD, HomeLook(), HomeLook(has_journal=True), "there is no backup"),
        (
            NotifyWhen.VERIFY_FAILED,
            HomeLook(verified_at=NOW),
            HomeLook(verified_at=NOW, verified_ok=False),
            "not intact",
        ),
        (
            NotifyWhen.WAITING,
            HomeLook(waiting=[replace(WAITS, since=NOW - HOUR)]),
            HomeLook(waiting=[WAITS]),
            "run_a (ship@1.0.0) has waited for 120 minutes for the approval of a person: go",
        ),
        (
            NotifyWhen.APPROVAL_EXPIRES,
            HomeLook(waiting=[WAITS, replace(WAITS, expires=NOW + 2 * HOUR), replace(WAITS, expires=NOW)]),
            HomeLook(waiting=[replace(WAITS, expires=NOW + HOUR // 2)]),
            "run_a (ship@1.0.0) waits for an approval of go that expires in 30 minutes",
        ),
    ],
)
def test_each_rule_says_what_is_the_case(when: NotifyWhen, well: HomeLook, ill: HomeLook, words: str) -> None:
    assert texts(well, rule(when)) == []
    assert texts(HomeLook(), rule(when)) == [], "what is not known is not the case"
    (text,) = texts(ill, rule(when))
    assert words in text
    others = [rule(one) for one in NotifyWhen if one is not when]
    assert all(words not in one for one in texts(ill, *others))


def test_the_limits_of_a_rule_count() -> None:
    assert texts(HomeLook(waiting=[WAITS]), rule(NotifyWhen.WAITING, longer_than="3h")) == []
    assert texts(HomeLook(disk_free=10**10), rule(NotifyWhen.DISK, below="20GB"))
    assert texts(HomeLook(waiting=[WAITS]), rule(NotifyWhen.WAITING, workflow="other")) == []


def test_two_rules_about_the_same_make_one_notice_and_who_is_asked_later_is_another_one() -> None:
    two = (rule(NotifyWhen.WAITING), rule(NotifyWhen.WAITING, longer_than="30m"))
    (first,) = conditions_of(two, HomeLook(waiting=[WAITS]), now=NOW)
    (later,) = conditions_of(two, HomeLook(waiting=[WAITS]), now=NOW + HOUR)
    (again,) = conditions_of(two, HomeLook(waiting=[replace(WAITS, since=NOW)]), now=NOW + 2 * HOUR)
    assert first.key == later.key != again.key
    assert first.subject == "run_a"
    assert first.notice(NOW, "s").id != first.notice(NOW + 1, "s").id


def test_not_more_is_told_than_a_channel_can_remember() -> None:
    many = [replace(WAITS, run=f"run_{n}") for n in range(CONDITIONS_MAX + 5)]
    assert len(texts(HomeLook(waiting=many), rule(NotifyWhen.WAITING))) == CONDITIONS_MAX


def test_tries_come_later_and_later_for_days_and_then_no_more() -> None:
    notice = Notice(id="n", when="event", at=0, subject="run_a", text="x", source="s")
    message, now, waits = Message(number=1, notice=notice), NOW, []
    while not message.is_dead:
        message = after_failure(message, DeliveryFailure("no answer"), now=now, give_up_ms=72 * HOUR)
        waits.append((message.due - now) // 1_000)
        now = message.due
    assert waits[:5] == [5, 10, 20, 40, 80]
    assert max(waits) == 3_600
    assert 72 <= (now - NOW) / HOUR <= 75
    assert backoff_ms(10**9, HOUR) == HOUR


def test_what_a_receiver_asks_for_counts_within_limits_and_a_last_word_at_once() -> None:
    message = Message(number=1, notice=Notice(id="n", when="event", at=0, subject="run_a", text="x", source="s"))
    asked = after_failure(message, DeliveryFailure("busy", 60_000), now=NOW, give_up_ms=HOUR)
    assert asked.due == NOW + 60_000
    greedy = after_failure(message, DeliveryFailure("busy", 10**12), now=NOW, give_up_ms=HOUR)
    assert greedy.due == NOW + HOUR
    assert after_failure(message, DeliveryFailure("gone", is_final=True), now=NOW, give_up_ms=HOUR).is_dead
