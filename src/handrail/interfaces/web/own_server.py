"""Asks a running server of this home, with a token of the home: directly, and only there."""

from __future__ import annotations

import urllib.request
from http.client import HTTPResponse
from typing import Any, Final

from handrail.domain.errors import Invalid

SCHEMES: Final = ("http://", "https://")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token would go along to wherever a redirect leads."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none: the answer that asks for it is an error."""


def ask_server(url: str, token: str, *, within_s: float, content: bytes | None = None) -> HTTPResponse:
    """The answer of a server, to be closed by the caller; JSON is posted if there is content. HTTPError is raised for
    answers that are no success, another OSError if there is none."""
    if not url.startswith(SCHEMES):
        raise Invalid(f"{url!r} is no address of a server", hint="write it as http://127.0.0.1:PORT")
    headers = {"authorization": f"Bearer {token}"} | ({} if content is None else {"content-type": "application/json"})
    request = urllib.request.Request(url, data=content, headers=headers)  # noqa: S310 - the scheme is checked above
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)  # no proxy may see the token
    answer: HTTPResponse = direct.open(request, timeout=within_s)
    return answer
