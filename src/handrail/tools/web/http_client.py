"""The HTTP client of http.request: connects only to checked addresses, and checks redirects again.

The guard is where connections are made, so that nothing can bypass it: a name is looked up once, every address it
resolves to is checked, and exactly those are connected to. No proxies, no cookies, nothing from the environment.
The meaning of statuses is in http.py."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import certifi
import httpcore
import httpx
from msgspec.structs import replace

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolFailed
from handrail.tools.configuration import NONE_WITHHELD, WithheldHosts
from handrail.tools.web.address import is_allowed, is_public
from handrail.tools.web.content_decoding import Undecodable, decoder_of
from handrail.tools.web.http_message import HttpRequest, HttpResponse

ANSWER_BYTES_MAX: Final = 1_000_000
REDIRECTS_MAX: Final = 5
ADDRESSES_TRIED_MAX: Final = 4
CONNECT_S: Final = 10.0
SILENCE_S: Final = 300.0
OVERALL_S: Final = 600.0
CONNECTIONS_MAX: Final = 100
IDLE_S: Final = 30.0
FOLLOWED: Final = frozenset({301, 302, 303, 307, 308})
TELLING: Final = frozenset({"accept", "accept-language", "content-type", "idempotency-key", "user-agent"})
"""Headers that may be sent to another origin: any other one may contain credentials."""
TIMES: Final = {"connect": CONNECT_S, "read": SILENCE_S, "write": SILENCE_S, "pool": OVERALL_S}


class HttpClient:
    """The connections of one event loop, kept open between calls."""

    def __init__(self, allow: Collection[str], withheld: WithheldHosts = NONE_WITHHELD) -> None:
        self._guard = _Guard(allow, withheld)
        self._pools: dict[str, httpcore.AsyncConnectionPool] = {}

    async def fetch(self, ask: HttpRequest, *, wanted: Collection[int]) -> HttpResponse:
        """The response after at most a few redirects; a redirect status that is in `wanted` is not followed."""
        try:
            async with asyncio.timeout(OVERALL_S):
                for _ in range(REDIRECTS_MAX + 1):
                    answer = await self._exchange(ask)
                    if answer.status in wanted or not _leads_on(answer):
                        return answer
                    ask = redirected(ask, answer.headers["location"], answer.status)
        except TimeoutError:
            raise ToolFailed(Category.TIMEOUT, f"no complete response within {OVERALL_S:.0f} seconds") from None
        raise ToolFailed(Category.TOOL_ERROR, f"more than {REDIRECTS_MAX} redirects; use the final URL")

    async def close(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            await pool.aclose()
        self._pools.clear()

    async def _exchange(self, ask: HttpRequest) -> HttpResponse:
        try:
            request = httpx.Request(ask.method, ask.url, headers={**own_headers(), **ask.headers}, content=ask.content)
        except (httpx.InvalidURL, ValueError) as error:
            raise ToolFailed(Category.INVALID_INPUT, f"`url` can't be read: {error}") from None
        host = request.url.host
        asked = httpcore.Request(
            request.method,
            httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions={"timeout": TIMES},
        )
        try:
            return await self._answer(asked)
        except httpcore.TimeoutException:
            raise ToolFailed(Category.TIMEOUT, f"{host} did not answer in time") from None
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise _unreached(host, error) from None
        except Undecodable as error:
            raise ToolFailed(Category.TOOL_ERROR, f"the response of {host} {error}") from None

    async def _answer(self, asked: httpcore.Request) -> HttpResponse:
        answered = await self._pool(asked.url.scheme.decode()).handle_async_request(asked)
        try:
            response = httpx.Response(answered.status, headers=answered.headers)
            content = await _decoded(answered.aiter_stream(), response.headers.get_list("content-encoding"))
        finally:
            await answered.aclose()
        headers = dict(response.headers.items())
        return HttpResponse(
            status=response.status_code,
            headers=headers,
            content=content,
            charset=response.charset_encoding or "utf-8",
        )

    def _pool(self, scheme: str) -> httpcore.AsyncConnectionPool:
        if scheme not in self._pools:
            self._pools[scheme] = httpcore.AsyncConnectionPool(
                ssl_context=trusted() if scheme == "https" else None,
                max_connections=CONNECTIONS_MAX,
                keepalive_expiry=IDLE_S,
                network_backend=self._guard,
            )
        return self._pools[scheme]


async def _decoded(blocks: AsyncIterator[bytes], encodings: Sequence[str]) -> bytes:
    """A whole body, decoded within its limits; what has no body has no encoding either."""
    content, decoder = bytearray(), None
    async for block in blocks:
        # Unpacked within the limit, piece by piece: a few bytes can become gigabytes.
        decoder = decoder or decoder_of(encodings, bytes_max=ANSWER_BYTES_MAX)
        content += decoder.decoded(block)
    if decoder is not None:
        decoder.finish()
    return bytes(content)


class _Guard(httpcore.AsyncNetworkBackend):
    """Connects only to addresses that a call may reach."""

    def __init__(self, allow: Collection[str], withheld: WithheldHosts) -> None:
        self._allow, self._withheld = allow, withheld
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to one of the host's addresses, all of which were checked."""
        failed: Exception | None = None
        # Looked up once and connected to by number: a name that is looked up again could lead to another address by
        # then, inside this network.
        addresses = await checked_addresses(host, port, self._allow, self._withheld)
        for address in addresses[:ADDRESSES_TRIED_MAX]:
            try:
                return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed or httpcore.ConnectError(f"{host} has no address")


@cache
def own_headers() -> Mapping[str, str]:
    """The headers of every request, unless the caller sets them."""
    return {"user-agent": f"handrail/{version('handrail')}", "accept": "*/*", "accept-encoding": "identity"}


async def checked_addresses(
    host: str, port: int, allow: Collection[str], withheld: WithheldHosts = NONE_WITHHELD
) -> list[str]:
    """The addresses of a host; ToolFailed if it has one that a call may not reach."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ToolFailed(Category.TRANSIENT, f"the name {host} can't be looked up: {error.strerror}") from None
    except UnicodeError:
        raise ToolFailed(Category.INVALID_INPUT, f"{host[:100]} is not a host name") from None
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    # All of them, not only the one that is used: which of them answers is decided by who owns the name.
    if all(map(is_public, addresses)) or is_allowed(host, port, addresses, allow):
        return addresses
    refused = next(address for address in addresses if not is_public(address))
    message = f"{host} is not a public address ({refused}); only a person can allow it, so ask one if the step needs it"
    why = f"; {withheld.why}" if is_allowed(host, port, addresses, withheld.hosts) else ""
    raise ToolFailed(Category.PERMISSION, message + why)


def redirected(ask: HttpRequest, location: str, status: int) -> HttpRequest:
    """The request that a redirect asks for; ToolFailed if it may not be followed."""
    try:
        here, there = httpx.URL(ask.url), httpx.URL(ask.url).join(location).copy_with(fragment=None)
    except (httpx.InvalidURL, ValueError):
        raise ToolFailed(Category.TOOL_ERROR, "redirected to an invalid URL") from None
    if there.scheme not in {"http", "https"} or not there.host or there.userinfo:
        raise ToolFailed(Category.PERMISSION, f"redirected to {there.scheme}:, which is not followed")
    # What was sent encrypted, credentials included, would be repeated in clear.
    if here.scheme == "https" and there.scheme == "http":
        raise ToolFailed(Category.PERMISSION, f"redirected from https to http on {there.host}; that is not followed")
    return _at_origin(_by_status(ask, status), here, there)


def _by_status(ask: HttpRequest, status: int) -> HttpRequest:
    """A 303 is followed with GET; by common practice also 301 and 302 after POST. 307 and 308 repeat the request."""
    # As browsers do: servers rely on it, whatever the older standard said.
    if ask.method == "HEAD" or status in {307, 308} or (status != 303 and ask.method != "POST"):
        return ask
    return replace(ask, method="GET", content=None, headers=_without(ask.headers, {"content-type"}))


def _at_origin(ask: HttpRequest, here: httpx.URL, there: httpx.URL) -> HttpRequest:
    if _origin(here) == _origin(there):
        return replace(ask, url=str(there))
    if ask.stays:
        message = f"redirected to {there.host}; a request with secrets is not sent to another origin"
        raise ToolFailed(Category.PERMISSION, message)
    return replace(ask, url=str(there), headers=_without(ask.headers, {*map(str.lower, ask.headers)} - TELLING))


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}[url.scheme]


def _without(headers: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in names}


def trusted() -> ssl.SSLContext:
    """Trusted certificates: those of this machine, and those of certifi, because some machines have none."""
    context = ssl.create_default_context(cafile=certifi.where())
    context.load_default_certs()
    return context


def _leads_on(answer: HttpResponse) -> bool:
    return answer.status in FOLLOWED and "location" in answer.headers


def _unreached(host: str, error: Exception) -> ToolFailed:
    causes: Sequence[BaseException | None] = (error.__cause__, error.__context__)
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return ToolFailed(Category.PERMISSION, f"the certificate of {host} is not trusted: {error}")
    return ToolFailed(Category.TRANSIENT, f"{host} can't be reached: {error or type(error).__name__}")
