"""Channels: where notices go, as an owner writes them in [notify.channels] of config.toml in HANDRAIL_HOME. Pure.

What sending means for each kind is in tools/channels/."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct

from handrail.domain.definition.duration import DURATION_PATTERN

CHANNELS_MAX: Final = 20
CHANNEL_PATTERN: Final = r"^[a-z0-9][a-z0-9_-]{0,39}$"
SECRETS_FOR: Final = "notify."
"""How a channel is named among the tools that may receive a secret: `notify.ops`."""
URL_LENGTH_MAX: Final = 2_000
ARGUMENTS_MAX: Final = 100
ADDRESSES_MAX: Final = 50
HOSTS_MAX: Final = 50

Url = Annotated[str, Meta(max_length=URL_LENGTH_MAX)]
SecretName = Annotated[str, Meta(max_length=100)]
Host = Annotated[str, Meta(min_length=1, max_length=300)]
MailAddress = Annotated[str, Meta(pattern=r"^[!-?A-~]{1,100}@[A-Za-z0-9.-]{1,200}$")]


class WebhookChannel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="webhook"):
    """CloudEvents by POST, signed as Standard Webhooks says."""

    url: Url = ""
    url_secret: SecretName = ""
    """The secret that is the address, if the address itself must not be known."""
    secret: SecretName
    """The secret that signs: `whsec_...` (HMAC) or `whsk_...` (Ed25519)."""
    old_secret: SecretName = ""
    """While there is a secret of this name, it signs too: for receivers that do not know the new one yet."""
    allow: Annotated[tuple[Host, ...], Meta(max_length=HOSTS_MAX)] = ()
    """Hosts that are not public, or have no TLS, and may be reached all the same: host, or host:port."""


class SlackChannel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="slack"):
    """A line of text by POST, as Slack and others take it."""

    url_secret: SecretName
    """The secret that is the address: who knows it can post."""
    allow: Annotated[tuple[Host, ...], Meta(max_length=HOSTS_MAX)] = ()


class CommandChannel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="command"):
    """A program of this machine, with the notice as JSON on its stdin."""

    argv: Annotated[tuple[Annotated[str, Meta(max_length=4_000)], ...], Meta(min_length=1, max_length=ARGUMENTS_MAX)]
    timeout: Annotated[str, Meta(pattern=DURATION_PATTERN)] = "20s"


class EmailChannel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="email"):
    """A mail by SMTP."""

    server: Annotated[str, Meta(pattern=r"^[A-Za-z0-9.:\[\]-]{1,300}$")]
    """The host of the mail server, with or without a port."""
    tls: Annotated[str, Meta(pattern="^(starttls|tls|none)$")] = "starttls"
    sender: MailAddress
    to: Annotated[tuple[MailAddress, ...], Meta(min_length=1, max_length=ADDRESSES_MAX)]
    user: Annotated[str, Meta(max_length=300)] = ""
    secret: SecretName = ""
    """The secret that is the password of the user."""


class DesktopChannel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="desktop"):
    """A notification on this machine's screen."""


Channel: TypeAlias = WebhookChannel | SlackChannel | CommandChannel | EmailChannel | DesktopChannel


def kind_of(channel: Channel) -> str:
    """The kind of a channel, as it is written."""
    return str(channel.__struct_config__.tag)
