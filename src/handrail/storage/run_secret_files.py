"""Secrets of open runs beside a journal in a file: one sealed file for each run that has any, in HANDRAIL_HOME.

The process that was given a value is seldom the one that ends its run: each that goes on with it must know what to
remove from what it writes. Sealed with this home's key, so that a copy of the folder alone tells nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from handrail.domain.errors import Forbidden, IntegrityBroken
from handrail.foundation.atomic_file import PRIVATE_FOLDER, write_whole
from handrail.storage.node_box import NodeBox, sealed

NAME: Final = "run-secrets"
RUN: Final = re.compile(r"run_[a-z0-9]{1,60}")


class RunSecretFiles:
    """The values of secret inputs of open runs, in a folder."""

    def __init__(self, folder: Path, box: Callable[[], NodeBox]) -> None:
        """`box` is only asked for when there is a secret: it needs a library that takes long to load."""
        self.folder = folder
        self._make_box = box

    async def keep(self, run: str, values: Sequence[str]) -> None:
        """Keep the values of a run, for every process of this home."""
        await asyncio.to_thread(self._keep, run, values)

    async def of(self, run: str) -> Sequence[str]:
        """The values of a run; Forbidden if they can't be opened with this home's key."""
        path = self._path(run)
        if path is None or not path.exists():
            return ()
        return await asyncio.to_thread(self._opened, path)

    async def forget(self, run: str) -> None:
        """Remove the values of a run that has ended."""
        if path := self._path(run):
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def all(self) -> dict[str, Sequence[str]]:
        """The values of all runs that have some."""
        names = sorted(path.name for path in self.folder.iterdir()) if self.folder.is_dir() else []
        return {name: await self.of(name) for name in names if RUN.fullmatch(name)}

    def _keep(self, run: str, values: Sequence[str]) -> None:
        if path := self._path(run):
            self.folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            # Synced: the run is journaled after this, and may be all that is left after a power cut.
            write_whole(path, sealed(self._box.public, msgspec.json.encode(list(values))))

    def _opened(self, path: Path) -> Sequence[str]:
        try:
            return msgspec.json.decode(self._box.opened(path.read_bytes()), type=list[str])
        except FileNotFoundError:  # the run has just ended
            return ()
        except IntegrityBroken as error:
            raise Forbidden(
                f"the secret inputs of {path.name} can't be opened: the key of this home or {path} was changed",
                hint=f"bring the key back; or remove {path}: then nothing removes these values from what is written",
            ) from error

    def _path(self, run: str) -> Path | None:
        return self.folder / run if RUN.fullmatch(run) else None

    @cached_property
    def _box(self) -> NodeBox:
        return self._make_box()
