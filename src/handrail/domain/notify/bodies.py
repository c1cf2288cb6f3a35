"""The forms in which a notice is sent: CloudEvents 1.0, Slack's line, a mail. Pure."""

from __future__ import annotations

from typing import Any, Final

from handrail.domain.instant import instant_text
from handrail.domain.notify.notice import Notice

CLOUD_EVENT: Final = "application/cloudevents+json"
TYPE_PREFIX: Final = "handrail."
SOURCE_PREFIX: Final = "urn:handrail:store:"


def cloud_event(notice: Notice) -> dict[str, Any]:
    """A notice as a CloudEvent in structured mode."""
    return {
        "specversion": "1.0",
        "id": notice.id,
        "source": f"{SOURCE_PREFIX}{notice.source}",
        "type": f"{TYPE_PREFIX}{notice.when}",
        "time": instant_text(notice.at),
        "subject": notice.subject,
        "datacontenttype": "application/json",
        "data": {"text": notice.text, **notice.data},
    }


def slack_message(notice: Notice) -> dict[str, Any]:
    """A notice as Slack and others take it: nothing in it is read as a link or a mention."""
    # Written out as Slack asks: else a failure message could mention a whole team, or hide where a link leads.
    text = notice.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": text}


def mail_text(notice: Notice) -> str:
    """A notice as the text of a mail."""
    known = "\n".join(f"{name}: {value}" for name, value in notice.data.items() if isinstance(value, str | int))
    return f"{notice.text}\n\nat: {instant_text(notice.at)}\n{known}\nid: {notice.id}\n"
