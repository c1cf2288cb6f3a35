"""Placeholders: what looks like a password but is none, because it stands in an address of no real service. Pure.

`postgres://user:password@localhost/test` is in the settings of most projects with a database. Only what is plainly a
placeholder counts: a password that looks random is a secret, whatever its host."""

from __future__ import annotations

import re
from typing import Final

HOST_MAX: Final = 260
RANDOM_LENGTH: Final = 12
"""A password of that length with letters and digits looks random."""
WORDS: Final = frozenset(
    {
        "admin",
        "changeme",
        "default",
        "dummy",
        "example",
        "foo",
        "guest",
        "mysql",
        "pass",
        "passwd",
        "password",
    }
    | {
        "placeholder",
        "postgres",
        "pw",
        "pwd",
        "redis",
        "root",
        "secret",
        "test",
        "testing",
        "token",
        "user",
        "username",
    }
)
"""What people write where a password would be."""
NOWHERE: Final = frozenset({"0.0.0.0", "::1", "host.docker.internal", "localhost"})  # noqa: S104 - a name to compare
RESERVED: Final = (".example", ".invalid", ".localhost", ".test")
RESERVED_DOMAINS: Final = ("example.com", "example.net", "example.org")

_host = re.compile(r"@(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})")
_user = re.compile(r"://([^\s/?#:@\"'<>]{0,100}):$")
_marked = re.compile(r"^(?:[xX*.]{1,64}|<[^<>]{1,64}>|\{[^{}]{1,64}\}|your[-_ ].{1,60})$")


def is_placeholder(before: str, value: str, after: str) -> bool:
    """Whether a password in an address is a placeholder; `before` ends with `://user:`, `after` starts with `@host`."""
    found = _host.match(after[:HOST_MAX])
    if found is None:
        return False
    host = found[1].strip("[]").lower().rstrip(".")
    is_word = _is_word(value) or _is_user(value, before)
    if _is_nowhere(host):
        return is_word or not _looks_random(value)
    return is_word and not {".", ":"} & set(host)


def _is_user(value: str, before: str) -> bool:
    user = _user.search(before[-HOST_MAX:])
    return user is not None and value.lower() == user[1].lower()


def _is_word(value: str) -> bool:
    lowered = value.lower()
    bare = lowered.rstrip("0123456789!")
    return bool(_marked.match(value)) or (bare in WORDS and len(lowered) - len(bare) <= 4)


def _looks_random(value: str) -> bool:
    has_both = any(one.isdigit() for one in value) and any(one.isalpha() for one in value)
    return has_both and len(value) >= RANDOM_LENGTH


def _is_nowhere(host: str) -> bool:
    """Whether there can be no service of others: this machine, or a name reserved for documentation and tests."""
    is_reserved = any(host == name or host.endswith(f".{name}") for name in RESERVED_DOMAINS)
    return host in NOWHERE or host.startswith("127.") or host.endswith(RESERVED) or is_reserved
