"""Throw-away databases, in which backups are verified: created and dropped beside the one of an address."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

import asyncpg

from handrail.domain.errors import Unavailable
from handrail.storage.postgres.address import Address
from handrail.storage.postgres.faults import BELOW, store_error

NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
HINT: Final = "give its role the right: `alter role ... createdb`; or restore the backup into an empty database"


async def created(address: str, name: str) -> str:
    """Create a database on the server of an address; its own address."""
    await _do(address, f"create database \"{_checked(name)}\" template template0 encoding 'UTF8'")
    return urlsplit(address)._replace(path=f"/{name}").geturl()


async def dropped(address: str, name: str) -> None:
    """Drop a database that was created here."""
    await _do(address, f'drop database if exists "{_checked(name)}" with (force)')


def _checked(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ValueError(name)
    return name


async def _do(address: str, statement: str) -> None:
    try:
        connection = await asyncpg.connect(Address(address).url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()
    except asyncpg.InsufficientPrivilegeError as error:
        raise Unavailable("the server does not allow a throw-away database", hint=HINT) from error
    except BELOW as error:
        raise store_error(error, Address(address).name) from error
