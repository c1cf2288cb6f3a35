"""Secrets of runs in a shared store: sealed for each admitted node, so that the database alone tells nothing.

A node that was admitted after a run had started can't open them; it refuses to go on with that run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from handrail.domain.errors import SealedForOthers
from handrail.storage.keys import PublicKey
from handrail.storage.node_box import NodeBox, sealed
from handrail.storage.postgres import queries
from handrail.storage.postgres.connections import Connections
from handrail.storage.postgres.texts import stored


class SealedSecrets:
    """The values of secret inputs of open runs."""

    def __init__(
        self, connections: Connections, key: str, box: NodeBox, boxes: Callable[[], Awaitable[Mapping[str, str]]]
    ) -> None:
        """`boxes` finds the public box keys of all admitted nodes, by their signing keys; `key` is this node's."""
        self._connections = connections
        self._key = key
        self._box = box
        self._boxes = boxes

    async def keep(self, run: str, values: Sequence[str]) -> None:
        """Keep the values of a run, for every node that may go on with it."""
        message = msgspec.json.encode(list(values))
        # For each node that is admitted now, by its own key: who reads the database or its backups can open none.
        boxes = {key: sealed(public, message) for key, public in (await self._boxes()).items()}
        await self._connections.ask(queries.PUT_SECRETS, stored(run), list(boxes), list(boxes.values()))

    async def of(self, run: str) -> Sequence[str]:
        """The values of a run; SealedForOthers if there are some that this node can't open."""
        rows = await self._connections.ask(queries.SECRETS, stored(run), self._key)
        if rows:
            return msgspec.json.decode(self._box.opened(rows[0][0]), type=list[str])
        if keys := await self._connections.ask(queries.SEALED_FOR, stored(run)):
            able = [PublicKey(bytes.fromhex(key)).key for (key,) in keys]
            raise SealedForOthers(f"{run} has secret inputs that were sealed before this node was admitted", keys=able)
        return ()

    async def forget(self, run: str) -> None:
        """Remove the values of a run that has ended."""
        await self._connections.ask(queries.DROP_SECRETS, stored(run))
