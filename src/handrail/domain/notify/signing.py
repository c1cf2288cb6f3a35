"""What is signed of a webhook, and how its headers are written: Standard Webhooks. Pure.

HMAC is made here; signatures by Ed25519 in tools/channels/webhook_keys.py, which imports the library for it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

from handrail.domain.errors import Invalid

ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"
SYMMETRIC: Final = "whsec_"
PRIVATE: Final = "whsk_"
PUBLIC: Final = "whpk_"
HMAC_BYTES: Final = (24, 64)
SEED_BYTES: Final = 32


def signed_bytes(message_id: str, timestamp_s: int, body: bytes) -> bytes:
    """The bytes that a signature covers."""
    return f"{message_id}.{timestamp_s}.".encode() + body


def key_bytes(secret: str) -> bytes:
    """The key in a secret of either kind; Invalid if it is none. Its text is never in the message."""
    prefix = SYMMETRIC if secret.startswith(SYMMETRIC) else PRIVATE
    try:
        raw = base64.b64decode(secret.removeprefix(prefix), validate=True) if secret.startswith(prefix) else b""
    except (binascii.Error, ValueError):
        raw = b""
    is_fit = HMAC_BYTES[0] <= len(raw) <= HMAC_BYTES[1] if prefix == SYMMETRIC else len(raw) in {32, 64}
    if not is_fit:
        raise Invalid(
            "the secret that signs is no key of Standard Webhooks",
            hint="make one: `handrail webhooks rotate CHANNEL`",
        )
    return raw[:SEED_BYTES] if prefix == PRIVATE else raw


def hmac_signature(secret: str, signed: bytes) -> str:
    """The signature by a symmetric secret, as it is written in the header."""
    made = hmac.new(key_bytes(secret), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(made).decode()}"


def written_key(prefix: str, raw: bytes) -> str:
    """A key as it is written."""
    return prefix + base64.b64encode(raw).decode()
