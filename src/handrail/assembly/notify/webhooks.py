"""What `handrail webhooks` does besides the outbox: shows channels, tries one, and changes the key that signs."""

from __future__ import annotations

from msgspec import Struct

from handrail.assembly.notify.keeping import senders_of, settings_of_notices, source_of
from handrail.assembly.secrets import secrets_of
from handrail.domain.errors import Conflict, Invalid, NotFound, Unavailable
from handrail.domain.notify.channel import SECRETS_FOR, WebhookChannel, kind_of
from handrail.domain.notify.notice import HOME, Notice, notice_id
from handrail.domain.notify.signing import PRIVATE
from handrail.domain.policy.act import Act
from handrail.domain.policy.table import may
from handrail.domain.policy.verdict import require_allowed
from handrail.domain.suggestion import did_you_mean
from handrail.engine.clock import new_id, system_clock, system_entropy
from handrail.engine.notify.channel_view import ChannelView, channel_views
from handrail.engine.notify.control import NO_CHANNEL
from handrail.engine.notify.outbox import Outbox
from handrail.engine.notify.sender import NotSent
from handrail.engine.proving.projection_repair import WholeStore
from handrail.settings import Settings
from handrail.tools.channels.webhook_keys import new_secret, receivers_key


class NewKey(Struct, frozen=True, kw_only=True):
    """A key that was changed: what its receiver needs to know."""

    channel: str
    key: str
    old_until: str = ""
    """The secret whose removal ends the time in which both sign; empty if only the new one does."""


async def channels_of(settings: Settings, outbox: Outbox) -> list[ChannelView]:
    """All channels, configured or kept."""
    kinds = {name: kind_of(one) for name, one in settings_of_notices(settings).channels.items()}
    return channel_views(kinds, {one.name: one for one in await outbox.channels()})


async def try_channel(settings: Settings, store: WholeStore, name: str, *, actor: str) -> Notice:
    """Send a notice to a channel now, past the outbox; Unavailable says why it did not arrive."""
    require_allowed(may(actor, Act.NOTIFY))
    senders = senders_of(settings, settings_of_notices(settings))
    if name not in senders:
        raise NotFound(f"there is no channel {name!r}", hint=did_you_mean(name, sorted(senders)) or NO_CHANNEL)
    now = system_clock()
    notice = Notice(
        id=notice_id(new_id("", system_entropy), now),
        when="test",
        at=now,
        subject=HOME,
        text=f"a test of the channel {name}, by {actor}",
        source=await source_of(store),
        data={"actor": actor},
    )
    try:
        await senders[name].send(notice, now=now)
    except NotSent as error:
        raise Unavailable(
            f"it did not arrive: {error}", hint="correct the channel in config.toml, or its receiver"
        ) from None
    finally:
        for sender in senders.values():
            await sender.close()
    return notice


def rotate_secret(settings: Settings, name: str, *, actor: str, is_ed25519: bool | None, at_once: bool) -> NewKey:
    """Make the key of a webhook, or another one; the old one signs too until its rotation is finished."""
    require_allowed(may(actor, Act.NOTIFY))
    channel, secrets, given_to = _webhook(settings, name), secrets_of(settings), (f"{SECRETS_FOR}{name}",)
    present = secrets.find(channel.secret)
    if present is not None and not at_once:
        if not channel.old_secret:
            raise Conflict(
                f"receivers that know the present key of {name} would refuse everything from now on",
                hint=f'add old_secret = "{channel.secret}-old" to the channel, so that both sign; or say --at-once',
            )
        # The old one first: killed in between, both are the same, and nothing is refused.
        secrets.keep(channel.old_secret, present.value, given_to)
    if is_ed25519 is None:
        is_ed25519 = present is not None and present.value.startswith(PRIVATE)
    made = new_secret(system_entropy, is_ed25519=is_ed25519)
    secrets.keep(channel.secret, made, given_to)
    is_both = present is not None and not at_once
    return NewKey(channel=name, key=receivers_key(made), old_until=channel.old_secret if is_both else "")


def finish_rotation(settings: Settings, name: str, *, actor: str) -> str:
    """Remove the old key of a webhook; the name of the secret that it was."""
    require_allowed(may(actor, Act.NOTIFY))
    channel = _webhook(settings, name)
    if not channel.old_secret or secrets_of(settings).find(channel.old_secret) is None:
        raise NotFound(f"only one key signs for {name}", hint=f"`handrail webhooks rotate {name}` makes another one")
    secrets_of(settings).remove(channel.old_secret)
    return channel.old_secret


def _webhook(settings: Settings, name: str) -> WebhookChannel:
    channels = settings_of_notices(settings).channels
    if name not in channels:
        raise NotFound(f"there is no channel {name!r}", hint=did_you_mean(name, sorted(channels)) or NO_CHANNEL)
    channel = channels[name]
    if not isinstance(channel, WebhookChannel):
        raise Invalid(f"{name} is a channel of kind {kind_of(channel)}: it signs nothing", hint="name a webhook")
    return channel
