"""One POST of a channel: to a public address, or one that the owner allowed; no redirect is followed.

The address guard is that of http.request (tools/web/http_client.py)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from handrail.domain.definition.model import Category
from handrail.domain.errors import Invalid
from handrail.engine.notify.sender import NotSent
from handrail.engine.tool import ToolFailed
from handrail.tools.web.address import is_allowed
from handrail.tools.web.http import PORTS, retry_after_ms, url_flaws
from handrail.tools.web.http_message import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from handrail.tools.web.http_client import HttpClient

POST_S: Final = 15.0
"""How long a receiver may take to answer; Standard Webhooks asks for 15 to 30 seconds."""
ANY_STATUS: Final = range(100, 600)
GONE: Final = 410
"""The receiver says that it wants nothing more of this."""


class Posting:
    """Posts to one address after the other, on connections that are kept."""

    def __init__(self, allow: Collection[str], *, post_s: float = POST_S) -> None:
        self._allow = tuple(allow)
        self._post_s = post_s
        self._client: HttpClient | None = None

    async def post(self, url: str, headers: Mapping[str, str], content: bytes, *, now: int) -> None:
        """Return once the receiver has answered that it has it; NotSent says why it has not. Neither has the address in
        its words beyond its host: the address may be a secret."""
        self._require_sendable(url)
        # Not answered in time counts as not arrived: it is sent again, and the receiver knows it by its id.
        try:
            async with asyncio.timeout(self._post_s):
                ask = HttpRequest(method="POST", url=url, headers=headers, content=content, stays=True)
                answer = await self._connected().fetch(ask, wanted=ANY_STATUS)
        except TimeoutError:
            raise NotSent(f"{_host(url)} did not answer within {self._post_s:g} s") from None
        except ToolFailed as error:
            raise NotSent(_reason(error, url)) from None
        _require_taken(answer, _host(url), now)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _require_sendable(self, url: str) -> None:
        if url_flaws(url):
            raise Invalid("the address can't be used", hint="write it as https://host/path, without user or password")
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
        if parts.scheme == "http" and not is_allowed(host, port, (), self._allow):
            raise Invalid(f"{host} would be sent to without TLS", hint="use https, or name the host in `allow`")

    def _connected(self) -> HttpClient:
        if self._client is None:
            # Late: httpx takes 100 ms, which processes without such a channel should not pay.
            from handrail.tools.web.http_client import HttpClient

            self._client = HttpClient(self._allow)
        return self._client


def _require_taken(answer: HttpResponse, host: str, now: int) -> None:
    if 200 <= answer.status < 300:
        return
    # A redirect could lead past the guard, and would repeat a signed message to somebody else.
    if 300 <= answer.status < 400:
        raise NotSent(f"{host} answered {answer.status}: redirects are not followed, change the address")
    wait_ms = retry_after_ms(answer.headers.get("retry-after", ""), now) or 0
    raise NotSent(f"{host} answered {answer.status}", retry_after_ms=wait_ms, is_final=answer.status == GONE)


def _reason(error: ToolFailed, url: str) -> str:
    host = _host(url)
    if error.category is Category.PERMISSION and "not a public address" in str(error):
        return f"{host} is not a public address; name it in `allow` of the channel if it is meant"
    return str(error)


def _host(url: str) -> str:
    return urlsplit(url).hostname or "the receiver"
