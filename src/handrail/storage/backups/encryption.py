"""Encrypts the files of a backup, and the key they are encrypted with: for a passphrase, or for recipients.

One random key for each backup. From it each file has a key of its own, with which it is encrypted in chunks
(ChaCha20-Poly1305); the number of a chunk and whether it is the last are in its nonce, so that chunks can't be
exchanged, repeated or cut off. The cryptography library is imported when it is used, to keep the start fast."""

from __future__ import annotations

import hashlib
import os
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from handrail.domain.backups.manifest import RECIPIENTS_MAX, ByPassphrase, Encryption, ForRecipient
from handrail.domain.errors import Forbidden, IntegrityBroken, Invalid, Limited, NotFound, Unavailable
from handrail.foundation.atomic_file import write_new
from handrail.storage.keys import OTHERS, PrivateKey
from handrail.storage.node_box import NodeBox, sealed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

KEY_BYTES: Final = 32
CHUNK_BYTES: Final = 1 << 20
TAG_BYTES: Final = 16
COST: Final = 2**16
BLOCK: Final = 8
MEMORY_MAX: Final = 128 * 1024 * 1024
PASSPHRASE_LENGTH_MIN: Final = 12
SECRET_BYTES_MAX: Final = 10_000
NONCE_OF_KEY: Final = bytes(12)
"""The key that wraps the key is derived with a fresh salt, so that its nonce may always be the same."""
RECIPIENT: Final = "hr_backup_"
SECRET: Final = "hr_backup_secret_"  # noqa: S105 - how such keys start
_hex: Final = re.compile(r"[0-9a-f]{64}")
_length: Final = struct.Struct(">I")


def new_recipient(file: Path) -> str:
    """Create a key pair for encrypted backups: the private key in a new file, the public one as the answer."""
    seed = os.urandom(KEY_BYTES)
    if not write_new(file, f"{SECRET}{seed.hex()}\n".encode()):
        raise Invalid(f"{file} exists", hint="name a new file; nothing was changed")
    return RECIPIENT + NodeBox(PrivateKey(seed)).public


def encrypted_for(key: bytes, *, passphrase: str, recipients: Iterable[str]) -> Encryption | None:
    """The key of a backup as its manifest contains it; None if neither a passphrase nor a recipient is given."""
    boxes = tuple(ForRecipient(recipient=one, box=sealed(_public(one), key).hex()) for one in recipients)
    if len(boxes) > RECIPIENTS_MAX:
        raise Limited(f"a backup has at most {RECIPIENTS_MAX} recipients", hint="name fewer")
    wrapped = _wrapped(key, passphrase) if passphrase else None
    return Encryption(passphrase=wrapped, recipients=boxes) if wrapped or boxes else None


def key_of(encryption: Encryption, *, passphrase: str, key_file: Path | None) -> bytes:
    """The key of an encrypted backup; Forbidden if what is given does not open it."""
    if key_file is not None:
        return _opened_by_key(encryption, key_file)
    if not passphrase:
        ways = ["--passphrase-file"] * (encryption.passphrase is not None) + ["--key-file"] * bool(
            encryption.recipients
        )
        raise Forbidden("the backup is encrypted", hint=f"give {' or '.join(ways)}")
    if encryption.passphrase is None:
        raise Forbidden("the backup is encrypted for recipients, not with a passphrase", hint="give --key-file")
    return _unwrapped(encryption.passphrase, passphrase)


def read_passphrase(file: Path) -> str:
    """The passphrase in a file: its first line."""
    text = _secret_text(file).partition("\n")[0]
    if len(text) < PASSPHRASE_LENGTH_MIN:
        raise Invalid(
            f"the passphrase in {file} has fewer than {PASSPHRASE_LENGTH_MIN} characters", hint="use a longer one"
        )
    return text


class ChunkCipher:
    """Encrypts or decrypts one file, chunk by chunk."""

    def __init__(self, key: bytes, name: str) -> None:
        self._aead, self._number = _aead(_file_key(key, name)), 0

    def encrypted(self, chunk: bytes, *, is_last: bool) -> bytes:
        """The next chunk, with its length before it."""
        box = self._aead.encrypt(self._nonce(is_last=is_last), chunk, None)
        return _length.pack(len(box)) + box

    def decrypted(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """What was encrypted; IntegrityBroken if it was changed, or ends early."""
        following = _frames(chunks)
        box = next(following, None)
        if box is None:
            raise IntegrityBroken("an encrypted file is empty")
        while box is not None:
            after = next(following, None)
            yield self._decrypt(box, is_last=after is None)
            box = after

    def _decrypt(self, box: bytes, *, is_last: bool) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self._aead.decrypt(self._nonce(is_last=is_last), box, None)
        except InvalidTag as error:
            raise IntegrityBroken("an encrypted file was changed, or is cut off") from error

    def _nonce(self, *, is_last: bool) -> bytes:
        self._number += 1
        return self._number.to_bytes(11, "big") + bytes([is_last])


def _frames(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The encrypted chunks in a file that is read in pieces of any size."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        while len(held) >= _length.size:
            (size,) = _length.unpack_from(held)
            if size > CHUNK_BYTES + TAG_BYTES:
                raise IntegrityBroken("an encrypted file was changed: a chunk is too long")
            if len(held) < _length.size + size:
                break
            yield bytes(held[_length.size : _length.size + size])
            del held[: _length.size + size]
    if held:
        raise IntegrityBroken("an encrypted file is cut off")


def _public(recipient: str) -> str:
    public = recipient.removeprefix(RECIPIENT)
    if not recipient.startswith(RECIPIENT) or not _hex.fullmatch(public):
        raise Invalid(
            "that is not the public key of a recipient", hint="`handrail db recipient FILE` creates a key and prints it"
        )
    return public


def _opened_by_key(encryption: Encryption, file: Path) -> bytes:
    text = _secret_text(file).strip()
    seed = text.removeprefix(SECRET)
    if not text.startswith(SECRET) or not _hex.fullmatch(seed):
        raise Invalid(f"{file} is not the private key of a recipient", hint="name the file of `handrail db recipient`")
    box = NodeBox(PrivateKey(bytes.fromhex(seed)))
    for one in encryption.recipients:
        if one.recipient == RECIPIENT + box.public:
            return box.opened(bytes.fromhex(one.box))
    raise Forbidden("the backup is not encrypted for this key", hint="use the key of one of its recipients")


def _wrapped(key: bytes, passphrase: str) -> ByPassphrase:
    salt = os.urandom(16)
    box = _aead(_stretched(passphrase, salt)).encrypt(NONCE_OF_KEY, key, None)
    return ByPassphrase(salt=salt.hex(), n=COST, r=BLOCK, box=box.hex())


def _unwrapped(wrapped: ByPassphrase, passphrase: str) -> bytes:
    from cryptography.exceptions import InvalidTag

    if (wrapped.n, wrapped.r) != (COST, BLOCK):  # else a stranger's manifest could make us use any amount of memory
        raise IntegrityBroken("the cost of the passphrase is not one that handrail writes", hint="use another backup")
    try:
        stretched = _stretched(passphrase, bytes.fromhex(wrapped.salt))
        return _aead(stretched).decrypt(NONCE_OF_KEY, bytes.fromhex(wrapped.box), None)
    except (InvalidTag, ValueError) as error:
        raise Forbidden("the passphrase is wrong", hint="nothing was changed; try another one") from error


def _stretched(passphrase: str, salt: bytes) -> bytes:
    return hashlib.scrypt(passphrase.encode(), salt=salt, n=COST, r=BLOCK, p=1, maxmem=MEMORY_MAX, dklen=KEY_BYTES)


def _file_key(key: bytes, name: str) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), KEY_BYTES, salt=None, info=b"handrail backup 1 " + name.encode()).derive(key)


def _aead(key: bytes) -> ChaCha20Poly1305:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    return ChaCha20Poly1305(key)


def _secret_text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            if os.name == "posix" and os.fstat(opened.fileno()).st_mode & OTHERS:
                raise Forbidden(f"{file} can be read by users other than its owner", hint=f"chmod 600 {file}")
            return opened.read(SECRET_BYTES_MAX).decode()
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {file}", hint="name another file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"{file} can't be read: {error}", hint="check the file") from error
