"""Two processes on one file: dense places, no lost update, and a lost race is a conflict."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from handrail.storage.sqlite.store import SqliteStore
from storage.rounds import Heard, everything, playing, require_sound
from storage.writers import SHARED, Order

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forked writers are a matter of POSIX")


@pytest.mark.parametrize("writers", [2, 3])
async def test_writers_in_several_processes_lose_nothing_and_refuse_each_other_properly(
    tmp_path: Path, writers: int
) -> None:
    path, heard, appends = tmp_path / "journal.db", Heard(), 60
    with playing() as rounds:
        codes = rounds.play(Order(str(path), "two", writers, appends), heard)
    assert codes == [0] * writers
    assert len(heard.acknowledged) == writers * 4 * appends
    assert heard.refused > 0, "they never met on the stream they share"
    await require_sound(path, heard)
    async with await SqliteStore.open(path) as store:
        streams = await everything(store)
    assert len(streams[SHARED]) == writers * appends
    assert sum(map(len, streams.values())) == writers * 4 * appends
