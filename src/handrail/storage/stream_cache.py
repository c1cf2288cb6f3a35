"""What a store's writer remembers of streams, so that most appends need no query.

No I/O. What is remembered of a stream is the store's own (`State`). Somebody else may have written since: each store
finds that out in its own way, and forgets."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

STREAMS_KNOWN: Final = 10_000
DEFINITIONS_KNOWN: Final = 1_000

State = TypeVar("State")


class StreamCache(Generic[State]):
    """The streams that were written to or asked about last, and the definitions that are stored."""

    def __init__(self) -> None:
        self.known: OrderedDict[str, State] = OrderedDict()
        self.definitions: set[str] = set()

    def put(self, stream: str, state: State) -> None:
        """Remember how a stream is now."""
        self.known[stream] = state
        self.known.move_to_end(stream)

    def trim(self) -> None:
        """Forget what was not needed for long."""
        # Not a BoundedCache, which would drop streams in the middle of a batch: what a batch has not written yet can't
        # be queried again.
        while len(self.known) > STREAMS_KNOWN:
            self.known.popitem(last=False)
        if len(self.definitions) > DEFINITIONS_KNOWN:
            self.definitions.clear()

    def forget(self, streams: Iterable[str] | None = None) -> None:
        """Forget these streams, or everything."""
        if streams is None:
            self.known.clear()
            self.definitions.clear()
            return
        for stream in streams:
            self.known.pop(stream, None)
