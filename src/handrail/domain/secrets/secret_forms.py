"""What secrets look like: the keys they are stored under, and their own shape.

Pure: two tables and functions that look things up in them. redaction.py removes secrets from a body. Every pattern is
linear: bounded or possessive repetition, never nested."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

_START: Final = r"(?<![A-Za-z0-9])"
_END: Final = r"(?![A-Za-z0-9])"
_OPAQUE: Final = r"(?!\[redacted|\$\{|\{\{)"  # not what is already redacted, nor a reference or template
_MIXED: Final = r"(?=[^\s\"'&;,<>]{0,99}[0-9])(?=[^\s\"'&;,<>]{0,99}[A-Za-z])"
_ASSIGNED: Final = (
    r"(?:passw(?:or)?d|passphrase|secret|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|secret[_-]?key"
    r"|(?:access|auth|refresh|bot|api|id)[_-]?token)"
)


class Form(Struct, frozen=True):
    """A kind of secret: words of which a string must contain one, and its pattern; group 1, if any, is kept."""

    kind: str
    signs: tuple[str, ...]
    pattern: re.Pattern[str]

    @property
    def mark(self) -> str:
        """What replaces the secret, as a replacement for `re.sub`."""
        return (r"\1" if self.pattern.groups else "") + f"[redacted:{self.kind}]"


def _form(kind: str, signs: str, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> Form:
    return Form(kind, tuple(signs.split()), re.compile(pattern, flags))


AWS_ID: Final = _form("aws access key", "akia asia", rf"{_START}(?:AKIA|ASIA)[A-Z0-9]{{16}}{_END}")
AWS_SECRET: Final = _form(
    "aws secret key",
    "",
    # Forty such characters alone mean nothing; next to an access key id they are its secret.
    r"(?<![A-Za-z0-9/+=])(?=[A-Za-z0-9/+]{0,39}[A-Z])(?=[A-Za-z0-9/+]{0,39}[a-z])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])",
)
FORMS: Final = (
    _form(
        "private key",
        "-----begin",
        # Up to the next dashes, wherever they are: a truncated key is still a secret.
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?>(?:[^-]|-(?!----))*)(?:-----END [A-Z0-9 ]{0,60}-----)?",
    ),
    AWS_ID,
    _form(
        "github token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        rf"{_START}(?:gh[pousr]_[A-Za-z0-9]{{30,}}+|github_pat_[A-Za-z0-9_]{{22,}}+)",
    ),
    _form("gitlab token", "glpat-", rf"{_START}glpat-[A-Za-z0-9_-]{{20,}}+"),
    _form(
        "api key",
        "sk-",
        # Kebab-case names can start with sk- too: a key is one long word, or mixes digits and capitals.
        rf"{_START}sk-(?:[a-z0-9]{{32,}}+{_END}"
        r"|(?=[A-Za-z0-9_-]{0,99}[0-9])(?=[A-Za-z0-9_-]{0,99}[A-Z])[A-Za-z0-9_-]{20,}+)",
    ),
    _form("slack token", "xox", rf"{_START}xox[abeoprs]-[A-Za-z0-9-]{{10,}}+"),
    _form("stripe key", "k_live_ k_test_", rf"{_START}[rs]k_(?:live|test)_[A-Za-z0-9]{{16,}}+"),
    _form("google key", "aiza", rf"{_START}AIza[A-Za-z0-9_-]{{35}}(?![A-Za-z0-9_-])"),
    _form("npm token", "npm_", rf"{_START}npm_[A-Za-z0-9]{{36}}{_END}"),
    _form("pypi token", "pypi-", rf"{_START}pypi-AgE[A-Za-z0-9_-]{{40,}}+"),
    _form(
        "jwt",
        "eyj",
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+",
    ),
    _form(
        "bearer token",
        "bearer",
        r"(\bbearer[ ]{1,4})(?=[A-Za-z0-9._~+/=-]{0,99}[0-9])[A-Za-z0-9._~+/=-]{16,}+",
        re.IGNORECASE,
    ),
    _form(
        "credentials",
        "authorization",
        r"(authorization[\"']?[ ]?[:=][ ]?[\"']?(?:basic|token|digest|apikey)[ ]{1,4})[A-Za-z0-9._~+/=-]{8,}+",
        re.IGNORECASE,
    ),
    _form("password", "://", rf"(://[^\s/?#:@\"'<>]{{0,100}}:){_OPAQUE}[^\s/?#\"'<>]{{1,256}}(?=@)"),
    _form(
        "assigned secret",
        "passw passp secret key token",
        # A quoted value after : or =, or a bare one after =; with digits and letters, so that code does not match.
        rf"({_ASSIGNED}(?:[ ]?=[ ]?|[\"'](?:[ ]?:|=)[ ]?[\"']|[ ]?[:=][ ]?[\"']))"
        rf"{_OPAQUE}{_MIXED}[^\s\"'&;,<>$%{{}}()\[\]|*]{{6,}}+[^\s\"'&;,<>]*+",
        re.IGNORECASE,
    ),
)

_SEPARATORS: Final = "-_. 0123456789"
_LAST_LETTERS: Final = (
    "word",
    "swd",
    "ase",
    "ode",
    "cret",
    "crets",
    "ken",
    "key",
    "tial",
    "tials",
    "ion",
    "id",
    "kie",
    "kies",
)
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ENDS: Final = (
    *("password", "passwd", "passphrase", "passcode", "secret", "token", "credential", "credentials"),
    *("apikey", "privatekey", "accesskey", "secretkey", "signingkey", "encryptionkey", "masterkey", "accountkey"),
    *("sessionid", "sessionkey"),
)
_WHOLE: Final = frozenset({"authorization", "cookie", "cookies", "secrets", "session"})  # only as the whole last word
# Many services call a paging position a token; loops need its value.
_PLACES: Final = frozenset({"page", "next", "previous", "continuation", "pagination", "cursor", "sync", "stop"})


def names_secret(name: str) -> bool:
    """Whether a value under this key is a secret: `api-key` and `dbPassword` are, `tokens` and `secretary` are not."""
    if not name.rstrip(_SEPARATORS).lower().endswith(_LAST_LETTERS):
        return False  # rules out nearly all names
    words = [word.lower() for word in _WORDS.findall(name)]
    if words[-1] == "token":
        return _PLACES.isdisjoint(words[-2:-1])
    return words[-1] in _WHOLE or "".join(words[-2:]).endswith(_ENDS)


def looks_secret(text: str) -> str | None:
    """The kind of secret in a string, if it contains one that can be recognised by its shape."""
    return next((form.kind for form in forms_in(text) if form.pattern.search(text)), None)


def forms_in(text: str) -> Iterator[Form]:
    """The forms that a string may contain, by their signs."""
    lowered = text.lower()
    for form in FORMS:
        if any(sign in lowered for sign in form.signs):
            yield form
