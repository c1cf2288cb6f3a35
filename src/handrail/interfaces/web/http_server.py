"""`handrail serve`: resolve the address, check that serving it is safe, open the token and the parts, run.

Options are parsed, the parts are put together, and the endpoint is printed, by the command line."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from handrail.domain.errors import Forbidden, Invalid, Unavailable
from handrail.interfaces.web.guard import Guard, guard_of
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.listen_address import ListenAddress, listen_on, resolve_address
from handrail.interfaces.web.site import Answered, Ready, SitePart, WebSite
from handrail.interfaces.web.token_file import open_token
from handrail.interfaces.web.uvicorn_runner import run

HOST: Final = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
"""A host name, an IPv4 address or an IPv6 address, with or without a port."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The options of `handrail serve`."""

    home: Path
    host: str = "127.0.0.1"
    port: int = 7420
    allowed: Sequence[str] = ()
    """More host names that clients may use, besides those of the address."""
    needs_token: bool = True
    takes_any: bool = False
    """Whether another port is taken if this one is in use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the server is, and what a client needs to connect."""

    url: str
    is_loopback: bool
    guard: Guard = field(repr=False)
    token_file: Path | None = None


OpenParts = Callable[[Endpoint, HttpLimits], AbstractAsyncContextManager[tuple[Sequence[SitePart], Ready]]]
"""Opens the parts of the site, together with its readiness check."""


async def serve(
    options: ServeOptions,
    open_parts: OpenParts,
    *,
    stop: asyncio.Future[None],
    on_ready: Callable[[Endpoint], None],
    answered: Answered | None = None,
) -> None:
    """Serve over HTTP until `stop` is done; `on_ready` is called when clients can connect, `answered` for each request
    that ended."""
    address = resolve_address(options.host, options.port)
    _require_hosts(options.allowed)
    _require_safe(options, address)
    # The port is bound first: if it is in use, no token file and no store is created.
    with closing(_listening(address, options)) as listener:
        address = replace(address, port=listener.getsockname()[1])  # with port 0 the system has chosen one
        token, file = open_token(options.home) if options.needs_token else (None, None)
        guard = guard_of(address.names, address.port, token=token, allowed=options.allowed)
        endpoint = Endpoint(url=address.url, is_loopback=address.is_loopback, guard=guard, token_file=file)
        log.info("serving at %s", endpoint.url)
        limits = HttpLimits()
        async with open_parts(endpoint, limits) as (parts, ready):
            site = WebSite(parts, ready=ready, guard=guard, limits=limits, answered=answered)
            await run(site, listener, stop=stop, on_started=lambda: on_ready(endpoint))


def _listening(address: ListenAddress, options: ServeOptions) -> socket.socket:
    try:
        return listen_on(address)
    except Unavailable:
        if not options.takes_any:
            raise
        log.warning("port %d is in use: using another one", address.port)
        return listen_on(replace(address, port=0))


def _require_hosts(names: Sequence[str]) -> None:
    """Allow exact names only: a pattern would let in pages that the user didn't mean."""
    for name in names:
        if not HOST.fullmatch(name):
            hint = "give a name as in `Host: NAME` or `NAME:PORT`"
            raise Invalid(f"--allow-host {name!r} is not a host name", hint=hint)


def _require_safe(options: ServeOptions, address: ListenAddress) -> None:
    """Require a token on any address that other machines can reach."""
    if address.is_loopback:
        return
    if not options.needs_token:
        hint = "remove --no-token, or use --host 127.0.0.1"
        message = f"other machines can reach {address.address}: it is not served without a token"
        raise Forbidden(message, hint=hint)
    log.warning(
        "other machines can reach %s, and nothing is encrypted: put a proxy with TLS in front of it", address.address
    )
    if not options.allowed and address.is_wildcard:
        log.warning("other machines can't connect until you name the host they use: --allow-host NAME")
