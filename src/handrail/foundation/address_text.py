"""Addresses as they may be shown: without passwords. Pure."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

HIDDEN: Final = "***"

_in_user: Final = re.compile(r"(?<=://)([^/?#@]*?):[^/?#]*@")
_SECRET_NAMES: Final = (
    *("password", "sslpassword", "token", "access_token", "key", "api_key", "apikey"),
    *("sig", "signature", "secret"),
)
"""What a part of an address is called that opens something."""
_in_query: Final = re.compile(rf"(?i)(?<=[?&])({'|'.join(_SECRET_NAMES)})=[^&#]*")


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
    written |= {value for name, values in query.items() if name.lower() in _SECRET_NAMES for value in values}
    return {one for value in written for one in (value, unquote(value)) if one}
