"""Follows a home with a second one: a copy that is at most some seconds behind, ready to take over.

The copy is a home without keys, unless they are asked for. Its checkpoints are written after its events, so that they
never cover what the copy does not have."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from handrail.assembly.backups.restoring import require_new_home
from handrail.assembly.backups.taking import JOURNAL, store_id_of
from handrail.assembly.stores import is_shared
from handrail.domain.definition.duration import duration_ms
from handrail.domain.errors import Conflict, IntegrityBroken, Invalid, NotFound, Unavailable
from handrail.domain.journal.archived import ARCHIVES
from handrail.engine.proving.audit import verify
from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.settings import Settings
from handrail.storage.backups import home_files
from handrail.storage.backups.following import Follower, FollowStep
from handrail.storage.backups.sqlite_copy import copy_of
from handrail.storage.checkpoint_log import LOG_FILE, CheckpointFile
from handrail.storage.file_lock import locked
from handrail.storage.keys import open_public_key
from handrail.storage.sqlite.store import SqliteStore

MARK: Final = "following.json"
"""The file that says that a folder is the copy of a home."""
LOCK: Final = "follow.lock"


class FollowMark(Struct, frozen=True):
    """What a copy is of."""

    store: str


class HomeFollower:
    """Keeps the copy of a home up to date; open it with `following`."""

    def __init__(self, settings: Settings, target: Path, follower: Follower, *, with_keys: bool) -> None:
        self._home, self._target, self._follower = settings.home, target, follower
        self._with_keys = with_keys

    async def step(self) -> FollowStep:
        """Copy what is new."""
        return await asyncio.to_thread(self._step)

    def _step(self) -> FollowStep:
        log = _whole_lines(self._home / home_files.CHECKPOINTS / LOG_FILE)
        done = self._follower.step()
        try:
            make_private_folder(self._target / home_files.CHECKPOINTS)
            copied = self._target / home_files.CHECKPOINTS / LOG_FILE
            if not copied.exists() or copied.stat().st_size != len(log):
                write_whole(copied, log, takes_turns=True)
            self._copy_files()
        except OSError as error:
            raise Unavailable(f"{self._target} can't be written: {error.strerror}", hint="check its disk") from error
        return done

    def _copy_files(self) -> None:
        """Copy the other files of the home that have changed."""
        names = [name for name in home_files.names_of(self._home, keys=False) if name != ARCHIVES]  # with the events
        names += home_files.names_of(self._home, keys=True) if self._with_keys else ["keys/journal.pub"]
        for file in home_files.files_below(self._home, names):
            copy = self._target / file.relative_to(self._home)
            if file.is_relative_to(self._target) or _is_same(file, copy):
                continue
            make_private_folder(copy.parent)
            part = copy.with_name(f"{copy.name}.part")
            shutil.copy2(file, part)
            part.replace(copy)


@contextmanager
def following(settings: Settings, target: Path, *, with_keys: bool = False) -> Iterator[HomeFollower]:
    """A follower of this home in a new folder, or in one that already follows it."""
    if is_shared(settings):
        raise Invalid("the journal is in PostgreSQL", hint="use its own replication")
    if not settings.journal.exists():
        raise NotFound("this home has no journal", hint="name the home: `handrail --home FOLDER db follow ...`")
    store = store_id_of(settings.journal)
    try:
        mark = msgspec.json.decode(read_plain(target / MARK, bytes_max=1_000), type=FollowMark)
    except FileNotFoundError:
        require_new_home(target)
        _start(settings, target, store)
        mark = FollowMark(store)
    except (NotADirectoryError, NotPlain, msgspec.MsgspecError) as error:
        raise Conflict(f"{target} is not a copy of a home", hint="name a new folder") from error
    if mark.store != store:
        raise Conflict(f"{target} follows another store ({mark.store})", hint="name a new folder")
    with locked(target / LOCK, wait_s=0):
        follower = Follower(settings.journal, target / JOURNAL, busy_ms=duration_ms(settings.choices.busy))
        try:
            yield HomeFollower(settings, target, follower, with_keys=with_keys)
        finally:
            follower.close()


async def verify_copy(target: Path) -> int:
    """Verify all of a copy: its file, every chain, its checkpoints, every run replayed; how many events it has."""
    log = CheckpointFile(target / home_files.CHECKPOINTS)
    async with await SqliteStore.open_migrated(target / JOURNAL) as store:
        verdict = await verify(store, log, open_public_key(target / "keys"), replay=True)
    if verdict.first_bad is not None:
        raise IntegrityBroken(f"the copy is not intact: {verdict.first_bad.reason}", hint="follow into a new folder")
    return verdict.events


def _start(settings: Settings, target: Path, store: str) -> None:
    """Make the first copy, of everything; the mark comes last, so that a killed start is started again."""
    try:
        make_private_folder(target)
        part = target / f"{JOURNAL}.part"
        part.unlink(missing_ok=True)
        copy_of(settings.journal, part, busy_ms=duration_ms(settings.choices.busy))
        part.replace(target / JOURNAL)
        write_whole(target / MARK, msgspec.json.encode(FollowMark(store)) + b"\n", takes_turns=True)
    except OSError as error:
        raise Unavailable(f"{target} can't be written: {error.strerror}", hint="check its disk") from error


def _whole_lines(log: Path) -> bytes:
    content = log.read_bytes() if log.exists() else b""
    return content[: content.rfind(b"\n") + 1]


def _is_same(file: Path, copy: Path) -> bool:
    try:
        one, other = file.stat(), copy.stat()
    except FileNotFoundError:
        return False
    return (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
