"""Reads ahead: the next batch is fetched while one is processed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

Batch = TypeVar("Batch")


async def ahead(batches: AsyncIterator[Batch]) -> AsyncIterator[Batch]:
    """The same batches; the next one is fetched while the caller processes this one."""
    upcoming = asyncio.ensure_future(anext(batches, None))
    try:
        while (batch := await upcoming) is not None:
            upcoming = asyncio.ensure_future(anext(batches, None))
            await asyncio.sleep(0)  # let the fetch start before the caller blocks the loop
            yield batch
    finally:
        upcoming.cancel()
        await asyncio.wait([upcoming])
