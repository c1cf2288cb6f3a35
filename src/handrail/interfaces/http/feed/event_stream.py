"""One reader of the feed, as server-sent events.

Every event carries the mark of what the reader has with it as its id; a `beat` says every few seconds that the stream
is alive and how far the store is. A reader that falls behind what the feed keeps is let go: it comes back with
`Last-Event-ID`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import Struct

from handrail.domain.journal.mark import START, Mark
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
    feed: EventFeed, wanted: Wanted, *, after: Mark | None, may_stay: Callable[[], bool], beat_s: float = BEAT_S
) -> AsyncIterator[bytes]:
    """The events behind a mark, and then those that follow; without a mark, those that follow from now on."""
    async with feed.reading():
        reader = _Reader(feed, wanted, _started(feed, after))
        yield b"retry: %d\n\n%b" % (RETRY_MS, _beat(feed.last, is_here=reader.mark == feed.last))
        while not feed.is_kept(reader.mark):  # it has missed much, and catches up from the store
            for chunk in reader.caught_up(await feed.stored_after(reader.mark)):
                yield chunk
        reader.join()
        while (kept := feed.kept_from(reader.turn)) is not None:
            for chunk in reader.taken(kept):
                yield chunk
            if not kept and not await feed.change(within_s=beat_s):
                if not may_stay():
                    return
                yield _beat(reader.mark, is_here=True)
        yield GONE


def _started(feed: EventFeed, after: Mark | None) -> Mark:
    """Where a reader starts. What the store does not have yet is of another store, or made up: nothing can follow."""
    if after is None:
        return feed.last
    shared = after.shared(feed.last)
    return shared if shared.lanes or not after.lanes else feed.last


@dataclass
class _Reader:
    """What one reader has."""

    feed: EventFeed
    wanted: Wanted
    mark: Mark
    turn: int = 0
    known: Mark = START
    """What it had when it joined the feed, until the feed is past that: it may be ahead in some lanes."""

    def caught_up(self, frames: list[FeedFrame]) -> list[bytes]:
        """What to send of the next events of the store."""
        self.mark = frames[-1].mark if frames else self.feed.last
        return _chunks([frame.data for frame in frames if self.wanted.has(frame)])

    def join(self) -> None:
        """Go on with what the feed keeps."""
        self.turn, self.known = self.feed.turn_of(self.mark), self.mark

    def taken(self, kept: list[FeedFrame]) -> list[bytes]:
        """What to send of the next events of the feed."""
        known = self.known
        new = [frame for frame in kept if not known.has(*frame.place)] if known.lanes else kept
        chunks = _chunks([_sent(frame, known) for frame in new if self.wanted.has(frame)])
        self.turn += len(kept)
        if kept:
            self.mark = kept[-1].mark.joined(known)
            self.known = START if kept[-1].mark.covers(known) else known
        return chunks


def _sent(frame: FeedFrame, known: Mark) -> bytes:
    """An event with its id; `known` is what the reader had before it took from this feed."""
    if not known.lanes:
        return frame.data
    return b"id: %b\n%b" % (frame.mark.joined(known).text.encode(), frame.data[frame.body :])


def _beat(at: Mark, *, is_here: bool) -> bytes:
    """How far the store is; the id moves a reader on that wants nothing of what happens."""
    text = at.text.encode()
    mark = b"id: %b\n" % text if is_here else b""
    return b'%bevent: beat\ndata: {"at": %b}\n\n' % (mark, msgspec.json.encode(at.json))


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
