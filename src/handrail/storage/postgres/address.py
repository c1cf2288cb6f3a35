"""The address of a PostgreSQL store: what a person wrote, and what may be shown of it.

An address can have a password in it. Nothing but `connections.py` sees the whole; messages get the name."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qs, urlsplit

from handrail.domain.errors import Invalid

SCHEMES: Final = ("postgresql", "postgres")
ADDRESS_LENGTH_MAX: Final = 2_000


class Address:
    """A PostgreSQL URL. Not a dataclass, so that its repr can't show the password."""

    def __init__(self, url: str) -> None:
        self._url = url
        try:
            parts = urlsplit(url)
            asked = parse_qs(parts.query)
            self._host = parts.hostname or asked.get("host", ["local"])[0]
            self._database = parts.path.strip("/") or asked.get("dbname", asked.get("database", [""]))[0]
            self._port = parts.port
        except ValueError:
            raise _no_address() from None  # the cause would have the whole address in its message
        if parts.scheme not in SCHEMES or len(url) > ADDRESS_LENGTH_MAX or not self._database:
            raise _no_address()

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def url(self) -> str:
        """All of it, for the driver only."""
        return self._url

    @property
    def name(self) -> str:
        """The address without user, password and options."""
        host = "local" if self._host.startswith("/") else self._host
        return f"{host}:{self._port}/{self._database}" if self._port else f"{host}/{self._database}"


def is_address(store: str) -> bool:
    """Whether a setting names a PostgreSQL store."""
    return store.partition("://")[0] in SCHEMES


def _no_address() -> Invalid:
    return Invalid(
        "the address of the store can't be used", hint="write it as postgresql://user:password@host:5432/database"
    )
