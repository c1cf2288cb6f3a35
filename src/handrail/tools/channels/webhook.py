"""Webhooks: a CloudEvent, signed as Standard Webhooks says; and the line of text that Slack and others take."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from handrail.domain.notify.bodies import CLOUD_EVENT, cloud_event, slack_message
from handrail.domain.notify.channel import SlackChannel, WebhookChannel
from handrail.domain.notify.notice import Notice
from handrail.domain.notify.signing import ID, SIGNATURE, TIMESTAMP, signed_bytes
from handrail.tools.channels.channel_secrets import ChannelSecrets
from handrail.tools.channels.posting import Posting
from handrail.tools.channels.webhook_keys import signatures


@dataclass(frozen=True)
class WebhookSender:
    """Posts signed CloudEvents."""

    channel: WebhookChannel
    secrets: ChannelSecrets
    posting: Posting

    async def send(self, notice: Notice, *, now: int) -> None:
        """Return once the receiver has it; NotSent if that is not known."""
        body = msgspec.json.encode(cloud_event(notice))
        timestamp_s = now // 1_000
        # Looked up at each try: a key that was changed counts at once, without a restart.
        signing = [self.secrets.value(self.channel.secret), self.secrets.value_or_none(self.channel.old_secret)]
        signed = signed_bytes(notice.id, timestamp_s, body)
        headers = {
            "content-type": CLOUD_EVENT,
            ID: notice.id,
            TIMESTAMP: str(timestamp_s),
            SIGNATURE: signatures([one for one in signing if one is not None], signed),
        }
        await self.posting.post(self._url(), headers, body, now=now)

    async def close(self) -> None:
        """Close its connections."""
        await self.posting.close()

    def _url(self) -> str:
        return self.channel.url or self.secrets.value(self.channel.url_secret).strip()


@dataclass(frozen=True)
class SlackSender:
    """Posts lines of text."""

    channel: SlackChannel
    secrets: ChannelSecrets
    posting: Posting

    async def send(self, notice: Notice, *, now: int) -> None:
        """Return once the receiver has it; NotSent if that is not known."""
        url = self.secrets.value(self.channel.url_secret).strip()
        headers = {"content-type": "application/json"}
        await self.posting.post(url, headers, msgspec.json.encode(slack_message(notice)), now=now)

    async def close(self) -> None:
        """Close its connections."""
        await self.posting.close()
