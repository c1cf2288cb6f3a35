"""The answer of the policy: allowed, or refused with the reason and who may."""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

from handrail.domain.errors import Forbidden


class Allowed(Struct, frozen=True):
    """The actor may do it."""


class Refused(Struct, frozen=True, kw_only=True):
    """The actor may not do it: why, and who may."""

    why: str
    who_may: str
    """What to do next, in words that an agent may see; never which setting would switch the guard off."""


PolicyVerdict: TypeAlias = Allowed | Refused
ALLOWED: Final = Allowed()


def require_allowed(verdict: PolicyVerdict) -> None:
    """Forbidden if the policy refused."""
    if isinstance(verdict, Refused):
        raise Forbidden(verdict.why, hint=verdict.who_may)
