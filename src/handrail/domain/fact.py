"""The shape that all events share: frozen, spoken by keyword, brief on disk. The events themselves are event.py's."""

from __future__ import annotations

from msgspec import Struct


class Fact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The shape all events share: frozen, spoken by keyword, brief on disk."""
