"""The e-mail channel: one mail for each notice, by the mail server that the owner names.

The library waits where it talks, so that it has a thread; its connection ends after each mail."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from typing import Final

import certifi

from handrail.domain.notify.bodies import mail_text
from handrail.domain.notify.channel import EmailChannel
from handrail.domain.notify.notice import Notice
from handrail.engine.notify.sender import NotSent
from handrail.tools.channels.channel_secrets import ChannelSecrets

SMTP_S: Final = 8.0
"""How long each answer of the server may take."""
PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}
SUBJECT_LENGTH_MAX: Final = 150


@dataclass(frozen=True)
class EmailSender:
    """Sends mails."""

    channel: EmailChannel
    secrets: ChannelSecrets
    smtp_s: float = SMTP_S

    async def send(self, notice: Notice, *, now: int) -> None:
        """Return once the server has taken it; NotSent if it has not."""
        password = self.secrets.value(self.channel.secret) if self.channel.secret else ""
        await asyncio.to_thread(self._send, self._mail(notice, now), password)

    async def close(self) -> None:
        """Nothing stays open."""

    def _mail(self, notice: Notice, now: int) -> EmailMessage:
        mail = EmailMessage()
        mail["From"] = self.channel.sender
        mail["To"] = ", ".join(self.channel.to)
        mail["Subject"] = f"handrail: {notice.text}"[:SUBJECT_LENGTH_MAX]
        mail["Date"] = formatdate(now / 1_000)
        # The same for every try: a mail that arrives twice is shown once.
        mail["Message-ID"] = f"<{notice.id}@{self.channel.sender.rpartition('@')[2]}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(mail_text(notice))
        return mail

    def _send(self, mail: EmailMessage, password: str) -> None:
        host, port = _place(self.channel)
        try:
            with self._connection(host, port) as server:
                if self.channel.tls == "starttls":
                    server.starttls(context=_trusted())
                if self.channel.user:
                    server.login(self.channel.user, password)
                server.send_message(mail)
        except smtplib.SMTPAuthenticationError as error:  # its words may repeat what was sent
            raise NotSent(f"{host} refused the user or password ({error.smtp_code})") from None
        except (OSError, smtplib.SMTPException) as error:
            raise NotSent(f"{host} did not take the mail: {error}") from None

    def _connection(self, host: str, port: int) -> smtplib.SMTP:
        if self.channel.tls == "tls":
            return smtplib.SMTP_SSL(host, port, timeout=self.smtp_s, context=_trusted())
        return smtplib.SMTP(host, port, timeout=self.smtp_s)


def _trusted() -> ssl.SSLContext:
    """Trusted certificates: those of this machine, and those of certifi, because some machines have none."""
    context = ssl.create_default_context(cafile=certifi.where())
    context.load_default_certs()
    return context


def _place(channel: EmailChannel) -> tuple[str, int]:
    host, colon, port = channel.server.rpartition(":")
    if colon and port.isdigit() and not host.endswith(":"):
        return host.strip("[]"), int(port)
    return channel.server.strip("[]"), PORTS[channel.tls]
