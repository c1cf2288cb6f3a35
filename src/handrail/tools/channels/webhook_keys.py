"""Keys of webhooks: makes them, and signs with them. What is signed, and how it is written: domain/notify/signing.py.

The cryptography library is imported when a key of Ed25519 is used, so that a start does not pay for it."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from handrail.domain.notify.signing import PRIVATE, PUBLIC, SYMMETRIC, hmac_signature, key_bytes, written_key
from handrail.engine.passed_in import Entropy

KEY_BYTES = 32


def signatures(secrets: Iterable[str], signed: bytes) -> str:
    """The header with a signature by each of these secrets."""
    return " ".join(
        hmac_signature(one, signed) if one.startswith(SYMMETRIC) else _ed25519(one, signed) for one in secrets
    )


def new_secret(entropy: Entropy, *, is_ed25519: bool) -> str:
    """A new secret that signs."""
    return written_key(PRIVATE if is_ed25519 else SYMMETRIC, entropy(KEY_BYTES))


def receivers_key(secret: str) -> str:
    """What a receiver needs to verify: the secret itself, or the public key of it."""
    if secret.startswith(SYMMETRIC):
        key_bytes(secret)
        return secret
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.from_private_bytes(key_bytes(secret))
    return written_key(PUBLIC, private.public_key().public_bytes_raw())


def _ed25519(secret: str, signed: bytes) -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    made = Ed25519PrivateKey.from_private_bytes(key_bytes(secret)).sign(signed)
    return f"v1a,{base64.b64encode(made).decode()}"
