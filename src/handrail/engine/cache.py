"""The protocol of a cache that several machines share: bytes by name, for what can be made again at any time.

It may forget, and be away: then it has nothing. It is not trusted: its user seals what it keeps."""

from __future__ import annotations

from typing import Protocol


class Cache(Protocol):
    """A place for bytes, outside of this process. No method raises because it is away."""

    async def get(self, name: str) -> bytes | None:
        """What is kept under a name; None if there is nothing, or it can't be asked."""
        ...

    async def put(self, name: str, value: bytes) -> None:
        """Keep a value for a while, if that is possible."""
        ...

    async def clear(self) -> int:
        """Remove all that was kept for this purpose, by any machine; how much it was."""
        ...

    async def entries(self) -> int | None:
        """How many values it has for this purpose; None if it can't be asked."""
        ...
