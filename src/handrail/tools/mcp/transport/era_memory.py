"""A cache of which MCP servers use the older protocol with a handshake, so that they are not probed at every start.

A server that ignores a request of the newer protocol costs ten seconds until it is given up. The cache may be lost or
wrong at any time; a wrong entry only costs a second attempt."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from handrail.domain.json import digest
from handrail.foundation.atomic_file import write_cache
from handrail.tools.mcp.declaration import Declared

ENTRIES_MAX: Final = 1_000
BOOK_BYTES_MAX: Final = 1_000_000


class EraCache:
    """The cache, in a small file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def is_legacy(self, declared: Declared) -> bool:
        """Whether this server was last opened with the handshake."""
        return bool(self._read().get(server_key(declared)))

    def note(self, declared: Declared, *, legacy: bool) -> None:
        """Store how this server was opened."""
        entries = self._read()
        key = server_key(declared)
        if bool(entries.get(key)) == legacy:
            return
        entries.pop(key, None)
        if legacy:
            entries[key] = True
        self._write(dict(list(entries.items())[-ENTRIES_MAX:]))

    def _read(self) -> dict[str, Any]:
        try:
            with self._path.open("rb") as file:
                return msgspec.json.decode(file.read(BOOK_BYTES_MAX), type=dict[str, bool])
        except (OSError, msgspec.DecodeError):
            return {}

    def _write(self, entries: dict[str, Any]) -> None:
        write_cache(self._path, msgspec.json.encode(entries))


def server_key(declared: Declared) -> str:
    """Everything that identifies a server, without secrets."""
    return digest([declared.command, *declared.args, declared.cwd, declared.url])
