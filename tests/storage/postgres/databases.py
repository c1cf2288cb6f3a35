"""Databases of the test server: one for each process of the session, emptied for each test; or one more, by name."""

from __future__ import annotations

import os
from pathlib import Path

import asyncpg

from handrail.storage.postgres.store import PostgresStore
from storage.postgres.server import server_url

EMPTIED = (
    *("event", "tombstone", "removed_event", "head", "run", "step", "plan", "definition", "worker", "node", "rate"),
    *("outbox_channel", "outbox_message"),
    "calls_under_way",
)


def session_of(folder: Path) -> Path:
    """The folder that all processes of a test session share, from a test's own."""
    shared = [one for one in folder.parents if one.name.startswith("pytest-") and one.name[7:].isdigit()]
    return shared[0]


async def new_database(folder: Path, name: str) -> str:
    """The address of an empty database."""
    server = server_url(session_of(folder))
    unique = f"{name}_{os.getpid()}"
    connection = await asyncpg.connect(server % "postgres")
    try:
        await connection.execute(f'drop database if exists "{unique}" with (force)')
        await connection.execute(f'create database "{unique}"')
    finally:
        await connection.close()
    return server % unique


async def fresh_database(folder: Path) -> str:
    """The address of a database with empty tables: quicker than making one for each test."""
    server = server_url(session_of(folder))
    name = f"each_{os.getpid()}"
    if name not in _made:
        url = await new_database(folder, "each")
        async with await PostgresStore.open(url):
            _made.add(name)
        return url
    connection = await asyncpg.connect(server % name)
    try:
        # Tables of a test have few rows: to remove them is quicker than new files for every table and index. As a
        # replica would: no trigger keeps events from being removed.
        emptied = "; ".join(f"delete from handrail.{table}" for table in EMPTIED)
        lanes = "update handrail.lane set last = 0, tick = 0 where last > 0"
        await connection.execute(f"set session_replication_role = replica; {emptied}; {lanes}")
    finally:
        await connection.close()
    return server % name


_made: set[str] = set()
