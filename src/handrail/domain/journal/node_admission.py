"""Which nodes of a shared store may sign: those that an admitted key has signed for. Pure.

The first key is the one that created the store. Who can write the database, but has no admitted key, can't add one:
the signature is over these bytes, and is checked by every node. Signing is done in engine/proving/node_keys.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from handrail.domain.journal.event import Entry
from handrail.domain.journal.store_event import NodeAdmitted, StoreCreated

ADMISSION: Final = "handrail node admission 1"

Holds: TypeAlias = Callable[[str, bytes, str], bool]
"""Whether the private key of a public one made this signature of this message; both in hex."""

_encode: Final = msgspec.json.Encoder().encode


def admission_bytes(store: str, node: str, key: str, box: str) -> bytes:
    """What an admitted key signs to admit another."""
    return _encode((ADMISSION, store, node, key, box))


def admitted_keys(entries: Iterable[Entry], holds: Holds) -> Mapping[str, NodeAdmitted | None]:
    """The public keys that may sign, in the order of their admission; None for the one that created the store."""
    admitted: dict[str, NodeAdmitted | None] = {}
    store = ""
    for entry in entries:
        match entry.event:
            case StoreCreated(store=store, key=key) if not admitted:
                admitted[key] = None
            case NodeAdmitted() as one if one.by in admitted:
                if holds(one.by, admission_bytes(store, one.node, one.key, one.box), one.signature):
                    admitted[one.key] = admitted.get(one.key) or one  # the first key says its box itself
    return admitted
