"""The listing cache: what tool servers said of their tools when they were last asked, for checks that start no server.

A cache: it may be lost or outdated at any time. A call always asks the server itself; this only helps to find
mistakes in a definition before that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from handrail.domain.metrics.cache_catalog import SERVER_TOOLS
from handrail.foundation.atomic_file import write_cache
from handrail.foundation.cache_use import now, use_of
from handrail.tools.mcp.declaration import Declared
from handrail.tools.mcp.transport.era_memory import server_key
from handrail.tools.mcp.values.listing import ListedTool

LISTING_BYTES_MAX: Final = 4_000_000
_use: Final = use_of(SERVER_TOOLS)


class ListingCache:
    """Listings by server, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, declared: Declared) -> Sequence[ListedTool] | None:
        """What the server said last; None if nothing is kept."""
        started_s = now()
        try:
            with self._file(declared).open("rb") as file:
                content = file.read(LISTING_BYTES_MAX + 1)
            listing = msgspec.json.decode(content, type=tuple[ListedTool, ...])
        except (OSError, msgspec.DecodeError, msgspec.ValidationError):
            _use.missed()  # nothing is asked instead: what depends on it stays unchecked
            return None
        _use.hit(since=started_s)
        return listing

    def keep(self, declared: Declared, listing: Sequence[ListedTool]) -> None:
        """Keep what the server says now, unless that is too much."""
        content = msgspec.json.encode(listing)
        if len(content) <= LISTING_BYTES_MAX:
            write_cache(self._file(declared), content)

    def _file(self, declared: Declared) -> Path:
        return self._folder / f"{server_key(declared).removeprefix('sha256:')}.json"
