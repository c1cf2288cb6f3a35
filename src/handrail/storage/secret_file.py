"""Secrets in a file for their owner's eyes only, or in the platform's keyring with the file as its index.

`secrets.json` in the folder of keys. Names, who may get a secret and when it was set are always here; the value is
here too, or in the ring (secret_ring.py) under a key that is told here."""

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
from handrail.domain.reference import is_name
from handrail.domain.suggestion import did_you_mean
from handrail.engine.clock import Clock, system_clock
from handrail.engine.secrets import Secret, SecretCard
from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.storage.file_lock import locked
from handrail.storage.keys import OTHERS
from handrail.storage.secret_ring import SERVICE, Ring, open_ring

Choice: TypeAlias = Literal["auto", "file", "keyring"]

SECRETS_FILE: Final = "secrets.json"
LOCK_FILE: Final = "secrets.lock"  # its own: what waits here must not keep others from the journal's key
VALUE_LENGTH_MAX: Final = 10_000
SECRETS_MAX: Final = 1_000
GIVEN_TO_MAX: Final = 20
FILE_BYTES_MAX: Final = 64_000_000
RING_KEY_BYTES: Final = 8
HOW_TO_SET: Final = "`handrail secrets set NAME` keeps one"

_PATTERN: Final = re.compile(
    r"[A-Za-z0-9_*?\[\]!./-]{1,200}|http\.request:(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?"
)

_UNFIT: Final = re.compile("[\0\ud800-\udfff]")  # an end of text, and halves of characters


class _Entry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One secret as the file holds it: with its value, or with the key under which the ring has it."""

    set: int
    given_to: tuple[str, ...] = ()
    value: str = ""
    ring: str = ""

    def __repr__(self) -> str:
        return f"_Entry(set={self.set})"


class _Index(Struct, frozen=True, kw_only=True):
    """All that the file holds."""

    format: Literal[1] = 1
    secrets: Mapping[str, _Entry] = field(default_factory=dict)


_decode = msgspec.json.Decoder(_Index).decode


class SecretFile:
    """The secrets of one home; every process reads what is there now."""

    def __init__(
        self,
        folder: Path,
        *,
        choice: Choice = "auto",
        opening: Callable[[], Ring] = open_ring,
        clock: Clock = system_clock,
    ) -> None:
        """`choice` is where values that are set from now on are kept: the keyring if there is a real one, by itself."""
        self._folder, self._path = folder, folder / SECRETS_FILE
        self._choice = choice
        self._opening = opening
        self._clock = clock
        self._seen: tuple[tuple[int, int, int], _Index] | None = None

    def find(self, name: str) -> Secret | None:
        """The secret of that name; None if there is none."""
        entry = self._index().secrets.get(name)
        if entry is None:
            return None
        return Secret(value=self._value(name, entry), given_to=entry.given_to)

    def keep(self, name: str, value: str | None, given_to: Sequence[str] | None) -> SecretCard:
        """Set a secret; None leaves its value, or the tools that it may be given to, as they are."""
        _check(name, value, given_to)
        if value is None:
            return self._change(name, lambda old: _with_rights(_known(name, old), given_to))
        # Outside the lock: a ring may ask its person something first. The old value stays until the new one is known.
        ring = self._ring_to_set()
        key = f"{name} {os.urandom(RING_KEY_BYTES).hex()}" if ring else ""
        if ring:
            ring.put(key, value)
        new = _Entry(set=self._clock(), ring=key) if ring else _Entry(set=self._clock(), value=value)
        try:
            return self._change(name, lambda old: _with_rights(replace(new, given_to=_rights(old)), given_to))
        except HandrailError:
            if ring:
                ring.drop(key)
            raise

    def cards(self) -> Sequence[SecretCard]:
        """What may be shown of all secrets, by name."""
        return [_card(name, entry) for name, entry in sorted(self._index().secrets.items())]

    def remove(self, name: str) -> None:
        """Forget a secret; NotFound if there is none of that name."""
        with self._changing() as secrets:
            if name not in secrets:
                raise NotFound(f"there is no secret `{name}`", hint=did_you_mean(name, sorted(secrets)) or HOW_TO_SET)
            old = secrets.pop(name)
        self._drop(old)

    def _change(self, name: str, new_of: Callable[[_Entry | None], _Entry]) -> SecretCard:
        with self._changing() as secrets:
            old = secrets.get(name)
            secrets[name] = new = new_of(old)
            if len(secrets) > SECRETS_MAX:
                raise Limited(f"there are {SECRETS_MAX:,} secrets already", hint="remove some: `handrail secrets list`")
        if old and old.ring != new.ring:
            self._drop(old)
        return _card(name, new)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, _Entry]]:
        """All secrets, to be changed by one process at a time; they are written unless something is raised."""
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

    def _value(self, name: str, entry: _Entry) -> str:
        if not entry.ring:
            return entry.value
        value = self._opening().get(entry.ring)
        if value is None:
            raise Unavailable(
                f"the platform's keyring does not have the secret `{name}` any more",
                hint=f"set it again: `handrail secrets set {name}`",
            )
        return value

    def _drop(self, old: _Entry) -> None:
        """Take a value out of the ring that nobody knows of any more."""
        if not old.ring:
            return
        try:
            self._opening().drop(old.ring)
        except Unavailable as error:
            raise Unavailable(
                f"it is done here, but the old value is still in the platform's keyring: {error}",
                hint=f"remove `{SERVICE}`, `{old.ring}` there by hand",
            ) from error

    def _index(self) -> _Index:
        try:
            with self._path.open("rb") as file:
                found = os.fstat(file.fileno())
                if sys.platform != "win32" and found.st_mode & OTHERS:
                    message = f"{SECRETS_FILE} can be read by others than its owner"
                    raise Forbidden(message, hint=f"chmod 600 {self._path}")
                # Every change puts a new file in place, so that one that looks the same is the same.
                mark = (found.st_ino, found.st_mtime_ns, found.st_size)
                if self._seen is None or self._seen[0] != mark:
                    self._seen = (mark, self._decoded(file.read(FILE_BYTES_MAX + 1)))
                return self._seen[1]
        except FileNotFoundError:
            return _Index()
        except OSError as error:
            raise self._unusable(error) from error

    def _decoded(self, content: bytes) -> _Index:
        try:
            if len(content) > FILE_BYTES_MAX:
                raise Limited(f"{SECRETS_FILE} is larger than {FILE_BYTES_MAX:,} bytes", hint=self._mend)
            return _decode(content)
        except (msgspec.DecodeError, UnicodeError):  # its words are left out: they may quote what is there
            raise Invalid(f"{SECRETS_FILE} is damaged", hint=self._mend) from None

    @property
    def _mend(self) -> str:
        return f"put {self._path} back from a backup, or delete it and set the secrets again"

    def _unusable(self, error: OSError) -> Unavailable:
        return Unavailable(
            f"{SECRETS_FILE} can't be used: {error.strerror}", hint=f"check the rights of {self._folder}"
        )


def _check(name: str, value: str | None, given_to: Sequence[str] | None) -> None:
    if not is_name(name):
        raise Invalid(
            f"{name[:100]!r} is no name for a secret", hint="write letters, digits and _ . - as in GITHUB_TOKEN"
        )
    if value is not None:
        _check_value(value)
    if len(given_to or ()) > GIVEN_TO_MAX:
        raise Limited(
            f"a secret may be given to {GIVEN_TO_MAX} patterns of tools at most", hint="write `git.*` for all"
        )
    for pattern in given_to or ():
        if not _PATTERN.fullmatch(pattern):
            hint = "write a tool as in `git.push` or `git.*`, or `http.request:api.example.com` for one host"
            raise Invalid(f"{pattern[:100]!r} names no tools", hint=hint)


def _check_value(value: str) -> None:
    if not value:
        raise Invalid("the secret is empty", hint=HOW_TO_SET)
    if len(value) > VALUE_LENGTH_MAX:
        raise Limited(
            f"the secret is longer than {VALUE_LENGTH_MAX:,} characters", hint="keep a file, and name its path"
        )
    if _UNFIT.search(value):
        raise Invalid("the secret holds characters that no tool can be given", hint="set it as plain UTF-8 text")


def _known(name: str, old: _Entry | None) -> _Entry:
    if old is None:
        raise NotFound(f"there is no secret `{name}` whose value could stay", hint=f"`handrail secrets set {name}`")
    return old


def _rights(old: _Entry | None) -> tuple[str, ...]:
    return old.given_to if old else ()


def _with_rights(entry: _Entry, given_to: Sequence[str] | None) -> _Entry:
    return entry if given_to is None else replace(entry, given_to=tuple(dict.fromkeys(given_to)))


def _card(name: str, entry: _Entry) -> SecretCard:
    return SecretCard(name=name, given_to=entry.given_to, kept="keyring" if entry.ring else "file", set=entry.set)
