"""Recipients and passphrases of encrypted backups, for interfaces: they do not reach into storage."""

from __future__ import annotations

from pathlib import Path

from handrail.domain.errors import Unavailable
from handrail.storage.backups.encryption import new_recipient, read_passphrase


def create_recipient(file: Path) -> str:
    """Create a key pair; the private key in a new file, the public one as the answer."""
    try:
        return new_recipient(file)
    except OSError as error:
        raise Unavailable(
            f"{file} can't be written: {error.strerror}", hint="name a file in a writable folder"
        ) from error


def passphrase_in(file: Path) -> str:
    """The passphrase in a file."""
    return read_passphrase(file)
