"""Secrets in a file that only their owner can read, or in the platform's keyring with the file as its index.

The file is `secrets.json` in the folder of keys. It always has the names, the tools that may get a secret, and when it
was set. The value is in the file too, or in the keyring (keyring_secrets.py) under a key that is in the file."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from handrail.domain.errors import Forbidden, HandrailError, Invalid, Limited, NotFound, Unavailable
from handrail.domain.secrets.secret_reference import is_name
from handrail.domain.suggestion import did_you_mean
from handrail.engine.clock import system_clock
from handrail.engine.passed_in import Clock
from handrail.engine.secrets import ReadSecrets, Secret, SecretCard
from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.storage.file_lock import locked
from handrail.storage.keyring_secrets import SERVICE, Ring, open_ring
from handrail.storage.keys import OTHERS

Choice: TypeAlias = Literal["auto", "file", "keyring"]

SECRETS_FILE: Final = "secrets.json"
LOCK_FILE: Final = "secrets.lock"  # a lock of its own: waiting here must not block the journal's key
VALUE_LENGTH_MIN: Final = 8
"""A shorter value occurs in ordinary text, too: removing it everywhere would damage the journal."""
VALUE_LENGTH_MAX: Final = 10_000
SECRETS_MAX: Final = 1_000
GIVEN_TO_MAX: Final = 20
FILE_BYTES_MAX: Final = 64_000_000
RING_KEY_BYTES: Final = 8
HOW_TO_SET: Final = "set one with `handrail secrets set NAME`"

_PATTERN: Final = re.compile(
    r"[A-Za-z0-9_*?\[\]!./-]{1,200}|http\.request:(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?"
)

_UNFIT: Final = re.compile("[\0\ud800-\udfff]")  # NUL and lone surrogates can't be passed to a process


class _SecretEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One secret in the file: with its value, or with its key in the keyring."""

    set: int
    given_to: tuple[str, ...] = ()
    value: str = ""
    ring: str = ""

    def __repr__(self) -> str:
        return f"_SecretEntry(set={self.set})"


class _Index(Struct, frozen=True, kw_only=True):
    """The content of the file."""

    format: Literal[1] = 1
    secrets: Mapping[str, _SecretEntry] = field(default_factory=dict)


_decode = msgspec.json.Decoder(_Index).decode


class SecretFile:
    """The secrets in one home folder; reads the file again whenever it has changed."""

    def __init__(
        self,
        folder: Path,
        *,
        choice: Choice = "auto",
        opening: Callable[[], Ring] = open_ring,
        clock: Clock = system_clock,
    ) -> None:
        """`choice` is where new values are kept; `auto` is the keyring if there is a real one, else the file."""
        self._folder, self._path = folder, folder / SECRETS_FILE
        self._choice = choice
        self._opening = opening
        self._clock = clock
        self._seen: tuple[tuple[int, int, int], _Index] | None = None
        self._from_ring: dict[str, str] = {}
        """Values by their key in the keyring, which no other value ever gets: asking it again would be slow."""

    def find(self, name: str) -> Secret | None:
        """The secret of that name; None if there is none."""
        entry = self._index().secrets.get(name)
        if entry is None:
            return None
        return Secret(value=self._value(name, entry), given_to=entry.given_to)

    def mark(self) -> object:
        """Differs from an earlier mark if the file has changed since."""
        try:
            found = os.stat(self._path)  # noqa: PTH116 - twice as fast, and asked for at every append
        except (FileNotFoundError, NotADirectoryError):  # if the home is a file, opening the store reports it
            return None
        except OSError as error:
            raise self._unusable(error) from error
        return _mark(found)

    def values(self) -> ReadSecrets:
        """The values of all secrets; those that the keyring does not give now are left out."""
        values: dict[str, str] = {}
        unread = 0
        for name, entry in self._index().secrets.items():
            try:
                values[name] = self._from_ring.get(entry.ring) or self._value(name, entry)
            except Unavailable:
                unread += 1
                continue
            if entry.ring:
                self._from_ring[entry.ring] = values[name]
        return ReadSecrets(values=values, unread=unread)

    def keep(self, name: str, value: str | None, given_to: Sequence[str] | None) -> SecretCard:
        """Set a secret; None leaves its value, or the tools that may get it, unchanged."""
        _check(name, value, given_to)
        if value is None:
            return self._change(name, lambda old: _with_rights(_known(name, old), given_to))
        # Outside the lock: a keyring may prompt its user first. The old value stays until the new one is stored.
        ring = self._ring_to_set()
        key = f"{name} {os.urandom(RING_KEY_BYTES).hex()}" if ring else ""
        if ring:
            ring.put(key, value)
        new = _SecretEntry(set=self._clock(), ring=key) if ring else _SecretEntry(set=self._clock(), value=value)
        try:
            return self._change(name, lambda old: _with_rights(replace(new, given_to=_rights(old)), given_to))
        except HandrailError:
            if ring:
                ring.drop(key)
            raise

    def cards(self) -> Sequence[SecretCard]:
        """All secrets by name, without their values."""
        return [_card(name, entry) for name, entry in sorted(self._index().secrets.items())]

    def remove(self, name: str) -> None:
        """Forget a secret; NotFound if there is none of that name."""
        with self._changing() as secrets:
            if name not in secrets:
                raise NotFound(f"there is no secret `{name}`", hint=did_you_mean(name, sorted(secrets)) or HOW_TO_SET)
            old = secrets.pop(name)
        self._drop(old)

    def _change(self, name: str, new_of: Callable[[_SecretEntry | None], _SecretEntry]) -> SecretCard:
        with self._changing() as secrets:
            old = secrets.get(name)
            secrets[name] = new = new_of(old)
            if len(secrets) > SECRETS_MAX:
                raise Limited(f"there are already {SECRETS_MAX:,} secrets", hint="remove some: `handrail secrets list`")
        if old and old.ring != new.ring:
            self._drop(old)
        return _card(name, new)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, _SecretEntry]]:
        """All secrets, for one process at a time to change; they are written unless an error is raised."""
        try:
            make_private_folder(self._folder)
            with locked(self._folder / LOCK_FILE):
                secrets = dict(self._index().secrets)
                yield secrets
                write_whole(self._path, msgspec.json.encode(_Index(secrets=secrets)) + b"\n", takes_turns=True)
        except OSError as error:
            raise self._unusable(error) from error

    def _ring_to_set(self) -> Ring | None:
        """Where a new value goes; None for the file."""
        if self._choice == "file":
            return None
        try:
            return self._opening()
        except Unavailable:
            if self._choice == "keyring":
                raise
            return None

    def _value(self, name: str, entry: _SecretEntry) -> str:
        if not entry.ring:
            return entry.value
        value = self._opening().get(entry.ring)
        if value is None:
            raise Unavailable(
                f"the platform's keyring no longer has the secret `{name}`",
                hint=f"set it again: `handrail secrets set {name}`",
            )
        return value

    def _drop(self, old: _SecretEntry) -> None:
        """Remove a value from the keyring that the file no longer refers to."""
        if not old.ring:
            return
        try:
            self._opening().drop(old.ring)
        except Unavailable as error:
            raise Unavailable(
                f"the change was saved, but the old value is still in the platform's keyring: {error}",
                hint=f"remove `{SERVICE}`, `{old.ring}` there by hand",
            ) from error

    def _index(self) -> _Index:
        try:
            with self._path.open("rb") as file:
                found = os.fstat(file.fileno())
                if sys.platform != "win32" and found.st_mode & OTHERS:
                    message = f"{SECRETS_FILE} can be read by users other than its owner"
                    raise Forbidden(message, hint=f"chmod 600 {self._path}")
                # Every change replaces the file, so the same inode, time and size mean the same content.
                mark = _mark(found)
                if self._seen is None or self._seen[0] != mark:
                    self._seen = (mark, self._decoded(file.read(FILE_BYTES_MAX + 1)))
                return self._seen[1]
        except (FileNotFoundError, NotADirectoryError):
            return _Index()
        except OSError as error:
            raise self._unusable(error) from error

    def _decoded(self, content: bytes) -> _Index:
        try:
            if len(content) > FILE_BYTES_MAX:
                raise Limited(f"{SECRETS_FILE} is larger than {FILE_BYTES_MAX:,} bytes", hint=self._how_to_fix)
            return _decode(content)
        except (msgspec.DecodeError, UnicodeError):  # its message is left out: it may quote a secret
            raise Invalid(f"{SECRETS_FILE} is damaged", hint=self._how_to_fix) from None

    @property
    def _how_to_fix(self) -> str:
        return f"restore {self._path} from a backup, or delete it and set the secrets again"

    def _unusable(self, error: OSError) -> Unavailable:
        return Unavailable(
            f"{SECRETS_FILE} can't be used: {error.strerror}", hint=f"check the permissions of {self._folder}"
        )


def _mark(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_mtime_ns, found.st_size


def _check(name: str, value: str | None, given_to: Sequence[str] | None) -> None:
    if not is_name(name):
        raise Invalid(
            f"{name[:100]!r} is not a valid secret name", hint="use letters, digits and _ . - as in GITHUB_TOKEN"
        )
    if value is not None:
        _check_value(value)
    if len(given_to or ()) > GIVEN_TO_MAX:
        raise Limited(
            f"a secret can have at most {GIVEN_TO_MAX} patterns of tools", hint="write `git.*` for all tools of git"
        )
    for pattern in given_to or ():
        if not _PATTERN.fullmatch(pattern):
            hint = "write a tool as in `git.push` or `git.*`, or `http.request:api.example.com` for one host"
            raise Invalid(f"{pattern[:100]!r} is not a pattern of tools", hint=hint)


def _check_value(value: str) -> None:
    if not value:
        raise Invalid("the secret is empty", hint=HOW_TO_SET)
    if len(value.strip()) < VALUE_LENGTH_MIN:
        raise Invalid(
            f"the secret is shorter than {VALUE_LENGTH_MIN} characters: it looks like ordinary text, from"
            " which handrail removes every secret",
            hint="choose a longer one; what is that short can be guessed anyway",
        )
    if len(value) > VALUE_LENGTH_MAX:
        raise Limited(
            f"the secret is longer than {VALUE_LENGTH_MAX:,} characters", hint="keep it in a file, and set its path"
        )
    if _UNFIT.search(value):
        raise Invalid("the secret has characters that can't be passed to a tool", hint="set it as plain UTF-8 text")


def _known(name: str, old: _SecretEntry | None) -> _SecretEntry:
    if old is None:
        raise NotFound(f"there is no secret `{name}` to keep", hint=f"`handrail secrets set {name}`")
    return old


def _rights(old: _SecretEntry | None) -> tuple[str, ...]:
    return old.given_to if old else ()


def _with_rights(entry: _SecretEntry, given_to: Sequence[str] | None) -> _SecretEntry:
    return entry if given_to is None else replace(entry, given_to=tuple(dict.fromkeys(given_to)))


def _card(name: str, entry: _SecretEntry) -> SecretCard:
    return SecretCard(name=name, given_to=entry.given_to, kept="keyring" if entry.ring else "file", set=entry.set)
