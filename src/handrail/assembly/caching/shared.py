"""The shared level: the server that `[cache]` in config.toml of HANDRAIL_HOME names, if it names one.

The only place that knows which library speaks to it. It is off unless it is named, and an extra."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from handrail.domain.definition.duration import duration_ms
from handrail.domain.errors import HandrailError, Invalid, Unavailable
from handrail.domain.suggestion import did_you_mean
from handrail.engine.cache import Cache
from handrail.foundation.address_text import without_password
from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.settings import Settings
from handrail.storage.keys import open_secret
from handrail.storage.shared_cache.sealed_results import SealedResults, group_of

TABLE: Final = "cache"
KEY: Final = "cache.key"
KEY_BYTES_MIN: Final = 32
KEY_BYTES_MAX: Final = 10_000
SCHEMES: Final = ("redis://", "rediss://", "unix://")
HOW: Final = 'write: shared = "redis://127.0.0.1:6379/0"'

log = logging.getLogger(__name__)


class CacheTable(Struct, frozen=True, kw_only=True):
    """The table [cache]."""

    shared: str = ""
    """The address of a Redis or Valkey server."""
    keep: str = "7d"
    """How long it keeps a value."""
    key_file: str = ""
    """The file with the key that seals values; all machines that share need the same. `keys/cache.key` if empty."""


@dataclass(frozen=True)
class SharedLevel:
    """A shared cache, and the results of checks in it."""

    address: str
    cache: Cache
    results: SealedResults


def cache_table(settings: Settings) -> CacheTable:
    """What the table says; Invalid if it is wrong."""
    table = settings.home_tables.get(TABLE, {})  # not the project's: it must not say whose results count
    for name in sorted(set(table) - set(CacheTable.__struct_fields__)):
        raise Invalid(
            f"config.toml: unknown key `{name}` of [cache]", hint=did_you_mean(name, CacheTable.__struct_fields__)
        )
    try:
        found = msgspec.convert(table, CacheTable)
        duration_ms(found.keep)
    except (msgspec.ValidationError, HandrailError) as error:
        raise Invalid(f"config.toml: [cache]: {error}", hint=HOW) from error
    if found.shared and not found.shared.startswith(SCHEMES):
        raise Invalid(f"config.toml: [cache]: {without_password(found.shared)!r} is no address of a cache", hint=HOW)
    return found


def shared_level(settings: Settings, clean: Callable[[bytes], bytes] = bytes) -> SharedLevel | None:
    """The shared level; None if none is named. Unavailable if its library or key is missing."""
    table = cache_table(settings)
    if not table.shared:
        return None
    try:
        # Late: importing the library takes a while, and it is an extra.
        from handrail.storage.shared_cache.redis_cache import RedisCache
    except ImportError as error:
        raise Unavailable(
            "the shared cache needs a library that is not installed",
            hint="install it: `pip install 'handrail[redis]'`",
        ) from error
    secret = _secret(settings, table)
    prefix = f"handrail:{group_of(secret)}:"
    cache = RedisCache(table.shared, prefix=prefix, keep_s=max(1, duration_ms(table.keep) // 1_000))
    return SharedLevel(cache.address, cache, SealedResults(cache, secret, clean=clean))


def usable_level(settings: Settings, clean: Callable[[bytes], bytes]) -> SharedLevel | None:
    """The same; a shared cache that can't be used is no reason not to work."""
    try:
        return shared_level(settings, clean)
    except HandrailError as error:
        log.warning("no cache is shared: %s; %s", error, error.hint)
        return None


def _secret(settings: Settings, table: CacheTable) -> bytes:
    if not table.key_file:
        return open_secret(settings.keys, KEY)
    file = Path(table.key_file).expanduser()
    try:
        secret = read_plain(file, bytes_max=KEY_BYTES_MAX).strip()
    except (OSError, NotPlain) as error:
        raise Unavailable(f"the key of the shared cache can't be read: {error}", hint=f"check {file}") from error
    if len(secret) < KEY_BYTES_MIN:
        raise Invalid(
            f"the key of the shared cache in {file} is too short",
            hint="make one: `head -c 32 /dev/urandom | base64 > FILE`",
        )
    return secret
