"""Sealed boxes: messages that only one node can open, made from its public box key alone.

X25519 with a fresh key for each box, HKDF-SHA256 and ChaCha20-Poly1305. The box key of a node is derived from the key
that it signs with. The cryptography library is imported when a box is made or opened, to keep the start fast."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from handrail.domain.errors import IntegrityBroken
from handrail.storage.keys import PrivateKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

LABEL: Final = b"handrail box 1"
PUBLIC_BYTES: Final = 32
NONCE: Final = bytes(12)
"""Every box has a key of its own, so that the nonce may always be the same."""


class NodeBox:
    """Opens the boxes that were sealed for one node. Not a dataclass, so that its repr can't show the key."""

    def __init__(self, key: PrivateKey) -> None:
        self._secret = key.derived(LABEL)

    @property
    def public(self) -> str:
        """What others need to seal a box for this node, as hex."""
        return self._private.public_key().public_bytes_raw().hex()

    def opened(self, box: bytes) -> bytes:
        """What is in a box; IntegrityBroken if it was sealed for another, or changed."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        theirs = box[:PUBLIC_BYTES]
        try:
            shared = self._private.exchange(X25519PublicKey.from_public_bytes(theirs))
            key = _key(shared, theirs + bytes.fromhex(self.public))
            return ChaCha20Poly1305(key).decrypt(NONCE, box[PUBLIC_BYTES:], None)
        except (InvalidTag, ValueError) as error:
            raise IntegrityBroken("a sealed secret can't be opened: it was changed, or is for another node") from error

    @cached_property
    def _private(self) -> X25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        return X25519PrivateKey.from_private_bytes(self._secret)


def sealed(public: str, message: bytes) -> bytes:
    """A box with a message that only the node with this public box key can open."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    theirs = bytes.fromhex(public)
    # A new key for each box: that is also why the nonce may be the same each time.
    private = X25519PrivateKey.generate()
    mine = private.public_key().public_bytes_raw()
    key = _key(private.exchange(X25519PublicKey.from_public_bytes(theirs)), mine + theirs)
    return mine + ChaCha20Poly1305(key).encrypt(NONCE, message, None)


def _key(shared: bytes, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    # Both public keys are in the salt, so that a box can't be passed on under another sender's or reader's name.
    return HKDF(SHA256(), 32, salt=salt, info=LABEL).derive(shared)
