"""The keys of the nodes of a shared store: each signs with its own, and checks what any of them has signed.

Async; uses only the journal's protocol. Which keys are admitted is decided in domain/journal/node_admission.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from handrail.domain.errors import Conflict, Forbidden, Invalid, JournalConflict
from handrail.domain.journal.chain import Head
from handrail.domain.journal.event import STORE_STREAM, Entry
from handrail.domain.journal.node_admission import admission_bytes, admitted_keys
from handrail.domain.journal.projection import NO_CHANGE
from handrail.domain.journal.store_event import NodeAdmitted, StoreCreated
from handrail.domain.policy.act import Act
from handrail.domain.policy.table import may
from handrail.domain.policy.verdict import require_allowed
from handrail.engine.journal import Journal
from handrail.engine.proving.checkpointer import Signer, Verifier
from handrail.engine.proving.signature import holds
from handrail.engine.record_writer import RecordWriter
from handrail.engine.stream_pages import entries_of

NODE_LENGTH_MAX: Final = 100
NODES_MAX: Final = 10_000
CONFLICTS_MAX: Final = 50
CREATOR: Final = "first"
"""The name of the node that created a store."""


class JoiningNode(Struct, frozen=True):
    """A node to admit: its name, and its public keys to sign and to seal with."""

    name: str
    key: str
    box: str


@dataclass(frozen=True)
class NodeVerifiers:
    """Checks what any admitted key has signed."""

    own: Verifier
    creator: str
    """The public key that the store was created with."""
    admitted: Mapping[str, Verifier]
    """The admitted keys, by their ids."""

    @property
    def key(self) -> str:
        """The id of this node's key."""
        return self.own.key

    @property
    def public(self) -> str:
        """The public key of this node."""
        return self.own.public

    def of(self, key: str) -> Verifier | None:
        """The admitted key with this id."""
        return self.admitted.get(key)

    def created(self, public: str) -> bool:
        """Whether a store that was created with this public key is the one that these keys are of."""
        return public == self.creator

    def holds(self, message: bytes, signature: bytes) -> bool:
        """Whether this node's key made this signature of this message."""
        return self.own.holds(message, signature)


@dataclass(frozen=True)
class NodeKeys(NodeVerifiers):
    """The same, and signs with this node's key."""

    own: Signer

    def sign(self, message: bytes) -> bytes:
        """The signature of a message by this node's key."""
        return self.own.sign(message)


async def admissions(journal: Journal) -> Mapping[str, NodeAdmitted | None]:
    """The public keys that may sign, with the event that admitted each."""
    return admitted_keys(await entries_of(journal, STORE_STREAM), holds)


def require_admitted(own: Verifier, admitted: Mapping[str, NodeAdmitted | None]) -> None:
    """Refuse a node whose key was not admitted."""
    if own.public not in admitted:
        raise Forbidden(
            f"this node is not admitted to the store: its key is {own.public}",
            hint="give its `handrail db key` to an admitted node: `handrail db admit KEY --name NAME` there",
        )


async def admit(
    journal: Journal, record_writer: RecordWriter, signer: Signer, node: JoiningNode, *, actor: str
) -> None:
    """Admit a node: this node's key signs for it, and that becomes an event."""
    require_allowed(may(actor, Act.OPERATE))
    if not node.name or len(node.name) > NODE_LENGTH_MAX or not node.name.isprintable():
        raise Invalid("a node needs a short name", hint="--name, up to 100 characters")
    await _note(journal, record_writer, signer, node, actor=actor)


async def introduce(journal: Journal, record_writer: RecordWriter, signer: Signer, *, box: str) -> None:
    """Record the box key of the node that created the store; it signs for itself."""
    await _note(journal, record_writer, signer, JoiningNode(CREATOR, signer.public, box), actor="handrail")


async def _note(
    journal: Journal, record_writer: RecordWriter, signer: Signer, node: JoiningNode, *, actor: str
) -> None:
    for _ in range(CONFLICTS_MAX):
        entries = await entries_of(journal, STORE_STREAM)
        admitted = admitted_keys(entries, holds)
        require_admitted(signer, admitted)
        if admitted.get(node.key) is not None:
            raise Conflict("this key is admitted already", hint="there is nothing to do")
        if len(admitted) >= NODES_MAX:
            raise Conflict(f"{NODES_MAX} nodes are admitted: there can't be more")
        last = entries[-1]
        head = Head(STORE_STREAM, last.n, last.hash)
        records, _ = record_writer.write(head, [_admission(entries, signer, node)], actor=actor)
        try:
            return await journal.append(records, NO_CHANGE)
        except JournalConflict:
            continue  # another event came in between
    raise JournalConflict("too many writers append to the store's stream at once")


def _admission(entries: Sequence[Entry], signer: Signer, node: JoiningNode) -> NodeAdmitted:
    store = next(entry.event.store for entry in entries if isinstance(entry.event, StoreCreated))
    signature = signer.sign(admission_bytes(store, node.name, node.key, node.box)).hex()
    return NodeAdmitted(node=node.name, key=node.key, box=node.box, by=signer.public, signature=signature)
