"""Which sender a channel has: the only place that knows all kinds."""

from __future__ import annotations

from pathlib import Path
from typing import assert_never

from handrail.domain.notify.channel import (
    Channel,
    CommandChannel,
    DesktopChannel,
    EmailChannel,
    SlackChannel,
    WebhookChannel,
)
from handrail.engine.notify.sender import Sender
from handrail.tools.channels.channel_secrets import ChannelSecrets
from handrail.tools.channels.command import CommandSender
from handrail.tools.channels.desktop import DesktopSender
from handrail.tools.channels.posting import Posting
from handrail.tools.channels.webhook import SlackSender, WebhookSender


def sender_of(channel: Channel, secrets: ChannelSecrets, *, folder: Path) -> Sender:
    """What takes notices to this channel; programs are started in the folder."""
    match channel:
        case WebhookChannel():
            return WebhookSender(channel, secrets, Posting(channel.allow))
        case SlackChannel():
            return SlackSender(channel, secrets, Posting(channel.allow))
        case CommandChannel():
            return CommandSender(channel, folder)
        case EmailChannel():
            # Late: the mail library is not imported for nothing.
            from handrail.tools.channels.email import EmailSender

            return EmailSender(channel, secrets)
        case DesktopChannel():
            return DesktopSender(folder)
        case _:
            assert_never(channel)
