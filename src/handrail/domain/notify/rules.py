"""The table [notify] of config.toml in HANDRAIL_HOME: which rules send which notices to which channels. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, field

from handrail.domain.definition.duration import DURATION_PATTERN, duration_ms
from handrail.domain.definition.size import SIZE_PATTERN
from handrail.domain.errors import Invalid
from handrail.domain.journal.codec import KINDS
from handrail.domain.notify.channel import CHANNEL_PATTERN, CHANNELS_MAX, Channel, CommandChannel, WebhookChannel
from handrail.domain.suggestion import did_you_mean

RULES_MAX: Final = 100
PATTERN_LENGTH_MAX: Final = 200
COMMAND_MS_MAX: Final = 30_000
GIVE_UP_MS_MIN: Final = 60_000
EVERY_KIND: Final = "*"

Duration = Annotated[str, Meta(pattern=DURATION_PATTERN)]
Size = Annotated[str, Meta(pattern=SIZE_PATTERN)]


class NotifyWhen(StrEnum):
    """What a rule waits for."""

    RUN_FAILED = "run_failed"
    COMPENSATION_FAILED = "compensation_failed"
    BREAKER_OPENED = "breaker_opened"
    EVENT = "event"
    WAITING = "waiting"
    APPROVAL_EXPIRES = "approval_expires"
    DISK = "disk"
    JOURNAL_SIZE = "journal_size"
    BACKUP_OLD = "backup_old"
    VERIFY_FAILED = "verify_failed"


OF_EVENTS: Final = frozenset(
    {NotifyWhen.RUN_FAILED, NotifyWhen.COMPENSATION_FAILED, NotifyWhen.BREAKER_OPENED, NotifyWhen.EVENT}
)
"""Rules that look at events; the others look at how things are, from time to time."""


class NotifyRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule: when something is reported, and to which channels."""

    when: NotifyWhen
    to: Annotated[tuple[str, ...], Meta(min_length=1, max_length=CHANNELS_MAX)]
    workflow: Annotated[str, Meta(min_length=1, max_length=PATTERN_LENGTH_MAX)] = "*"
    """Only runs of these workflows: an id, with `*` for any characters."""
    kinds: tuple[str, ...] = (EVERY_KIND,)
    """With `event`: which kinds of events, such as `run_completed`."""
    longer_than: Duration = "1h"
    """With `waiting`: how long a run may wait for a person."""
    before: Duration = "1h"
    """With `approval_expires`: how long before the end."""
    below: Size = "1GB"
    """With `disk`: how much must be free."""
    above: Size = "10GB"
    """With `journal_size`: how large the journal may become."""
    older_than: Duration = "2d"
    """With `backup_old`: how old the newest backup may be."""

    def is_about(self, workflow: str) -> bool:
        """Whether the rule is about runs of this workflow."""
        return fnmatchcase(workflow.partition("@")[0], self.workflow)


class NotifySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole table."""

    channels: Annotated[Mapping[str, Channel], Meta(max_length=CHANNELS_MAX)] = field(default_factory=dict)
    rules: Annotated[tuple[NotifyRule, ...], Meta(max_length=RULES_MAX)] = ()
    give_up_after: Duration = "3d"
    """How long a notice is tried again before it is a dead letter."""

    def rules_to(self, channel: str) -> tuple[NotifyRule, ...]:
        """The rules of one channel."""
        return tuple(rule for rule in self.rules if channel in rule.to)


def notify_settings(table: Mapping[str, Any]) -> NotifySettings:
    """The table as a value; Invalid says what is wrong with it."""
    try:
        found = msgspec.convert(table, NotifySettings)
    except msgspec.ValidationError as error:
        raise Invalid(
            f"config.toml: [notify]: {error}", hint="docs/operations/notify.md shows what there is"
        ) from error
    for name, channel in found.channels.items():
        _require_channel(name, channel)
    for rule in found.rules:
        _require_rule(rule, found)
    if duration_ms(found.give_up_after) < GIVE_UP_MS_MIN:
        raise Invalid("config.toml: [notify]: give_up_after is too short", hint="write 1m or more, such as 3d")
    return found


def _require_channel(name: str, channel: Channel) -> None:
    where = f"config.toml: [notify.channels.{name}]"
    if not re.match(CHANNEL_PATTERN, name):
        raise Invalid(f"{where}: a name has up to 40 of a-z, 0-9, - and _", hint="write: [notify.channels.ops]")
    if isinstance(channel, WebhookChannel) and bool(channel.url) == bool(channel.url_secret):
        raise Invalid(f"{where} takes one of url and url_secret", hint='write: url = "https://ops.example.com/in"')
    if isinstance(channel, CommandChannel) and not 0 < duration_ms(channel.timeout) <= COMMAND_MS_MAX:
        raise Invalid(f"{where}: timeout is not between 1ms and 30s", hint='write: timeout = "20s"')


def _require_rule(rule: NotifyRule, settings: NotifySettings) -> None:
    for name in rule.to:
        if name not in settings.channels:
            raise Invalid(
                f"config.toml: [[notify.rules]]: there is no channel {name!r}",
                hint=did_you_mean(name, sorted(settings.channels)),
            )
    for kind in rule.kinds:
        if kind != EVERY_KIND and kind not in KINDS:
            raise Invalid(
                f"config.toml: [[notify.rules]]: there is no event {kind!r}", hint=did_you_mean(kind, sorted(KINDS))
            )
