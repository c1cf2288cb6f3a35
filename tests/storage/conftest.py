"""What tests of stores ask for: each store of the conformance list, a path, and someone else on the same file."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from storage.conformance import LEFT_OUT, STORES, Store


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """Each store of the list, fresh; a file of tests that is about one of them says so by a fixture of its own."""
    if reason := LEFT_OUT.get(request.param):
        pytest.skip(reason)
    opened = await STORES[request.param](tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def other_process(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection like another program's, that can hold locks and look at the file."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=5)) as connection:
        yield connection
