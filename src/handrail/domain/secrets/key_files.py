"""Which files of HANDRAIL_HOME are keys: who has one can act as this home. They are private, and a copy of the home
has them in a part of its own or not at all.

Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

KEYS_FOLDER: Final = "keys"


class TokenName(StrEnum):
    """The files beside that folder, each with one token of a server. There are no others: all are created by these."""

    AGENTS = "http-token"
    """For MCP over HTTP."""
    CONSOLE = "console-key"
    """For scripts that act as the person: not the token, which agents have."""
    METRICS = "metrics-token"
    """For scrapes: a monitoring system should not hold what lets it start runs."""


KEY_FILES: Final = frozenset({KEYS_FOLDER, *TokenName})
PUBLIC: Final = ".pub"
"""The ending of what may be read by all in the folder of keys."""
