"""Which fields of events are instants: the journal stores them as milliseconds, readers see RFC 3339. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

INSTANTS: Final[Mapping[str, tuple[str, ...]]] = {
    "run_started": ("deadline",),
    "round_started": ("due",),
    "step_handed_out": ("until",),
    "retry_scheduled": ("due",),
    "step_deferred": ("due",),
    "undo_failed": ("due",),
    "approval_requested": ("expires",),
    "breaker_opened": ("until",),
    "store_restored": ("made",),
}
"""By kind of event: its fields that are instants."""
