"""When the whole journal was verified last on this machine, and whether it was intact: one small file in the home.

Only for figures and alarms: who wants to know whether a journal is intact verifies it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from handrail.foundation.atomic_file import write_whole
from handrail.foundation.plain_file import NotPlain, read_plain

FILE: Final = "verified.json"
BYTES_MAX: Final = 10_000

log = logging.getLogger(__name__)


class VerifiedLast(Struct, frozen=True, kw_only=True):
    """The last verification of the whole journal."""

    at: int
    ok: bool
    events: int


def note_verified(home: Path, verified: VerifiedLast) -> None:
    """Keep it; a home that can't be written is no reason to fail a verification."""
    try:
        write_whole(home / FILE, msgspec.json.encode(verified))
    except OSError as error:
        log.info("that the journal was verified can't be noted: %s", error.strerror or error)


def verified_last(home: Path) -> VerifiedLast | None:
    """The last one; None if there was none, or what was noted can't be read."""
    try:
        return msgspec.json.decode(read_plain(home / FILE, bytes_max=BYTES_MAX), type=VerifiedLast)
    except (OSError, NotPlain, msgspec.MsgspecError):
        return None
