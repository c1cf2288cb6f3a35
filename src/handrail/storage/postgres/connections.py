"""Connections to PostgreSQL: opened, checked, lent and given back.

A pooler in transaction mode may stand in between: then there is no session. Nothing is prepared, each question is a
transaction, and there is no listening. It is recognised by the server process: it is not the one that greeted."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

import asyncpg

from handrail.domain.errors import HandrailError, Invalid, Unavailable
from handrail.storage.admission import closed
from handrail.storage.postgres import queries
from handrail.storage.postgres.address import Address
from handrail.storage.postgres.faults import BELOW, is_lost, store_error

READERS_MAX: Final = 4
STATEMENTS_KEPT: Final = 100
COMMAND_S: Final = 120.0
SERVER_NEEDED: Final = 140_000
RETRY_S: Final = 0.05
RETRY_S_MAX: Final = 1.0


log = logging.getLogger(__name__)


class Connection(Protocol):
    """What is used of a connection of asyncpg, which has no types."""

    async def fetch(self, query: str, *values: Any) -> list[Any]:
        """The rows that a query finds."""
        ...

    async def fetchrow(self, query: str, *values: Any) -> Any:
        """The first of them."""
        ...

    async def fetchval(self, query: str, *values: Any) -> Any:
        """Its first column."""
        ...

    async def execute(self, query: str, *values: Any) -> str:
        """Do something; without values, it may be several statements."""
        ...

    async def copy_from_query(self, query: str, *, output: str, format: str, timeout: float) -> str:  # noqa: A002, ASYNC109
        """Write the rows that a query finds into a file."""
        ...

    async def copy_to_table(
        self,
        table_name: str,
        *,
        schema_name: str,
        columns: list[str],
        source: str,
        format: str,  # noqa: A002 (asyncpg's own)
        timeout: float,  # noqa: ASYNC109
    ) -> str:
        """Add the rows in a file to a table."""
        ...

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None:
        """Call something at every notification."""
        ...

    def transaction(self, *, isolation: str | None = None, readonly: bool = False) -> AbstractAsyncContextManager[Any]:
        """A transaction, from here to the end of the block."""
        ...

    def get_server_pid(self) -> int:
        """The process that greeted."""
        ...

    def is_closed(self) -> bool:
        """Whether it is of no more use."""
        ...

    async def close(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 (asyncpg's own)
        """Say good-bye."""
        ...

    def terminate(self) -> None:
        """Leave without a word."""
        ...


class Connections:
    """The connections of one open store."""

    def __init__(self, address: Address, *, wait_s: float) -> None:
        self.name = address.name
        self.is_pooled = False
        self._is_checked = False
        self._address = address
        self._wait_s = wait_s
        self._idle: list[Connection] = []
        self._lent = asyncio.Semaphore(READERS_MAX)
        self._is_closed = False

    async def check(self) -> None:
        """Refuse a server that can't keep what handrail promises."""
        try:
            async with self.reading() as connection:
                async with connection.transaction():
                    process, version, commit, encoding, is_copy = await connection.fetchrow(queries.SERVER)
                # A pooler greets in the name of a server process that does not answer the query: that is how it is
                # recognised.
                self.is_pooled = process != connection.get_server_pid()
                await connection.close()  # it prepares nothing, which only a pooler asks for
            self._is_checked = True
        except BELOW as error:
            raise store_error(error, self.name) from error
        _require(self.name, version=int(version), commit=commit, encoding=encoding)
        if is_copy:
            raise Unavailable(f"{self.name} is a read-only copy", hint="name the primary server in HANDRAIL_STORE")

    async def connect(self) -> Connection:
        """A new connection; tried again for a while if the server can't be reached."""
        deadline = asyncio.get_running_loop().time() + self._wait_s
        wait_s = RETRY_S
        while True:
            try:
                return await self._connected()
            except BELOW as error:
                known = store_error(error, self.name)
                is_late = asyncio.get_running_loop().time() + wait_s > deadline
                if is_late or self._is_closed or not isinstance(known, Unavailable):
                    raise known from None  # the cause may have the address in it
            except ValueError:
                raise Invalid("the address of the store can't be used", hint="check HANDRAIL_STORE") from None
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, RETRY_S_MAX)

    async def _connected(self) -> Connection:
        connection: Connection = await asyncpg.connect(
            self._address.url,
            timeout=max(1.0, self._wait_s),
            command_timeout=COMMAND_S,
            # A pooler lends sessions of other processes, with what they prepared there under the same names.
            statement_cache_size=STATEMENTS_KEPT if self._is_checked and not self.is_pooled else 0,
            server_settings={"application_name": "handrail"},
        )
        return connection

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[Connection]:
        """Borrow a connection; one that was lost is not given back."""
        async with self._lent:
            if self._is_closed:
                raise closed(self.name)
            connection = self._idle.pop() if self._idle else await self.connect()
            try:
                yield connection
            except BaseException as error:
                # Whatever ended it, an answer may still be on its way.
                # A cancelled query is the common case: the next borrower would read the rows that are still coming.
                if not isinstance(error, HandrailError | asyncpg.PostgresError) or is_lost(error):
                    connection.terminate()
                raise
            finally:
                if self._is_closed or connection.is_closed():
                    connection.terminate()
                else:
                    self._idle.append(connection)

    async def ask(self, query: str, *values: Any) -> list[Any]:
        """The rows that a query finds; asked again once if the connection was gone."""
        return await self._ask(query, values, tries=2)

    async def ask_once(self, query: str, *values: Any) -> list[Any]:
        """The same for a query that counts: asked again, it would count twice."""
        return await self._ask(query, values, tries=1)

    async def ask_planned(self, query: str, *values: Any) -> list[Any]:
        """The same for a query whose best plan depends on the values.

        After five times PostgreSQL makes one plan for any values, which may read a whole table where an index has few
        rows: among a million waiting runs, a look for those that are due took seconds."""
        return await self._ask(query, values, tries=2, planned=True)

    async def _ask(self, query: str, values: Sequence[Any], *, tries: int, planned: bool = False) -> list[Any]:
        for left in reversed(range(tries)):
            try:
                async with self.reading() as connection:
                    if not self.is_pooled and not planned:
                        return await connection.fetch(query, *values)
                    async with connection.transaction():
                        if planned:
                            await connection.execute(queries.PLANNED)
                        return await connection.fetch(query, *values)
            except BELOW as error:
                if is_lost(error):
                    # After a restart of the server all idle connections are dead, not only this one.
                    self._forget_idle()
                if not left or not is_lost(error):
                    raise store_error(error, self.name) from error
        raise closed(self.name)

    @contextlib.asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        """A connection of its own that sees the store as it is now, whatever is written meanwhile."""
        self.require_open()
        connection = self._idle.pop() if self._idle else await self.connect()
        # Not counted against the readers: a verification of hours must not keep short reads waiting.
        is_whole = False
        try:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                yield connection
            is_whole = True
        except BELOW as error:
            raise store_error(error, self.name) from error
        finally:
            if is_whole and not self._is_closed and len(self._idle) < READERS_MAX:
                self._idle.append(connection)
            else:
                connection.terminate()

    def require_open(self) -> None:
        """Refuse to go on after the store was closed."""
        if self._is_closed:
            raise closed(self.name)

    async def close(self) -> None:
        """Close all connections that are not lent, and those that are as soon as they come back."""
        self._is_closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            await self._dismiss(connection)

    def _forget_idle(self) -> None:
        for connection in self._idle:
            connection.terminate()
        self._idle.clear()

    async def _dismiss(self, connection: Connection) -> None:
        try:
            await connection.close(timeout=1)
        except BELOW:
            connection.terminate()


def _require(name: str, *, version: int, commit: str, encoding: str) -> None:
    if version < SERVER_NEEDED:
        raise Unavailable(f"{name} is PostgreSQL {version // 10_000}; handrail needs 14 or newer", hint="upgrade it")
    # "Acknowledged" means synced: with this setting a crash of the server would lose what was promised.
    if commit == "off":
        raise Invalid(
            f"{name} has synchronous_commit = off: what was acknowledged could be lost",
            hint="turn it on for this user or database: `alter role ... set synchronous_commit = on`",
        )
    if encoding != "UTF8":
        raise Invalid(f"{name} is encoded as {encoding}", hint="create the database with encoding UTF8")
