"""Plans: versions that add up, tombstones instead of erasure, and several savers at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from domain.facts import CHAIN, plan
from handrail.domain.definition.authoring import content_hash
from handrail.domain.errors import Conflict, IntegrityBroken, JournalConflict, NotFound
from handrail.domain.journal.chain import Record
from handrail.domain.journal.projection import Change
from handrail.engine.plans import Plans, version_of
from handrail.engine.running.lease import Lease
from handrail.storage.memory import MemoryStore
from support import record_writer

ADA = "person:ada"
SECOND = replace(CHAIN, name="A better plan")


def make(store: MemoryStore, seed: int = 0) -> Plans:
    return Plans(store, record_writer(seed))


async def test_each_new_text_is_a_version_and_the_same_text_twice_is_one() -> None:
    store = MemoryStore()
    plans = make(store)
    first = await plans.save(CHAIN, actor=ADA, note="first")
    again = await plans.save(CHAIN, actor=ADA, note="repeated after a lost answer")
    assert again == first
    second = await plans.save(SECOND, actor=ADA)
    assert [version.number for version in second.versions] == [1, 2]
    assert second.newest.definition == content_hash(SECOND)
    row = await store.plan("a-plan")
    assert row is not None
    assert (row.version, row.name, row.n, row.retired) == (2, "A better plan", 2, None)


async def test_every_version_can_be_read_back_as_it_was() -> None:
    plans = make(MemoryStore())
    await plans.save(CHAIN, actor=ADA)
    saved = await plans.save(SECOND, actor=ADA)
    assert await plans.definition(version_of(saved, 1)) == CHAIN
    assert await plans.definition(version_of(saved, None)) == SECOND
    with pytest.raises(NotFound, match="no version 3"):
        version_of(saved, 3)


async def test_retiring_erases_nothing_and_saving_anew_brings_the_plan_back() -> None:
    store = MemoryStore()
    plans = make(store)
    await plans.save(CHAIN, actor=ADA)
    retired = await plans.retire("a-plan", reason="replaced", actor=ADA)
    assert retired.retired is not None
    assert await plans.definition(retired.newest) == CHAIN
    with pytest.raises(Conflict, match="is retired already"):
        await plans.retire("a-plan", reason="again", actor=ADA)
    back = await plans.save(CHAIN, actor=ADA)
    assert (back.retired, back.newest.number) == (None, 2)


async def test_a_plan_that_was_never_saved_is_not_found() -> None:
    plans = make(MemoryStore())
    with pytest.raises(NotFound, match="no plan 'nowhere'"):
        await plans.retire("nowhere", reason="x", actor=ADA)
    with pytest.raises(NotFound):
        version_of(await plans.get("nowhere"), None)


async def test_two_savers_at_once_get_two_versions() -> None:
    store = MemoryStore()
    texts = [plan({"id": "a", "prompt": f"version {n}"}) for n in range(10)]
    await asyncio.gather(*(make(store, seed=n).save(text, actor=ADA) for n, text in enumerate(texts)))
    saved = await make(store).get("a-plan")
    assert sorted(version.number for version in saved.versions) == list(range(1, 11))


async def test_endless_competition_ends_in_a_conflict() -> None:
    class Racing(MemoryStore):
        async def append(self, records: Sequence[Record], change: Change, *, lease: Lease | None = None) -> None:
            raise JournalConflict("someone was first")

    with pytest.raises(JournalConflict, match="too many writers"):
        await make(Racing()).save(CHAIN, actor=ADA)


async def test_a_version_whose_text_is_gone_is_broken() -> None:
    class Forgetful(MemoryStore):
        async def definition(self, content_hash: str) -> bytes | None:
            return None

    plans = make(Forgetful())
    saved = await plans.save(CHAIN, actor=ADA)
    with pytest.raises(IntegrityBroken):
        await plans.definition(saved.newest)


async def test_the_newest_text_of_a_plan_is_found_unless_it_is_offered_no_longer() -> None:
    plans = make(MemoryStore())
    with pytest.raises(NotFound, match="no plan 'a-plan'"):
        await plans.newest("a-plan")
    await plans.save(CHAIN, actor=ADA)
    await plans.save(SECOND, actor=ADA)
    assert await plans.newest("a-plan") == (SECOND, {})
    await plans.retire("a-plan", reason="replaced", actor=ADA)
    with pytest.raises(NotFound, match="no plan 'a-plan'"):
        await plans.newest("a-plan")
