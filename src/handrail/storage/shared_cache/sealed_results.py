"""Results of checks in a cache that other machines can write to: sealed with a key that only the machines of one owner
have, so that no other machine can read them, or make up that a check has passed.

A result is shared only among machines of one kind: the same system, processor and Python. That tests depend on the
project's files and installed programs is in the key already (rules/toolchain/parameters.py)."""

from __future__ import annotations

import hashlib
import hmac
import os
import platform
import sys
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from handrail.domain.checks.rule import CheckOutcome
from handrail.domain.metrics.cache_catalog import SHARED_RESULTS
from handrail.engine.cache import Cache
from handrail.foundation.cache_use import now, use_of

NONCE_BYTES: Final = 12
KIND: Final = f"{sys.platform} {platform.machine()} {sys.version}"
NAMING: Final = b"handrail cache names 1"
SEALING: Final = b"handrail cache values 1"

_use = use_of(SHARED_RESULTS)


class _SharedOutcome(Struct, frozen=True):
    """What a value contains."""

    key: str
    outcome: CheckOutcome


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_SharedOutcome).decode


class SealedResults:
    """Results of checks in a shared cache."""

    def __init__(
        self, cache: Cache, secret: bytes, *, kind: str = KIND, clean: Callable[[bytes], bytes] = bytes
    ) -> None:
        """`clean` removes secrets from what is kept; `kind` says which machines may use it."""
        self._cache, self._kind, self._clean = cache, kind, clean
        self._naming, self._sealing = (hmac.digest(secret, label, "sha256") for label in (NAMING, SEALING))

    async def find(self, key: str) -> CheckOutcome | None:
        """The shared result, if there is one that this key opens."""
        started_s = now()
        name = self._name(key)
        value = await self._cache.get(name)
        found = self._opened(name, value) if value is not None else None
        if found is None or found.key != key:
            _use.missed()
            return None
        _use.hit(since=started_s)
        return found.outcome

    async def keep(self, key: str, outcome: CheckOutcome) -> None:
        """Share a result."""
        try:
            content = self._clean(_encode(_SharedOutcome(key, outcome)))
        except UnicodeEncodeError:  # a lone surrogate, read from some file, can't be encoded
            return
        name = self._name(key)
        await self._cache.put(name, self._sealed(name, content))

    def _name(self, key: str) -> str:
        words = f"{self._kind}\0{key}".encode(errors="replace")
        return hmac.new(self._naming, words, hashlib.sha256).hexdigest()

    def _sealed(self, name: str, content: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305  # late: it takes 30 ms

        nonce = os.urandom(NONCE_BYTES)
        return nonce + ChaCha20Poly1305(self._sealing).encrypt(nonce, content, name.encode())

    def _opened(self, name: str, value: bytes) -> _SharedOutcome | None:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        try:
            # With its name, so that a value can't be moved to another one.
            content = ChaCha20Poly1305(self._sealing).decrypt(value[:NONCE_BYTES], value[NONCE_BYTES:], name.encode())
            return _decode(content)
        except (InvalidTag, ValueError, msgspec.MsgspecError, RecursionError):
            return None


def group_of(secret: bytes) -> str:
    """A short name for all machines with this key: how names of their values begin."""
    return hmac.digest(secret, b"handrail cache group 1", "sha256").hex()[:12]
