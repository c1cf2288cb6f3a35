"""Which notice an event is worth, by a rule. Pure: the same event makes the same notice, however often it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from handrail.domain.journal.chain import Record
from handrail.domain.journal.event import (
    RUN_PREFIX,
    Event,
    RunCompensated,
    RunCompensationFailed,
    RunFailed,
)
from handrail.domain.journal.projection import RunRow
from handrail.domain.journal.store_event import BreakerOpened
from handrail.domain.notify.notice import Notice, line, notice_id
from handrail.domain.notify.rules import EVERY_KIND, NotifyRule, NotifyWhen

NoticeText: TypeAlias = tuple[str, Mapping[str, Any]]
"""A line for people, and what is known besides the event's place."""


def event_notices(
    rules: Sequence[NotifyRule], record: Record, event: Event | None, run: RunRow | None, source: str
) -> list[Notice]:
    """What these rules tell of an event, each kind of rule once; one that can't be read is still an event."""
    found: dict[NotifyWhen, Notice] = {}
    for rule in rules:
        if rule.when in found or (run is not None and not rule.is_about(run.workflow)):
            continue
        reported = _text_of(rule, record, event, run)
        if reported is None:
            continue
        text, data = reported
        # From its place alone: read again after a crash, the event makes the same notice.
        found[rule.when] = Notice(
            id=notice_id(source, record.stream, record.n, rule.when.value),
            when=rule.when.value,
            at=record.at,
            subject=record.stream,
            text=line(text),
            source=source,
            data={**_place(record, run), **data},
        )
    return list(found.values())


def _text_of(rule: NotifyRule, record: Record, event: Event | None, run: RunRow | None) -> NoticeText | None:
    """What a rule says of an event; None if it is about something else."""
    name = f"{record.stream}{f' ({run.workflow})' if run is not None else ''}"
    match rule.when:
        case NotifyWhen.RUN_FAILED:
            return _failed(name, event)
        case NotifyWhen.COMPENSATION_FAILED if isinstance(event, RunCompensationFailed):
            steps = event.remaining
            return f"{name} could not be undone: {', '.join(steps)}", {"status": "compensation_failed", "steps": steps}
        case NotifyWhen.BREAKER_OPENED if isinstance(event, BreakerOpened):
            words = f"the tool server {event.server} failed {event.failures} times in a row: {event.message}"
            return words, {"server": event.server, "failures": event.failures, "message": line(event.message)}
        case NotifyWhen.EVENT if EVERY_KIND in rule.kinds or record.kind in rule.kinds:
            return f"{name}: {record.kind.replace('_', ' ')}{f' {record.step}' if record.step else ''}", {}
    return None


def _failed(name: str, event: Event | None) -> NoticeText | None:
    if isinstance(event, RunCompensated):
        return f"{name} failed and was undone", {"status": "compensated"}
    if not isinstance(event, RunFailed):
        return None
    where = f" at {event.step}" if event.step else ""
    return f"{name} failed{where}: {event.message}", {
        "status": "failed",
        "step": event.step,
        "message": line(event.message),
    }


def _place(record: Record, run: RunRow | None) -> dict[str, Any]:
    """Where the event is in the journal: who wants to know more asks for it there."""
    known: dict[str, Any] = {"n": record.n, "kind": record.kind, "actor": record.actor, "hash": record.hash.hex()}
    if record.step:
        known["step"] = record.step
    if record.stream.startswith(RUN_PREFIX):
        known["run"] = record.stream
    if run is not None:
        known |= {"workflow": run.workflow, "project": run.project}
    return known
