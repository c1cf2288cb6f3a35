"""The token that HTTP clients send: created once, stored in a file that only its owner can read.

It is compared in guard.py."""

from __future__ import annotations

import logging
import os
import re
import secrets
import stat
import sys
from pathlib import Path
from typing import Final

from handrail.domain.errors import Forbidden, Invalid, Unavailable
from handrail.domain.secrets.key_files import TokenName
from handrail.foundation.atomic_file import make_private_folder, write_new
from handrail.foundation.open_flags import BINARY, NO_BLOCK

TOKEN_BYTES: Final = 32
TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]{32,512}=*")
"""What may follow `Bearer`, and is too long to guess."""
READ_MAX: Final = 1_000
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO

log = logging.getLogger(__name__)


def open_token(home: Path, name: TokenName = TokenName.AGENTS) -> tuple[str, Path]:
    """The token of this home, created if there is none, and the file it is stored in."""
    path = home / name
    try:
        if not path.exists():
            make_private_folder(home)
            if not write_new(path, secrets.token_urlsafe(TOKEN_BYTES).encode() + b"\n"):
                log.info("another process has created the token")
        return _read(path), path
    except OSError as error:
        raise Unavailable(f"the token can't be stored in {path}: {error}", hint=f"fix {path}") from error


def _read(path: Path) -> str:
    file = os.open(path, os.O_RDONLY | BINARY | NO_BLOCK)
    with os.fdopen(file, "rb") as reader:
        _keep_private(file, path)
        text = reader.read(READ_MAX).decode("latin-1").strip()
    if not TOKEN.fullmatch(text):
        raise Invalid(f"{path.name} contains no token", hint=f"remove {path}: the next start creates a new one")
    return text


def _keep_private(file: int, path: Path) -> None:
    if sys.platform == "win32":  # on Windows a user's data folder is private already
        return
    # Of the open file, not of the path: the path could be replaced between check and read.
    status = os.fstat(file)
    if not status.st_mode & OTHERS:
        return
    if status.st_uid != os.geteuid():
        raise Forbidden(f"{path.name} belongs to another user, and others can read it", hint=f"remove {path}")
    os.fchmod(file, 0o600)
    log.warning("other users could read %s; this is fixed now. If one may have read it, remove it and restart", path)
