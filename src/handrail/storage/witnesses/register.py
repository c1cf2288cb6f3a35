"""The register of witnesses: one JSON file beside the checkpoint log that says how far each witness is.

It is only for knowing what to copy next and for `doctor`; nothing is proven by it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from handrail.domain.errors import Unavailable
from handrail.engine.proving.witness_courier import CopyState
from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.storage.file_lock import locked

REGISTER_FILE: Final = "witnesses.json"
LOCK_FILE: Final = "witnesses.lock"
REGISTER_BYTES_MAX: Final = 1_000_000

_decoder: Final = msgspec.json.Decoder(dict[str, CopyState])


class WitnessRegister:
    """How far each witness is, in a file of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / REGISTER_FILE

    async def all(self) -> Mapping[str, CopyState]:
        """How far each witness is; nothing if the file is missing or can't be read: copies are then made again."""
        return await asyncio.to_thread(self._read)

    async def put(self, name: str, state: CopyState) -> None:
        """Note how far a witness is."""
        await asyncio.to_thread(self._put, name, state)

    def _read(self) -> dict[str, CopyState]:
        try:
            with self._path.open("rb") as file:
                return _decoder.decode(file.read(REGISTER_BYTES_MAX))
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return {}

    def _put(self, name: str, state: CopyState) -> None:
        try:
            make_private_folder(self._folder)
            with locked(self._folder / LOCK_FILE):
                content = msgspec.json.encode({**self._read(), name: state})
                write_whole(self._path, content, takes_turns=True)
        except OSError as error:
            raise Unavailable(
                f"{REGISTER_FILE} can't be written: {error.strerror}",
                hint="check the disk and the folder's permissions",
            ) from error
