"""What a node says of itself, as stores keep it: one JSON value, so that nodes of two versions understand it."""

from __future__ import annotations

import msgspec

from handrail.domain.errors import IntegrityBroken, Limited
from handrail.domain.fleet.node import FleetNode, NodeCard

CARD_BYTES_MAX = 64_000


def card_bytes(card: NodeCard) -> bytes:
    """A card to keep."""
    body = msgspec.json.encode(card)
    if len(body) > CARD_BYTES_MAX:
        raise Limited(
            f"the node {card.id} has a description of more than {CARD_BYTES_MAX} bytes", hint="give fewer labels"
        )
    return body


def node_of(card: bytes, beat: int, silent_ms: int, paused_by: str) -> FleetNode:
    """A node from the columns of its row; what a newer version says beside is passed over."""
    try:
        return FleetNode(
            card=msgspec.json.decode(card, type=NodeCard), beat=beat, silent_ms=silent_ms, paused_by=paused_by
        )
    except msgspec.MsgspecError as error:
        raise IntegrityBroken(f"a stored node can't be read: {error}") from error
