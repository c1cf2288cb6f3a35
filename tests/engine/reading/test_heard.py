"""Who was heard last: from the journal, and from open sessions."""

from __future__ import annotations

from engine.history import fill
from handrail.engine.reading.heard import HeardReader, LiveSession
from handrail.engine.reading.ledger import Ledger
from handrail.storage.memory import MemoryStore
from support import START
from virtual_time import in_virtual_time


def test_whoever_wrote_last_is_named_with_when_and_where_and_open_sessions_count_too() -> None:
    async def scene() -> None:
        store = MemoryStore()
        await fill(store)
        reader = HeardReader(Ledger(store, store))
        (ada,) = await reader.all()
        assert (ada.actor, ada.is_connected, ada.events > 10) == ("agent:ada", False, True)
        live = [LiveSession(actor="agent:cursor", heard=START + 10**9), LiveSession(actor="agent:ada", heard=START)]
        cursor, again = await reader.all(live)
        assert (cursor.actor, cursor.is_connected, cursor.run) == ("agent:cursor", True, "")
        assert (again.last, again.is_connected) == (ada.last, True)

    in_virtual_time(scene)
