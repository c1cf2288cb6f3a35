"""Verifies signatures with the public key alone: for a proof bundle, without a store or key folder.

The cryptography library is imported when a signature is checked, so that a start does not pay for it. The signing key
and its files are in storage/keys.py."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

from handrail.domain.errors import Invalid, NotFound

KEY_FILE_BYTES_MAX: Final = 10_000
FINGERPRINT: Final = "sha256:"
_HEX: Final = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


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


def trusted(text: str) -> str:
    """The fingerprint of a trusted key: given as text, or of the public key in a PEM file."""
    if found := _HEX.fullmatch(text.strip().lower()):
        return FINGERPRINT + found[1]
    try:
        with Path(text).open("rb") as file:
            content = file.read(KEY_FILE_BYTES_MAX)
    except OSError as error:
        raise NotFound(
            f"there is no key file {text!r}", hint="name a public key file, or write a fingerprint: sha256:..."
        ) from error
    return fingerprint(_public_in(content, text))


def _public_in(content: bytes, name: str) -> str:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(content)
    except ValueError as error:
        raise Invalid(
            f"{name} contains no public key", hint="it is journal.pub in the keys folder of the store"
        ) from error
    if not isinstance(key, Ed25519PublicKey):
        raise Invalid(f"{name} is a key of another kind", hint="it is journal.pub in the keys folder of the store")
    return key.public_bytes_raw().hex()
