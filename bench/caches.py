"""What does a shared cache gain? A result of a check from a local file, from PostgreSQL, from Redis; and made again.

    python bench/caches.py [--gets 2000]

All three hold the same value, a result of a check. The local file is what handrail has without any setting. Redis is a
real server on a socket of this machine, which is the best that it can be; PostgreSQL is one out of a wheel. "As
handrail asks" is with opening the seal and the thread that the answer is waited for in. Last: what is saved where the
local file is empty, as on a machine that was just made, by rules that only look and by a project's tests; and what it
costs to count a hit. What is missing here is left out, by name."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import pytest

from bench.gates import PYTEST, judge, taken_ms, written
from handrail.assembly.checks import gate_of
from handrail.domain.checks.rule import CheckOutcome, Evidence
from handrail.domain.metrics.cache_catalog import RUN_STATES
from handrail.foundation.cache_use import use_of
from handrail.settings import read_settings
from handrail.storage.check_cache import RuleMemory
from handrail.storage.shared_cache.redis_cache import RedisCache
from handrail.storage.shared_cache.sealed_results import SealedResults, group_of
from storage.postgres import server
from storage.shared_cache.redis_server import redis_server

SECRET = b"k" * 32
EXCERPT = "12 passed in 0.31s\n" * 40
RESULT = CheckOutcome(evidence=Evidence(rule="tests_pass", version="1.0.0", passed=True, excerpt=EXCERPT))
COUNTED = 1_000_000
ROUNDS = 5
CHECKS: list[dict[str, Any]] = [
    {"rule": "file_exists", "path": "test_part_1.py"},
    {"rule": "file_contains", "path": "test_part_1.py", "pattern": "def"},
    {"rule": "tests_pass", "command": PYTEST},
]


async def median_us(gets: int, get: Callable[[], Awaitable[Any]]) -> float:
    took = []
    for _ in range(gets):
        started_s = time.perf_counter()
        assert await get() is not None
        took.append(1e6 * (time.perf_counter() - started_s))
    return statistics.median(took)


async def from_postgres(gets: int, folder: Path, value: bytes) -> float:
    import asyncpg

    connection = await asyncpg.connect(server.server_url(folder) % "postgres")
    try:
        await connection.execute("create temporary table kept (name text primary key, value bytea)")
        await connection.execute("insert into kept values ('k', $1)", value)
        query = await connection.prepare("select value from kept where name = 'k'")
        return await median_us(gets, lambda: query.fetchval())
    finally:
        await connection.close()


async def check_ms(folder: Path, project: Path, check: dict[str, Any], config: str) -> float:
    """How long a check takes in a home that was just made."""
    home = Path(tempfile.mkdtemp(dir=folder))
    (home / "keys").mkdir(mode=0o700)
    (home / "keys" / "cache.key").write_bytes(SECRET.hex().encode())
    (home / "keys" / "cache.key").chmod(0o600)
    (home / "config.toml").write_text(config, encoding="utf-8")
    gate = gate_of(read_settings({"home": str(home), "project": str(project)}, {}))
    return await taken_ms(judge(gate, [check], {}))


def counting_ns() -> float:
    use = use_of(RUN_STATES)
    started_s = time.perf_counter()
    for _ in range(COUNTED):
        use.hit()
    return 1e9 * (time.perf_counter() - started_s) / COUNTED


async def main(gets: int) -> int:
    with tempfile.TemporaryDirectory() as made, ExitStack() as servers:
        folder = Path(made)
        own = RuleMemory(folder / "rules")
        await own.keep("k", RESULT)
        print(f"{'a result, from':<42} median of {gets:,}")
        print(f"{'a local file, as handrail asks':<42} {await median_us(gets, lambda: own.find('k')):8.0f} us")
        if server.MISSING:
            print(f"left out: {server.MISSING}")
        else:
            print(f"{'PostgreSQL, the bytes alone':<42} {await from_postgres(gets, folder, b'x' * 1_200):8.0f} us")
        try:
            address = servers.enter_context(redis_server(folder))
        except pytest.skip.Exception as reason:
            print(f"left out: {reason}")
            return 0
        cache = RedisCache(address, prefix=f"handrail:{group_of(SECRET)}:", keep_s=600)
        shared = SealedResults(cache, SECRET)
        await shared.keep("k", RESULT)
        await cache.put("bytes", b"x" * 1_200)
        print(f"{'Redis, the bytes alone':<42} {await median_us(gets, lambda: cache.get('bytes')):8.0f} us")
        print(f"{'Redis, as handrail asks':<42} {await median_us(gets, lambda: shared.find('k')):8.0f} us")
        print("\na check in a home that was just made:   alone      shared")
        bare = '[checks]\nsandbox = "off"\n'
        named = f'[cache]\nshared = "{address}"\n{bare}'
        project = folder / "project"
        project.mkdir()
        written(project)
        for check in CHECKS:
            for config in (bare, named):  # the first of a process imports what it needs; the second fills the cache
                await check_ms(folder, project, check, config)
            alone, found = [
                statistics.median([await check_ms(folder, project, check, config) for _ in range(ROUNDS)])
                for config in (bare, named)
            ]
            print(f"{check['rule']:<32} {alone:12.1f} ms {found:11.1f} ms")
        print(f"\ncounting a hit: {counting_ns():.0f} ns")
    return 0


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--gets", type=int, default=2_000)
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    raise SystemExit(asyncio.run(main(parser.parse_args().gets)))
