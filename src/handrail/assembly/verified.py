"""What is remembered of verifications, for interfaces that show how old the last one is."""

from __future__ import annotations

from handrail.engine.clock import system_clock
from handrail.engine.proving.audit import AuditResult
from handrail.settings import Settings
from handrail.storage.verified_file import VerifiedLast, note_verified
from handrail.storage.verified_file import verified_last as last_in


def noted(settings: Settings, result: AuditResult) -> AuditResult:
    """The result, remembered."""
    if settings.home.is_dir():
        note_verified(settings.home, VerifiedLast(at=system_clock(), ok=result.ok, events=result.events))
    return result


def verified_last(settings: Settings) -> VerifiedLast | None:
    """The last verification of the whole journal on this machine."""
    return last_in(settings.home)
