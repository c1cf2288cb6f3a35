"""Text of others made safe for a report: as HTML, and as Markdown. Pure.

Every text of a run may come from outside. It stays text: no markup of its own, no control or direction characters, no
link, no mention of somebody."""

from __future__ import annotations

import re
from html import escape
from typing import Any, Final

import msgspec

TEXT_LENGTH_MAX: Final = 4_000
LINE_LENGTH_MAX: Final = 300
MARKED: Final = "\\`*_{}[]()+-.!|~$="
"""What has a meaning in Markdown."""
APART: Final = "\u200b"
"""A space without width: sites find mentions, references and links in the text that is shown, not in its source."""
REPLACED: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": f"@{APART}", "#": f"#{APART}"}
LINKED: Final = re.compile(r"(?i)(:)(?=//)|(www)(?=\.)")


def shown(text: object, limit: int = TEXT_LENGTH_MAX) -> str:
    """A string without characters that can't be seen, line breaks kept; the start of a long one."""
    whole = str(text)
    kept = "".join(char for char in whole[:limit] if char.isprintable() or char in "\n\t")
    return kept if len(whole) <= limit else f"{kept}… [{len(whole) - limit} more characters]"


def html(text: object, limit: int = TEXT_LENGTH_MAX) -> str:
    """A string for HTML, also inside an attribute."""
    return escape(shown(text, limit), quote=True)


def html_value(value: Any) -> str:
    """A value for HTML, as JSON."""
    return html(value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value)).decode())


def markdown(text: object, limit: int = LINE_LENGTH_MAX) -> str:
    """A string for one line of Markdown, also inside a table."""
    line = LINKED.sub(rf"\g<0>{APART}", " ".join(shown(text, limit).split()))
    return "".join(REPLACED.get(char) or (f"\\{char}" if char in MARKED else char) for char in line)
