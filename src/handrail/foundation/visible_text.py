"""Text made visible: characters that control a terminal, change the reading direction or can't be seen are written out.

Pure. A name, a tool's output or a file of a stranger may contain them, to hide or to fake what a person reads. Printing
is done elsewhere; imports only `re`, because logging needs this early."""

from __future__ import annotations

import re
from typing import Final

# Letters and marks that Python calls printable and that show nothing: fillers, joiners, variation selectors.
_UNSEEN: Final = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef"
# Control (C0, DEL, C1), soft hyphen, Arabic marks, zero width, bidirectional, line and paragraph ends, tags, and more.
_FORMAT: Final = (
    "\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
)
_SURROGATES: Final = "\ud800-\udfff"
_hidden: Final = re.compile(f"[{_FORMAT}{_UNSEEN}{_SURROGATES}]")
_hidden_but_lines: Final = re.compile(f"(?![\n\t])[{_FORMAT}{_UNSEEN}{_SURROGATES}]")
# In JSON, what lies below a space is whitespace between values; inside texts it is escaped already.
_hidden_in_json: Final = re.compile(f"(?![\n\r\t])[{_FORMAT}{_UNSEEN}]")
_spaces: Final = re.compile("[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]")


def visible(text: str) -> str:
    r"""The text with hidden characters written out, as `\x1b` or `\u202e`; line ends and tabs stay."""
    return text if text.isascii() and text.isprintable() else _spaces.sub(" ", _hidden_but_lines.sub(_escape, text))


def visible_line(text: str) -> str:
    """The same, also for line ends and tabs: the result is one line."""
    return text if text.isascii() and text.isprintable() else _spaces.sub(" ", _hidden.sub(_escape, text))


def visible_json(text: str) -> str:
    """The same JSON with hidden characters as escapes of JSON: it decodes to the same value."""
    return text if text.isascii() and "\x7f" not in text else _hidden_in_json.sub(_json_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
