"""The passphrase that approvals may require: a scrypt hash in a private file. The passphrase itself is never stored.

Wrong tries are counted in the same file, and each makes the next one wait longer. This slows down someone who can run
our command; who can read or write the file itself is not stopped (docs/guides/approvals.md)."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.errors import Forbidden, IntegrityBroken, Invalid, Unavailable
from handrail.engine.running.answers import Tried
from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.storage.file_lock import locked

FILE: Final = "approvals.passphrase"
LOCK: Final = "approvals.lock"
COST: Final = 2**15
BLOCK: Final = 8
MEMORY_MAX: Final = 64 * 1024 * 1024
"""What scrypt may use: 32 MiB at this cost, and some more."""
LENGTH_MIN: Final = 8
LENGTH_MAX: Final = 1_000
FILE_BYTES_MAX: Final = 10_000
WAIT_S_MAX: Final = 60
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class _KeptPassphrase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file contains."""

    salt: str
    hash: str
    n: int = COST
    r: int = BLOCK
    wrong: int = 0
    not_before: int = 0
    """No try is looked at before this time."""


@dataclass(frozen=True)
class PassphraseFile:
    """The passphrase in one folder; `clock` gives milliseconds since 1970."""

    folder: Path
    clock: Callable[[], int]

    def is_set(self) -> bool:
        """Whether there is a passphrase."""
        return (self.folder / FILE).exists()

    def keep(self, new: str, *, old: str | None) -> None:
        """Set the passphrase; changing one needs the old one."""
        if not LENGTH_MIN <= len(new) <= LENGTH_MAX:
            raise Invalid(f"a passphrase has {LENGTH_MIN} to {LENGTH_MAX:,} characters", hint="choose another one")
        try:
            make_private_folder(self.folder)
            with locked(self.folder / LOCK):
                if self.is_set() and not (tried := self._try(old or "")).is_right:
                    why = "was not looked at" if tried.is_early else "is wrong"
                    raise Forbidden(
                        f"the old passphrase {why}: nothing was changed", hint=f"wait {tried.wait_s} s, then try again"
                    )
                salt = os.urandom(16)
                self._write(_KeptPassphrase(salt=salt.hex(), hash=_hash(new, salt, COST, BLOCK).hex()))
        except OSError as error:
            raise self._unusable(error) from error

    def tried(self, text: str) -> Tried:
        """The result of a try; it is counted."""
        try:
            with locked(self.folder / LOCK):
                return self._try(text)
        except OSError as error:
            raise self._unusable(error) from error

    def _try(self, text: str) -> Tried:
        kept, now = self._read(), self.clock()
        if now < kept.not_before:
            # Not looked at, right or wrong: else the wait would not slow down anyone.
            wait_s = -(-(kept.not_before - now) // 1_000)
            return Tried(is_right=False, wrong=kept.wrong, wait_s=wait_s, is_early=True)
        given = _hash(text[:LENGTH_MAX], bytes.fromhex(kept.salt), kept.n, kept.r)
        if hmac.compare_digest(given, bytes.fromhex(kept.hash)):
            if kept.wrong:
                self._write(replace(kept, wrong=0, not_before=0))
            return Tried(is_right=True)
        wrong = kept.wrong + 1
        wait_s = min(2 ** (wrong - 1), WAIT_S_MAX)
        self._write(replace(kept, wrong=wrong, not_before=now + 1_000 * wait_s))
        return Tried(is_right=False, wrong=wrong, wait_s=wait_s)

    def _read(self) -> _KeptPassphrase:
        path = self.folder / FILE
        with path.open("rb") as file:
            if sys.platform != "win32" and os.fstat(file.fileno()).st_mode & OTHERS:
                raise Forbidden(f"{FILE} can be read by users other than its owner", hint=f"chmod 600 {path}")
            data = file.read(FILE_BYTES_MAX)
        try:
            kept = msgspec.json.decode(data, type=_KeptPassphrase)
            is_ours = (kept.n, kept.r) == (COST, BLOCK) and bytes.fromhex(kept.salt) and bytes.fromhex(kept.hash)
        except (msgspec.MsgspecError, ValueError) as error:
            raise IntegrityBroken(f"{FILE} is damaged", hint=f"restore {path} from a backup") from error
        if not is_ours:  # a cheaper hash than we write was put there by somebody else
            raise IntegrityBroken(f"{FILE} was not written by handrail", hint=f"restore {path} from a backup")
        return kept

    def _write(self, kept: _KeptPassphrase) -> None:
        write_whole(self.folder / FILE, msgspec.json.encode(kept) + b"\n", takes_turns=True)

    def _unusable(self, error: OSError) -> Unavailable:
        return Unavailable(f"{FILE} can't be used: {error.strerror}", hint=f"check the permissions of {self.folder}")


def _hash(text: str, salt: bytes, n: int, r: int) -> bytes:
    return hashlib.scrypt(text.encode(), salt=salt, n=n, r=r, p=1, maxmem=MEMORY_MAX, dklen=32)
