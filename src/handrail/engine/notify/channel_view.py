"""Channels and their notices as every interface shows them: what is configured, beside what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from handrail.domain.instant import instant_text
from handrail.domain.notify.notice import Message
from handrail.engine.notify.outbox import KeptChannel
from handrail.engine.reading.step_view import Shown


class ChannelStatus(StrEnum):
    """How a channel is."""

    WORKS = "works"
    FAILING = "failing"
    DISABLED = "disabled"
    UNUSED = "unused"
    """Nothing has been read for it yet: no server or worker has served it."""
    REMOVED = "removed"
    """It is in config.toml no longer; what waits for it stays."""


class ChannelView(Shown, frozen=True):
    """A channel."""

    name: str
    kind: str
    status: ChannelStatus
    waiting: int
    dead: int
    sent: int
    sent_at: str = ""
    failing_since: str = ""
    error: str = ""
    disabled_by: str = ""
    reason: str = ""


class MessageView(Shown, frozen=True):
    """A notice that waits, or is dead."""

    id: str
    channel: str
    when: str
    subject: str
    text: str
    at: str
    attempts: int
    tried: str = ""
    due: str = ""
    error: str = ""
    dead: bool = False


def channel_views(kinds: Mapping[str, str], kept: Mapping[str, KeptChannel]) -> list[ChannelView]:
    """All channels by name: those that are configured, each with its kind, and those that are kept."""
    return [_view(name, kinds.get(name, ""), kept.get(name)) for name in sorted({*kinds, *kept})]


def message_view(channel: str, one: Message) -> MessageView:
    """A notice on its way."""
    return MessageView(
        id=one.notice.id,
        channel=channel,
        when=one.notice.when,
        subject=one.notice.subject,
        text=one.notice.text,
        at=instant_text(one.notice.at),
        attempts=one.attempts,
        tried=_instant(one.tried),
        due="" if one.is_dead else _instant(one.due),
        error=one.error,
        dead=one.is_dead,
    )


def _view(name: str, kind: str, kept: KeptChannel | None) -> ChannelView:
    known = kept or KeptChannel(name=name)
    state, disabled = known.state, known.disabled
    return ChannelView(
        name=name,
        kind=kind,
        status=_status(kind, kept),
        waiting=known.waiting,
        dead=known.dead,
        sent=state.sent,
        sent_at=_instant(state.sent_at),
        failing_since=_instant(state.failing_since),
        error=state.error,
        disabled_by=disabled.by if disabled is not None else "",
        reason=disabled.reason if disabled is not None else "",
    )


def _status(kind: str, kept: KeptChannel | None) -> ChannelStatus:
    if not kind:
        return ChannelStatus.REMOVED
    if kept is None:
        return ChannelStatus.UNUSED
    if kept.disabled is not None:
        return ChannelStatus.DISABLED
    return ChannelStatus.FAILING if kept.state.failures else ChannelStatus.WORKS


def _instant(at: int) -> str:
    return instant_text(at) if at else ""
