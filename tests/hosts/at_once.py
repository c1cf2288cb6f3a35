"""Runs one scene for several hosts at once, each in a thread with a loop of its own, for tests that are one for each.

A scene waits most of its time for leases, timers and servers: one after the other, the suite would wait for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeAlias

import pytest

from hosts.servers import missing

AtOnce: TypeAlias = Mapping[str, "Future[None]"]
"""By host: what its scene has come out as, once it has ended."""


@contextmanager
def at_once(request: pytest.FixtureRequest, scene: Callable[[str], Coroutine[Any, Any, None]]) -> Iterator[AtOnce]:
    """Start the scene for each host that a test of this module was chosen for, and that is there."""
    chosen = {
        str(item.callspec.params["host"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path and request.fixturename in item.fixturenames
    }
    hosts = sorted(host for host in chosen if not missing(host))
    with ThreadPoolExecutor(max_workers=max(1, len(hosts))) as pool:
        yield {host: pool.submit(asyncio.run, scene(host)) for host in hosts}
