"""Verifies signatures with the public key alone: for a proof bundle, without a store or key folder.

The cryptography library is imported when a signature is checked, so that a start does not pay for it. The signing key
and its files are in storage/keys.py, and a key that a person names is read in trusted_key.py."""

from __future__ import annotations

import hashlib
from typing import Final

FINGERPRINT: Final = "sha256:"


def fingerprint(public: str) -> str:
    """A public key's digest, by which people recognise it."""
    return FINGERPRINT + hashlib.sha256(bytes.fromhex(public)).hexdigest()


def holds(public: str, message: bytes, signature: str) -> bool:
    """Whether the private key of `public` made this signature of this message; both in hex."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key, made = bytes.fromhex(public), bytes.fromhex(signature)
        # Only lower-case hex: otherwise a bundle could be changed in its letter case and still verify.
        if key.hex() != public or made.hex() != signature:
            return False
        Ed25519PublicKey.from_public_bytes(key).verify(made, message)
    except (InvalidSignature, ValueError):
        return False
    return True
