"""Scenes that need a disk of their own: a full one and a read-only one. Run in a private mount namespace:

    unshare --mount --map-root-user python confined.py (full | read-only) <folder>

Says `ok` when all was as it must be. See test_faults.py."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable
from pathlib import Path

from handrail.domain.errors import Unavailable
from handrail.domain.journal.chain import Head, first_break
from handrail.storage.sqlite.store import SqliteStore

sys.path.insert(0, str(Path(__file__).parent.parent))
from storage.stories import Story


async def full(folder: Path) -> None:
    """A store fills its disk, says so, keeps what it acknowledged, and goes on when there is room."""
    _mount("-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder))
    ballast = folder / "ballast"
    ballast.write_bytes(b"x" * 1_500_000)
    story = Story()
    async with await SqliteStore.open(folder / "journal.db") as store:
        kept = story.head
        while not (refused := await _refusal(store.append(*story.tell(body=b"x" * 20_000)))):
            kept = story.head
        assert "the disk is full: journal.db can't grow" in refused, refused
        assert kept.n > 10
        story.head = kept
        assert "the disk is full" in await _refusal(store.append(*story.tell(body=b"x" * 50_000)))
        assert first_break(Head("run_a"), await store.read("run_a")) == (kept, None)
        ballast.unlink()
        story.head = kept
        await store.append(*story.tell(body=b"x" * 20_000))
    async with await SqliteStore.open(folder / "journal.db") as store:
        assert first_break(Head("run_a"), await store.read("run_a")) == (story.head, None)
        assert await store.flaws() == []


async def read_only(folder: Path) -> None:
    """A store on a read-only disk can't be opened for writing, says why, and can be read."""
    records, change = Story().tell(3)
    async with await SqliteStore.open(folder / "journal.db") as store:
        await store.append(records, change)
    _mount("--bind", str(folder), str(folder))
    _mount("-o", "remount,ro,bind", str(folder))
    assert "is read-only" in await _refusal(SqliteStore.open(folder / "journal.db"))
    assert "can't be created: Read-only file system" in await _refusal(SqliteStore.open(folder / "other.db"))
    async with await SqliteStore.open(folder / "journal.db", read_only=True) as store:
        assert await store.read("run_a") == records
        assert [len(batch) async for batch in store.scan()] == [3]
        assert await store.flaws() == []


async def _refusal(call: Awaitable[object]) -> str:
    """What a call is refused with; nothing if it is not."""
    try:
        await call
    except Unavailable as error:
        return str(error)
    return ""


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


if __name__ == "__main__":
    asyncio.run({"full": full, "read-only": read_only}[sys.argv[1]](Path(sys.argv[2])))
    sys.stdout.write("ok\n")
