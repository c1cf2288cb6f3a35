"""The guard of the HTTP edge: under which name, from which page and with which token one may come in.

Pure. Names are compared whole, never by pattern: a page that a browser has open elsewhere can't reach in by renaming
its own address to ours."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from handrail.domain.errors import Forbidden
from handrail.interfaces.mcp.http.answers import Answer, Header, refusal

MISDIRECTED: Final = 421
FORBIDDEN: Final = 403
UNAUTHORIZED: Final = 401


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Who may come in."""

    hosts: frozenset[str]
    """The whole Host headers that are ours, in small letters."""
    origins: frozenset[str]
    """The whole Origin headers that may call us; a request without one comes from no page."""
    token: str | None = field(default=None, repr=False)
    """What a client must show; None: nothing."""

    def wrong_place(self, headers: Sequence[Header]) -> Answer | None:
        """Why a request with these headers is not for us, or not from where it may come."""
        hosts = _values(headers, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            hint = "use an address that `handrail serve` printed, or start it with --allow-host NAME"
            return refusal(MISDIRECTED, Forbidden("this server does not go by that name", hint=hint))
        if not all(origin.lower() in self.origins for origin in _values(headers, b"origin")):
            hint = "call from no web page, or start `handrail serve` with --allow-host NAME"
            return refusal(FORBIDDEN, Forbidden("web pages from there may not call this server", hint=hint))
        return None

    def no_token(self, headers: Sequence[Header]) -> Answer | None:
        """Why a request with these headers does not show the token."""
        if self.token is None:
            return None
        shown = _values(headers, b"authorization")
        if not shown:
            return _unauthorized("a token is needed", b"Bearer")
        scheme, _, word = shown[0].partition(" ")
        is_right = hmac.compare_digest(word.strip().encode("latin-1"), self.token.encode("latin-1"))
        if len(shown) != 1 or scheme.lower() != "bearer" or not is_right:
            return _unauthorized("the token is not the one of this server", b'Bearer error="invalid_token"')
        return None


def guard_of(names: Iterable[str], port: int, *, token: str | None, allowed: Iterable[str] = ()) -> Guard:
    """The guard of a server that is bound to `port`, goes by `names`, and by those `allowed` beside.

    An allowed name without a port is meant both as it stands, as a proxy passes it on, and with ours."""
    own = {spelled for name in names for spelled in _with_port(name, port)}
    others = {spelled for name in allowed for spelled in _spellings(name.lower(), port)}
    origins = {f"http://{host}" for host in own} | {f"https://{host}" for host in others}
    return Guard(hosts=frozenset(own | others), origins=frozenset(origins), token=token)


def _with_port(name: str, port: int) -> set[str]:
    # Clients leave the port of plain http out.
    return {f"{name}:{port}", name} if port == 80 else {f"{name}:{port}"}


def _spellings(name: str, port: int) -> set[str]:
    has_port = ":" in name.rpartition("]")[2]
    return {name} if has_port else {name, f"{name}:{port}"}


def _values(headers: Sequence[Header], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]


def _unauthorized(message: str, challenge: bytes) -> Answer:
    hint = "send `Authorization: Bearer TOKEN`; `handrail serve` prints the token, and keeps it in http-token"
    return refusal(UNAUTHORIZED, Forbidden(message, hint=hint), (b"www-authenticate", challenge))
