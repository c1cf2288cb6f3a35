"""The protocol of secrets: found by name, with the tools that may receive them.

Protocols and values only. Secrets are stored in storage/; tools/vault.py passes them to tools and removes them from
what tools return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

Kept: TypeAlias = Literal["file", "keyring"]


class Secret(Struct, frozen=True, kw_only=True):
    """A value that is never written anywhere but in its store."""

    value: str
    given_to: tuple[str, ...] = ()
    """The tools that may receive it, as patterns: `git.*`, `http.request:api.example.com`."""

    def __repr__(self) -> str:
        return f"Secret(given_to={self.given_to!r})"


class SecretCard(Struct, frozen=True, kw_only=True):
    """What may be shown of a secret: everything except its value."""

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


class ReadSecrets(Struct, frozen=True, kw_only=True):
    """The values of all secrets that could be read, by name."""

    values: Mapping[str, str]
    unread: int = 0
    """How many could not be read: their keyring is locked, or gone."""

    def __repr__(self) -> str:
        return f"ReadSecrets({len(self.values)} values, unread={self.unread})"


class SecretValues(Protocol):
    """All secrets at once, to keep them out of everything that is written."""

    def mark(self) -> object:
        """Differs from an earlier mark if a secret has changed since; takes microseconds."""
        ...

    def values(self) -> ReadSecrets:
        """The current values."""
        ...


class SecretStore(Secrets, SecretValues, Protocol):
    """Where a person stores secrets."""

    def keep(self, name: str, value: str | None, given_to: Sequence[str] | None) -> SecretCard:
        """Set a secret; None leaves its value, or the tools that may receive it, unchanged."""
        ...

    def cards(self) -> Sequence[SecretCard]:
        """What may be shown of all secrets, by name."""
        ...

    def remove(self, name: str) -> None:
        """Delete a secret; NotFound if there is none of that name."""
        ...
