"""One reader of the feed, as server-sent events.

Every event carries its place in the store as its id; a `beat` says every few seconds that the stream is alive and how
far the store is. A reader that falls behind what the feed keeps is let go: it comes back with `Last-Event-ID`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from typing import Final

from msgspec import Struct

from handrail.interfaces.http.feed.event_feed import EventFeed, FeedFrame

BEAT_S: Final = 15.0
RETRY_MS: Final = 1_000
CHUNK_BYTES_MAX: Final = 256 * 1_024
GONE: Final = b'event: gone\ndata: {"reason": "too slow"}\n\n'


class Wanted(Struct, frozen=True, kw_only=True):
    """Which events a reader receives; empty fields match everything."""

    runs: Collection[str] = frozenset()
    project: str = ""
    kinds: Collection[str] = frozenset()

    def has(self, frame: FeedFrame) -> bool:
        """Whether an event is wanted."""
        return (
            (not self.runs or frame.stream in self.runs)
            and (not self.project or frame.project == self.project)
            and (not self.kinds or frame.kind in self.kinds)
        )


async def event_stream(
    feed: EventFeed, wanted: Wanted, *, after: int | None, may_stay: Callable[[], bool], beat_s: float = BEAT_S
) -> AsyncIterator[bytes]:
    """The events after a place, and then those that follow; without a place, those that follow from now on."""
    async with feed.reading():
        # A place that the store does not have yet is of another store, or made up: nothing can follow it here.
        place = feed.last if after is None else min(after, feed.last)
        yield b"retry: %d\n\n%b" % (RETRY_MS, _beat(feed.last, is_here=place == feed.last))
        while not feed.is_kept(place):  # it has missed much, and catches up from the store
            frames = await feed.stored_after(place)
            place = frames[-1].seq if frames else feed.last
            for chunk in _chunks([frame.data for frame in frames if wanted.has(frame)]):
                yield chunk
        while feed.is_kept(place):
            frames = feed.kept_after(place)
            for chunk in _chunks([frame.data for frame in frames if wanted.has(frame)]):
                yield chunk
            place = frames[-1].seq if frames else place
            if not frames and not await feed.change(within_s=beat_s):
                if not may_stay():
                    return
                yield _beat(place, is_here=True)
        yield GONE


def _beat(at: int, *, is_here: bool) -> bytes:
    """How far the store is; the id moves a reader on that wants nothing of what happens."""
    mark = b"id: %d\n" % at if is_here else b""
    return b'%bevent: beat\ndata: {"at": %d}\n\n' % (mark, at)


def _chunks(parts: list[bytes]) -> list[bytes]:
    """The parts joined, so that one write carries many."""
    chunks: list[bytes] = []
    gathered: list[bytes] = []
    size = 0
    for part in parts:
        if gathered and size + len(part) > CHUNK_BYTES_MAX:
            chunks.append(b"".join(gathered))
            gathered, size = [], 0
        gathered.append(part)
        size += len(part)
    return [*chunks, b"".join(gathered)] if gathered else chunks
