"""Requests and answers of http.request, as values.

How they travel is http_client.py's work, what they mean http.py's."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class HttpRequest(Struct, frozen=True, kw_only=True):
    """One request."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None
    stays: bool = False
    """Whether it holds secrets, so that no redirect may take it elsewhere."""


class HttpResponse(Struct, frozen=True, kw_only=True):
    """One whole answer; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    charset: str
