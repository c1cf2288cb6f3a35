"""A key that a person trusts: its fingerprint as text, or of the public key in a file that they name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from handrail.domain.errors import Invalid, NotFound
from handrail.engine.proving.signature import FINGERPRINT, fingerprint

KEY_FILE_BYTES_MAX: Final = 10_000
_HEX: Final = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


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
