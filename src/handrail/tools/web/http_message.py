"""Requests and responses of http.request, as values.

They are sent and received in http_client.py, and interpreted in http.py."""

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
    """Whether it contains secrets, so that no redirect may send it to another origin."""


class HttpResponse(Struct, frozen=True, kw_only=True):
    """One complete response; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    charset: str
