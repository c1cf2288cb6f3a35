"""The definitions that runs are pinned to, read from the store by their content hash and kept in memory.

Async. Writing them is part of an append (dispatch.py)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Definition
from handrail.domain.errors import IntegrityBroken
from handrail.domain.metrics.cache_catalog import DEFINITIONS
from handrail.foundation.bounded_cache import BoundedCache
from handrail.foundation.cache_use import use_of

DEFINITIONS_KEPT: Final = 500
KNOWN: Final = use_of(DEFINITIONS)


class DefinitionTexts(Protocol):
    """Where the texts of definitions are stored."""

    async def definition(self, content_hash: str) -> bytes | None:
        """The text stored under a content hash."""
        ...


@dataclass
class PinnedDefinitions:
    """Definitions by content hash. A text never changes under its hash, so what is kept can't become old."""

    store: DefinitionTexts
    _kept: BoundedCache[str, Definition] = field(default_factory=lambda: KNOWN.keeps(BoundedCache(DEFINITIONS_KEPT)))

    async def get(self, content_hash: str) -> Definition:
        """The definition with this content hash; IntegrityBroken if the store does not have it."""
        known = self._kept.get(content_hash)
        if known is not None:
            KNOWN.hit()
            return known
        with KNOWN.making():
            text = await self.store.definition(content_hash)
            if text is None:
                raise IntegrityBroken(f"the definition {content_hash} is not in the store")
            return self._kept.put(content_hash, definition_from(msgspec.json.decode(text)))

    def put(self, content_hash: str, definition: Definition) -> None:
        """Keep a definition that is being written."""
        self._kept.put(content_hash, definition)
