"""Addresses as they may be shown: without passwords. Pure."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

HIDDEN: Final = "***"

_in_user: Final = re.compile(r"(?<=://)([^/?#@]*?):[^/?#]*@")
_in_query: Final = re.compile(r"(?<=[?&])((?:ssl)?password)=[^&#]*")


def without_password(address: str) -> str:
    """An address with stars in place of its password."""
    return _in_query.sub(rf"\1={HIDDEN}", _in_user.sub(rf"\1:{HIDDEN}@", address))


def passwords_in(address: str) -> set[str]:
    """The passwords in an address, as written and as meant."""
    try:
        parts = urlsplit(address)
        written = {parts.password or ""}
        query = parse_qs(parts.query)
    except ValueError:
        return set()
    written |= {value for name in ("password", "sslpassword") for value in query.get(name, ())}
    return {one for value in written for one in (value, unquote(value)) if one}
