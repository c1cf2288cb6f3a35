"""The entrance of `handrail serve`: find the place, hold to the rules of who may listen where, open, run.

The command line says what a person wishes, and tells what came of it."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from mcp.server.lowlevel.server import Server

from handrail.domain.errors import Forbidden, Invalid
from handrail.interfaces.mcp.http.app import MCP_PATH, Ready, app_of
from handrail.interfaces.mcp.http.guard import guard_of
from handrail.interfaces.mcp.http.place import Place, bound, place_of
from handrail.interfaces.mcp.http.running import run
from handrail.interfaces.mcp.http.token_file import open_token

HOST: Final = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
"""A name, an address of IPv4 or one of IPv6, with or without a port."""

log = logging.getLogger(__name__)

Opening = Callable[[], AbstractAsyncContextManager[tuple[Server[Any], Ready]]]
"""What opens the server that is to be served, and says how to ask whether it is ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How a person wants to be served."""

    home: Path
    host: str = "127.0.0.1"
    port: int = 7420
    allowed: Sequence[str] = ()
    """Names beside those of the address, under which clients may come."""
    needs_token: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Doorplate:
    """What a client has to know to come in."""

    url: str
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None


async def serve(wish: Wish, opening: Opening, *, stop: asyncio.Future[None], tell: Callable[[Doorplate], None]) -> None:
    """Serve over HTTP until `stop` is done; `tell` is called when clients can come."""
    place = place_of(wish.host, wish.port)
    _require_hosts(wish.allowed)
    _require_safe(wish, place)
    with closing(bound(place)) as listener:
        place = replace(place, port=listener.getsockname()[1])
        token, file = open_token(wish.home) if wish.needs_token else (None, None)
        guard = guard_of(place.names, place.port, token=token, allowed=wish.allowed)
        plate = Doorplate(url=place.url + MCP_PATH, token=token, token_file=file)
        log.info("MCP over HTTP at %s", plate.url)
        async with opening() as (server, ready):
            app = app_of(server, ready=ready, guard=guard)
            await run(app, listener, stop=stop, started=lambda: tell(plate))


def _require_hosts(names: Sequence[str]) -> None:
    """Hold to the rule: names are whole."""
    for name in names:
        if not HOST.fullmatch(name):
            raise Invalid(f"--allow-host {name!r} is no host", hint="give a name as in `Host: NAME` or `NAME:PORT`")


def _require_safe(wish: Wish, place: Place) -> None:
    """Hold to the rule: what others can reach needs a token."""
    if place.is_loopback:
        return
    if not wish.needs_token:
        hint = "leave --no-token out, or use --host 127.0.0.1"
        raise Forbidden(f"{place.address} can be reached from elsewhere: it is not served without a token", hint=hint)
    log.warning(
        "%s can be reached from elsewhere, and nothing is encrypted: put a proxy with TLS before", place.address
    )
    if not wish.allowed and place.is_everywhere:
        log.warning("other machines must say by which name they come: --allow-host NAME; none is given")
