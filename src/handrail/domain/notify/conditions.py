"""What is the case and worth a notice although no event says it: somebody waits too long, a disk is full, a backup is
too old. Pure: what was looked at comes in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from handrail.domain.definition.duration import duration_ms
from handrail.domain.definition.size import size_bytes
from handrail.domain.instant import instant_text
from handrail.domain.notify.notice import HOME, Notice, line, notice_id
from handrail.domain.notify.rules import NotifyRule, NotifyWhen
from handrail.domain.plural import plural

CONDITIONS_MAX: Final = 500
"""How much is reported to one channel at once that is not an event."""


class WaitsFor(Struct, frozen=True, kw_only=True):
    """A run that waits for a person."""

    run: str
    workflow: str
    project: str
    kind: str
    step: str
    since: int
    expires: int | None = None
    """Until when an answer counts."""


class HomeLook(Struct, frozen=True, kw_only=True):
    """How things are; what is None was not looked at, or is not known."""

    waiting: Sequence[WaitsFor] = ()
    disk_free: int | None = None
    journal_bytes: int | None = None
    backup_at: int | None = None
    """When the newest backup was made; None if there is none."""
    has_journal: bool = False
    """Whether there is anything to back up."""
    verified_at: int | None = None
    verified_ok: bool = True


class NoticeCondition(Struct, frozen=True, kw_only=True):
    """Something that is the case."""

    key: str
    when: NotifyWhen
    subject: str
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)

    def notice(self, at: int, source: str) -> Notice:
        """The notice that it is the case since now."""
        return Notice(
            id=notice_id(source, self.key, at),
            when=self.when.value,
            at=at,
            subject=self.subject,
            text=line(self.text),
            source=source,
            data=self.data,
        )


def conditions_of(rules: Sequence[NotifyRule], looked: HomeLook, *, now: int) -> list[NoticeCondition]:
    """What is the case, by these rules, each once."""
    # By key: two rules may look at the same thing, the stricter one includes the other.
    found = {one.key: one for rule in rules for one in _of_rule(rule, looked, now)}
    return list(found.values())[:CONDITIONS_MAX]


def _of_rule(rule: NotifyRule, looked: HomeLook, now: int) -> Iterator[NoticeCondition]:
    match rule.when:
        case NotifyWhen.WAITING | NotifyWhen.APPROVAL_EXPIRES:
            yield from (_person(rule, one, now) for one in looked.waiting if _is_person_late(rule, one, now))
        case NotifyWhen.DISK if looked.disk_free is not None and looked.disk_free < size_bytes(rule.below):
            free = {"free_bytes": looked.disk_free}
            yield _of_home(rule, f"the disk has only {looked.disk_free / 1e9:.1f} GB left", free)
        case NotifyWhen.JOURNAL_SIZE if looked.journal_bytes is not None and looked.journal_bytes > size_bytes(
            rule.above
        ):
            size = {"bytes": looked.journal_bytes}
            yield _of_home(rule, f"the journal has {looked.journal_bytes / 1e9:.1f} GB", size)
        case NotifyWhen.BACKUP_OLD if looked.has_journal and _is_old(looked.backup_at, rule, now):
            made = instant_text(looked.backup_at) if looked.backup_at is not None else ""
            words = f"the newest backup is from {made}" if made else "there is no backup"
            yield _of_home(rule, words, {"made": made} if made else {})
        case NotifyWhen.VERIFY_FAILED if looked.verified_at is not None and not looked.verified_ok:
            found = {"verified": instant_text(looked.verified_at)}
            yield _of_home(rule, "the journal is not intact: `handrail journal verify` says what was found", found)


def _is_old(made: int | None, rule: NotifyRule, now: int) -> bool:
    return made is None or now - made > duration_ms(rule.older_than)


def _of_home(rule: NotifyRule, text: str, data: Mapping[str, Any]) -> NoticeCondition:
    return NoticeCondition(key=rule.when.value, when=rule.when, subject=HOME, text=text, data=data)


def _is_person_late(rule: NotifyRule, one: WaitsFor, now: int) -> bool:
    if not rule.is_about(one.workflow):
        return False
    if rule.when is NotifyWhen.WAITING:
        return now - one.since > duration_ms(rule.longer_than)
    return one.expires is not None and now < one.expires <= now + duration_ms(rule.before)


def _person(rule: NotifyRule, one: WaitsFor, now: int) -> NoticeCondition:
    name = f"{one.run} ({one.workflow})"
    data: dict[str, Any] = {
        "run": one.run,
        "workflow": one.workflow,
        "project": one.project,
        "step": one.step,
        "waits_for": one.kind,
        "since": instant_text(one.since),
    }
    if rule.when is NotifyWhen.APPROVAL_EXPIRES and one.expires is not None:
        left = plural((one.expires - now) // 60_000, "minute")
        text = f"{name} waits for an approval of {one.step} that expires in {left}"
        data["expires"] = instant_text(one.expires)
    else:
        waited = plural((now - one.since) // 60_000, "minute")
        text = f"{name} has waited for {waited} for the {one.kind} of a person: {one.step}"
    # With the instant: who is asked again later is another one who waits.
    key = f"{rule.when.value}:{one.run}:{one.step}:{one.since}"
    return NoticeCondition(key=key, when=rule.when, subject=one.run, text=text, data=data)
