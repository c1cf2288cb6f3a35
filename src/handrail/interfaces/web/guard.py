"""Checks the Host, Origin and Authorization headers of HTTP requests.

Pure. Names are compared exactly, never by pattern. This stops DNS rebinding: a web page that points its own host name
at our address still sends its own name as Host and Origin."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from handrail.domain.errors import Forbidden
from handrail.interfaces.web.responses import Header, JsonResponse, error_response

MISDIRECTED: Final = 421
FORBIDDEN: Final = 403
UNAUTHORIZED: Final = 401


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Which requests are allowed."""

    hosts: frozenset[str]
    """The exact Host headers of this server, in lower case."""
    origins: frozenset[str]
    """The exact Origin headers that are allowed; a request without one doesn't come from a web page."""
    token: str | None = field(default=None, repr=False)
    """The token that a client must send; None if none is needed."""

    def check_host_and_origin(self, headers: Sequence[Header]) -> JsonResponse | None:
        """An error if the request is for another host, or from a web page that isn't allowed."""
        hosts = _values(headers, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            hint = "use an address that `handrail serve` printed; who runs it decides which others it has"
            return error_response(MISDIRECTED, Forbidden("this server doesn't have that host name", hint=hint))
        if not all(origin.lower() in self.origins for origin in _values(headers, b"origin")):
            hint = "call it from a program, not from a web page of another site"
            return error_response(FORBIDDEN, Forbidden("web pages of that origin may not call this server", hint=hint))
        return None

    def check_token(self, headers: Sequence[Header]) -> JsonResponse | None:
        """An error if the request doesn't carry the token."""
        if self.token is None:
            return None
        given = _values(headers, b"authorization")
        if not given:
            return _unauthorized("a token is required", b"Bearer")
        scheme, _, token = given[0].partition(" ")
        # compare_digest: the time it takes doesn't reveal how much of a guess is right.
        is_right = hmac.compare_digest(token.strip().encode("latin-1"), self.token.encode("latin-1"))
        if len(given) != 1 or scheme.lower() != "bearer" or not is_right:
            return _unauthorized("the token is wrong", b'Bearer error="invalid_token"')
        return None


def guard_of(names: Iterable[str], port: int, *, token: str | None, allowed: Iterable[str] = ()) -> Guard:
    """The guard of a server on `port` with these `names`, plus the `allowed` ones.

    An allowed name without a port is accepted as it is, as a proxy forwards it, and with our port."""
    own = {spelled for name in names for spelled in _with_port(name, port)}
    others = {spelled for name in allowed for spelled in _spellings(name.lower(), port)}
    origins = {f"http://{host}" for host in own} | {f"https://{host}" for host in others}
    return Guard(hosts=frozenset(own | others), origins=frozenset(origins), token=token)


def _with_port(name: str, port: int) -> set[str]:
    # Clients omit the default port of http.
    return {f"{name}:{port}", name} if port == 80 else {f"{name}:{port}"}


def _spellings(name: str, port: int) -> set[str]:
    has_port = ":" in name.rpartition("]")[2]
    return {name} if has_port else {name, f"{name}:{port}"}


def _values(headers: Sequence[Header], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]


def _unauthorized(message: str, challenge: bytes) -> JsonResponse:
    hint = "send `Authorization: Bearer TOKEN`; the token is in the file http-token that `handrail serve` names"
    return error_response(UNAUTHORIZED, Forbidden(message, hint=hint), (b"www-authenticate", challenge))
