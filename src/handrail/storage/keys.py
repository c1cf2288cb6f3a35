"""The key that signs checkpoints: created once, kept beside the journal, refused if other users can read it.

`journal.key` contains the Ed25519 seed as hex, `journal.pub` the public key as PEM, so that signatures can be checked
with other tools. The cryptography library is imported when something is signed or checked, to keep the start fast."""

from __future__ import annotations

import hashlib
import hmac
import os
import stat
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handrail.domain.errors import Forbidden, IntegrityBroken, Unavailable
from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.storage.file_lock import locked

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_FILE: Final = "journal.key"
PUBLIC_FILE: Final = "journal.pub"
LOCK_FILE: Final = "lock"
SEED_BYTES: Final = 32
ID_DIGITS: Final = 16
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class PublicKey:
    """Checks signatures."""

    raw: bytes

    @property
    def key(self) -> str:
        """The key's id: the first digits of its digest."""
        return hashlib.sha256(self.raw).hexdigest()[:ID_DIGITS]

    @property
    def public(self) -> str:
        """The public key as hex."""
        return self.raw.hex()

    def of(self, key: str) -> PublicKey | None:
        """This key, if it has this id: it is the only one that may sign."""
        return self if key == self.key else None

    def created(self, public: str) -> bool:
        """Whether this is the key that a store was created with."""
        return public == self.public

    def holds(self, message: bytes, signature: bytes) -> bool:
        """Whether the key made this signature of this message."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except InvalidSignature:
            return False
        return True


class PrivateKey:
    """Signs, and checks what it signed. Not a dataclass, so that its repr can't show the seed."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed

    @property
    def key(self) -> str:
        """The key's id."""
        return self.public_key.key

    @property
    def public(self) -> str:
        """The public key as hex."""
        return self.public_key.public

    @cached_property
    def public_key(self) -> PublicKey:
        """The half that may be shown."""
        return PublicKey(self._private.public_key().public_bytes_raw())

    def of(self, key: str) -> PublicKey | None:
        """The half that checks, if the key has this id."""
        return self.public_key.of(key)

    def created(self, public: str) -> bool:
        """Whether this is the key that a store was created with."""
        return public == self.public

    def holds(self, message: bytes, signature: bytes) -> bool:
        """Whether this key made this signature of this message."""
        return self.public_key.holds(message, signature)

    def derived(self, label: bytes) -> bytes:
        """A secret of this key for another purpose, from which the key can't be found."""
        # Other purposes never see the seed itself: a flaw in one of them can't forge signatures.
        return hmac.digest(self._seed, label, "sha256")

    def sign(self, message: bytes) -> bytes:
        """The signature of a message."""
        return self._private.sign(message)

    @cached_property
    def _private(self) -> Ed25519PrivateKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self._seed)


def open_key(folder: Path, *, has_checkpoints: bool) -> PrivateKey:
    """The journal's key; created if there is none, unless there are checkpoints that a lost key has signed.

    An operator who accepts the loss passes `has_checkpoints=False` and starts a new log; the old one is moved aside."""
    path = folder / KEY_FILE
    try:
        if not path.exists():
            _make_key(folder, has_checkpoints=has_checkpoints)
        return PrivateKey(_read_seed(path))
    except OSError as error:
        raise Unavailable(
            f"the key {path.name} can't be used: {error.strerror}", hint=f"check the permissions of {folder}"
        ) from error


def open_secret(folder: Path, name: str) -> bytes:
    """A secret that all processes of this store share; created if there is none."""
    path = folder / name
    try:
        if not path.exists():
            make_private_folder(folder)
            with locked(folder / LOCK_FILE):
                if not path.exists():  # another process may have been first
                    write_whole(path, os.urandom(SEED_BYTES).hex().encode() + b"\n", takes_turns=True)
        return _read_seed(path)
    except OSError as error:
        raise Unavailable(
            f"the secret {name} can't be used: {error.strerror}", hint=f"check the permissions of {folder}"
        ) from error


def open_public_key(folder: Path) -> PublicKey | None:
    """The public key alone, for checking without the right to sign; None if there is none."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key((folder / PUBLIC_FILE).read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise IntegrityBroken(f"{PUBLIC_FILE} is not a public key") from error
    if not isinstance(key, Ed25519PublicKey):
        raise IntegrityBroken(f"{PUBLIC_FILE} is not an Ed25519 key")
    return PublicKey(key.public_bytes_raw())


def _make_key(folder: Path, *, has_checkpoints: bool) -> None:
    if has_checkpoints:
        raise IntegrityBroken(
            f"the key that signed the checkpoints is gone: {KEY_FILE}",
            hint=f"restore it to {folder} from a backup; if it is lost permanently:"
            " `handrail journal checkpoint --accept --reason ...`",
        )
    make_private_folder(folder)
    with locked(folder / LOCK_FILE):
        if not (folder / KEY_FILE).exists():  # another process may have been first
            seed = os.urandom(SEED_BYTES)
            write_whole(folder / PUBLIC_FILE, _pem(seed), mode=0o644, takes_turns=True)
            # Last: other processes look for this file, and may then rely on both.
            write_whole(folder / KEY_FILE, seed.hex().encode() + b"\n", takes_turns=True)


def _pem(seed: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = Ed25519PrivateKey.from_private_bytes(seed).public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _read_seed(path: Path) -> bytes:
    with path.open("rb") as file:
        if sys.platform != "win32" and os.fstat(file.fileno()).st_mode & OTHERS:
            raise Forbidden(f"the key {path.name} can be read by users other than its owner", hint=f"chmod 600 {path}")
        text = file.read(1_000)
    try:
        seed = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        seed = b""
    if len(seed) != SEED_BYTES:
        raise IntegrityBroken(f"the key {path.name} is damaged", hint=f"restore {path} from a backup")
    return seed
