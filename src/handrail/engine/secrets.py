"""Secrets, as whoever needs one sees them: found by name, with the tools that a plan may give them to.

Protocols and values only. Keeping them is storage's work; giving them to tools, and taking them out of what tools
say, is done in tools/vault.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

Kept: TypeAlias = Literal["file", "keyring"]


class Secret(Struct, frozen=True, kw_only=True):
    """A value that is never written down outside its keeping."""

    value: str
    given_to: tuple[str, ...] = ()
    """The tools that a plan may give it to, as patterns: `git.*`, `http.request:api.example.com`."""

    def __repr__(self) -> str:
        return f"Secret(given_to={self.given_to!r})"


class SecretCard(Struct, frozen=True, kw_only=True):
    """What may be shown of a secret: everything but its value."""

    name: str
    given_to: tuple[str, ...]
    kept: Kept
    set: int
    """When its value was last set."""


class Secrets(Protocol):
    """Where secrets are found."""

    def find(self, name: str) -> Secret | None:
        """The secret of that name, if there is one."""
        ...


class SecretStore(Secrets, Protocol):
    """Where a person keeps secrets."""

    def keep(self, name: str, value: str | None, given_to: Sequence[str] | None) -> SecretCard:
        """Set a secret; None leaves its value, or the tools that it may be given to, as they are."""
        ...

    def cards(self) -> Sequence[SecretCard]:
        """What may be shown of all secrets, by name."""
        ...

    def remove(self, name: str) -> None:
        """Forget a secret; NotFound if there is none of that name."""
        ...
