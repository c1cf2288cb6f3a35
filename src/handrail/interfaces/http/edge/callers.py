"""Who calls: a browser that is signed in, or a script with the key; and whether the request may come from there.

Pure, apart from reading the session file once. What the caller may do is decided by the policy (domain/policy)."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Final

from msgspec import Struct

from handrail.domain.errors import Forbidden
from handrail.interfaces.http.contract.openapi import PAGE_KEY
from handrail.interfaces.http.edge.sign_in import ConsoleSession, SignIn

CONSOLE: Final = "console"
COMMAND: Final = "command"
"""The channel of a script: it has no terminal, like a command without one."""
OWN_PAGES: Final = frozenset({"same-origin", "none"})
"""What a browser says of a request by our own page, or typed by the user; a page of another port is `same-site`."""
COOKIE_MAX: Final = 4_096


class ApiCaller(Struct, frozen=True, kw_only=True):
    """Who calls, and how."""

    actor: str
    channel: str
    session: ConsoleSession | None = None

    @property
    def project(self) -> str:
        """The id of the project that they came in for; empty if they did not say."""
        return self.session.project if self.session is not None else ""


class NotSignedIn(Forbidden):
    """No browser session and no right key."""

    hint = "open the link that `handrail serve` or `handrail open` prints; it carries the key to this page"


@dataclass(frozen=True, slots=True, kw_only=True)
class Callers:
    """Finds out who calls."""

    person: str
    sign_in: SignIn
    key: str = field(repr=False)
    """The key of scripts."""
    origins: frozenset[str]
    port: int

    @property
    def cookie_name(self) -> str:
        """Browsers send cookies to all ports of a host: the name keeps servers from replacing each other's."""
        return f"handrail_{self.port}"

    def caller(self, headers: Mapping[str, str], *, is_write: bool) -> ApiCaller:
        """The caller; Unknown if there is none, Forbidden if the request comes from elsewhere."""
        require_own_page(headers)
        if "authorization" in headers:
            return self._by_key(headers["authorization"])
        session = self.sign_in.session(_cookie(headers.get("cookie", ""), self.cookie_name))
        if session is None:
            raise NotSignedIn("this browser is not signed in")
        if is_write:
            self._require_own_write(headers, session)
        return ApiCaller(actor=self.person, channel=CONSOLE, session=session)

    def is_open(self, session: ConsoleSession) -> bool:
        """Whether a session was not ended in the meantime."""
        return self.sign_in.is_open(session)

    def _by_key(self, authorization: str) -> ApiCaller:
        scheme, _, given = authorization.partition(" ")
        # compare_digest: the time it takes doesn't reveal how much of a guess is right.
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.key.encode()):
            raise NotSignedIn(
                "the key is wrong", hint="agents use MCP at /mcp; people open the link that `handrail open` prints"
            )
        return ApiCaller(actor=self.person, channel=COMMAND)

    def _require_own_write(self, headers: Mapping[str, str], session: ConsoleSession) -> None:
        if headers.get("origin", "").lower() not in self.origins:
            raise Forbidden("a write must come from the console's own page", hint="send the Origin of this server")
        if not self.sign_in.has_key(session, headers.get(PAGE_KEY.lower(), "")):
            raise Forbidden(
                f"a write needs the page's key in {PAGE_KEY}", hint="open the link of `handrail open` again"
            )


def require_own_page(headers: Mapping[str, str]) -> None:
    """Refuse what a browser says that another site, or another port of this machine, has asked for."""
    if headers.get("sec-fetch-site", "none").lower() not in OWN_PAGES:
        raise Forbidden("another web page asked for this", hint="open the console itself")


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header[:COOKIE_MAX]).get(name)
    except CookieError:  # of another server on this host
        return ""
    return found.value if found is not None else ""
