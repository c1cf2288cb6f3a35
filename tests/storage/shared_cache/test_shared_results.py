"""Results of checks that machines share: found by others with the same key, and worth nothing to everybody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from handrail.domain.checks.rule import CheckOutcome, Evidence
from handrail.domain.secrets.scrubbing import SecretScrubber
from handrail.engine.checking.layered_memory import LayeredMemory
from handrail.storage.check_cache import RuleMemory
from handrail.storage.shared_cache.redis_cache import PAUSE_S, VALUE_BYTES_MAX, RedisCache
from handrail.storage.shared_cache.sealed_results import SealedResults, group_of
from storage.shared_cache.redis_server import redis_server

OURS, THEIRS = b"k" * 32, b"t" * 32
GOOD = CheckOutcome(evidence=Evidence(rule="tests_pass", version="1.0.0", passed=True, excerpt="token s3cret"))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as found:
        yield found


@pytest.fixture
def raw(address: str) -> Iterator[Any]:
    """What somebody does who can reach the server."""
    with Redis.from_url(address) as client:
        client.flushall()
        yield client


def cache(address: str, secret: bytes = OURS) -> RedisCache:
    return RedisCache(address, prefix=f"handrail:{group_of(secret)}:", keep_s=60)


def results(address: str, secret: bytes = OURS, kind: str = "linux 3.11") -> SealedResults:
    return SealedResults(cache(address, secret), secret, kind=kind)


async def test_another_machine_of_the_same_kind_finds_a_result(address: str, raw: Any) -> None:
    await results(address).keep("k", GOOD)
    assert await results(address).find("k") == GOOD
    assert await results(address).find("other") is None
    assert await results(address, kind="linux 3.13").find("k") is None
    (name,) = raw.keys()
    assert 0 < raw.ttl(name) <= 60


async def test_only_who_has_the_key_can_read_or_make_up_a_result(address: str, raw: Any) -> None:
    await results(address).keep("k", GOOD)
    await results(address).keep("l", CheckOutcome())
    one, other = ours = raw.keys()
    assert b"tests_pass" not in raw.get(one) + raw.get(other)
    assert await results(address, THEIRS).find("k") is None

    async def is_believed(value: bytes, at: bytes) -> bool:
        kept = raw.get(at)
        raw.set(at, value)
        found = [await results(address).find(key) for key in ("k", "l")]
        raw.set(at, kept)
        return None not in found

    await SealedResults(cache(address), THEIRS, kind="linux 3.11").keep("k", GOOD)  # at our place, with another key
    (forged,) = (raw.get(name) for name in set(raw.keys()) - set(ours))
    for value in (forged, raw.get(other), b"", b"short", b"x" * (VALUE_BYTES_MAX + 10)):
        assert not await is_believed(value, one)
    assert await is_believed(raw.get(one), one)


async def test_no_secret_leaves_the_machine(address: str) -> None:
    scrubber = SecretScrubber({"s3cret": "token"})
    await SealedResults(cache(address), OURS, kind="linux 3.11", clean=scrubber.content).keep("s", GOOD)
    found = await results(address).find("s")
    assert found is not None
    assert found.evidence is not None
    assert "s3cret" not in found.evidence.excerpt


async def test_what_is_too_large_is_not_shared(address: str, raw: Any) -> None:
    await cache(address).put("large", b"x" * (VALUE_BYTES_MAX + 1))
    assert raw.keys() == []
    await cache(address).put("just", b"x" * VALUE_BYTES_MAX)
    assert await cache(address).get("just") == b"x" * VALUE_BYTES_MAX


async def test_clearing_leaves_what_others_keep_there(address: str, raw: Any) -> None:
    raw.set("shop:basket", "3")
    await results(address, THEIRS).keep("k", GOOD)
    for key in ("a", "b"):
        await results(address).keep(key, GOOD)
    assert await cache(address).entries() == 2
    assert await cache(address).clear() == 2
    assert await cache(address).entries() == 0
    assert await cache(address, THEIRS).entries() == 1
    assert raw.get("shop:basket") == b"3"


async def test_a_shared_result_is_kept_here_and_a_new_one_is_shared(address: str, raw: Any, tmp_path: Path) -> None:
    here, there = (LayeredMemory(RuleMemory(tmp_path / one), results(address)) for one in ("here", "there"))
    assert await here.find("k") is None
    await there.keep("k", GOOD)
    assert await here.find("k") == GOOD
    raw.flushall()
    assert await here.find("k") == GOOD
    assert await results(address).find("k") is None


async def test_a_server_that_is_away_has_nothing_and_is_left_alone_for_a_while(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = 1_000.0
    away = RedisCache(f"unix://{tmp_path}/none.sock", prefix="p", keep_s=60, clock=lambda: now_s)
    assert await away.get("k") is None
    await away.put("k", b"v")
    assert (await away.entries(), await away.clear()) == (None, 0)
    assert len(caplog.records) == 1
    with redis_server(tmp_path) as address:
        (tmp_path / "none.sock").symlink_to(address.removeprefix("unix://"))
        assert await away.get("k") is None
        now_s += PAUSE_S
        await away.put("k", b"v")
        assert await away.get("k") == b"v"
