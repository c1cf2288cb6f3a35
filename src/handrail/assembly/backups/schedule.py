"""The schedule of backups: `[backup]` in config.toml of HANDRAIL_HOME, kept by servers and workers while they are up.

Any number of processes on one home may keep it: a lock lets one of them work, and all look at the same register. A
backup that fails is logged and tried again; it never stops the process that keeps the schedule."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from handrail.assembly.backups.opening import Access
from handrail.assembly.backups.register import BackupProof, BackupRegister, KnownBackup
from handrail.assembly.backups.taking import PREFIX, BackupRequest, make_backup
from handrail.assembly.backups.verifying import verify_backup
from handrail.assembly.stores import is_shared
from handrail.domain.backups.rotation import BackupRules, DatedBackup, kept
from handrail.domain.definition.duration import duration_ms
from handrail.domain.errors import HandrailError, Invalid, Unavailable
from handrail.domain.suggestion import did_you_mean
from handrail.engine.clock import system_clock
from handrail.settings import Settings
from handrail.storage.backups.encryption import read_passphrase
from handrail.storage.file_lock import locked

TABLE: Final = "backup"
LOCK: Final = "backup.lock"
LOOK_S: Final = 30.0
RETRY_MS: Final = 600_000
"""How long to wait after a backup that failed, at most."""
EVERY_MS_MIN: Final = 60_000
LEFT_MS: Final = 86_400_000
"""After how long an unfinished backup is removed: none takes a day."""
OVERDUE: Final = 2
"""After how many intervals without a backup it is overdue."""
EVERY_UNPLANNED_MS: Final = 7 * 86_400_000
"""How old a backup may be if there is no schedule, before it is called old."""

log = logging.getLogger(__name__)


class BackupState(Struct, frozen=True):
    """How a home stands with its backups."""

    rules: BackupRules | None
    newest: KnownBackup | None
    verified: KnownBackup | None
    """The newest that was verified."""
    age_ms: int | None
    is_overdue: bool


def rules_of(settings: Settings) -> BackupRules | None:
    """The schedule of a home; None if it has none. Invalid says what is wrong with it."""
    table: Any = settings.home_tables.get(TABLE)
    if table is None:
        return None
    known = BackupRules.__struct_fields__
    for name in sorted(table.keys() - set(known)):
        raise Invalid(f"config.toml: [backup] has no key `{name}`", hint=did_you_mean(name, sorted(known)))
    try:
        rules = msgspec.convert(table, BackupRules)
    except msgspec.ValidationError as error:
        raise Invalid(f"config.toml: [backup]: {error}", hint='write: to = "/mnt/backups"') from error
    if not _path(rules.to).is_absolute():
        raise Invalid(f"config.toml: [backup]: {rules.to!r} is not a whole path", hint="start it with / or ~")
    if duration_ms(rules.every) < EVERY_MS_MIN:
        raise Invalid(f"config.toml: [backup]: every {rules.every} is too often", hint="write 1m or more")
    return rules


def state_of(settings: Settings) -> BackupState:
    """How old the newest backup is, and whether that is too old."""
    rules, known = rules_of(settings), BackupRegister(settings.home).all()
    newest = known[0] if known else None
    verified = next((one for one in known if one.proof is BackupProof.VERIFIED), None)
    age_ms = max(0, system_clock() - newest.at) if newest else None
    every_ms = duration_ms(rules.every) * OVERDUE if rules else EVERY_UNPLANNED_MS
    return BackupState(rules, newest, verified, age_ms, age_ms is None or age_ms > every_ms)


@asynccontextmanager
async def keeping_schedule(settings: Settings) -> AsyncIterator[None]:
    """Make backups in the background, as the settings say, until the block ends."""
    if rules_of(settings) is None:
        yield
        return
    task = asyncio.ensure_future(_keep(settings))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _keep(settings: Settings) -> None:
    not_before = 0
    while True:
        now = system_clock()
        if now >= not_before:
            try:
                await back_up_if_due(settings)
            except HandrailError as error:
                log.warning("the backup failed: %s; what to do: %s", error, error.hint)
                not_before = now + RETRY_MS
        await asyncio.sleep(LOOK_S)


async def back_up_if_due(settings: Settings) -> KnownBackup | None:
    """Make the next backup, verify it and rotate, if it is time and no other process does it; None if not."""
    rules = rules_of(settings)
    if rules is None or not _is_due(settings, rules):
        return None
    with ExitStack() as held:
        try:
            held.enter_context(locked(settings.home / LOCK, wait_s=0))
        except Unavailable:
            return None  # another process is at it
        # Asked again under the lock: another process may have made it while this one waited.
        return await _scheduled(settings, rules) if _is_due(settings, rules) else None


async def _scheduled(settings: Settings, rules: BackupRules) -> KnownBackup:
    file = _path(rules.passphrase_file) if rules.passphrase_file else None
    request = BackupRequest(
        target=_path(rules.to),
        passphrase=read_passphrase(file) if file else "",
        recipients=rules.recipients,
    )
    made = await make_backup(settings, request)
    # What is encrypted for a key that is kept elsewhere can't be opened here, and so not be verified either.
    can_open = file is not None or not rules.recipients
    if rules.verify and can_open:
        verdict = await verify_backup(settings, made.folder, Access(passphrase_file=file))
        if verdict.proof is not BackupProof.VERIFIED:
            raise Unavailable(f"{made.folder} is {verdict.proof.value}: {verdict.reason}", hint=verdict.hint)
    await asyncio.to_thread(_rotate, settings, rules)
    newest = BackupRegister(settings.home).all()[0]
    log.info("backed up to %s: %s", made.folder, newest.proof.value)
    return newest


def _path(text: str) -> Path:
    return Path(text).expanduser()


def _is_due(settings: Settings, rules: BackupRules) -> bool:
    if not is_shared(settings) and not settings.journal.exists():
        return False  # nothing was ever written here
    known = BackupRegister(settings.home).all()
    now = system_clock()
    # A clock that was set back must not stop backups until it has caught up.
    return not known or not 0 <= now - known[0].at < duration_ms(rules.every)


def _remove_unfinished(folder: Path) -> None:
    """Remove what a process that was killed has left."""
    for part in folder.glob(f".{PREFIX}*.part"):
        if system_clock() - 1_000 * part.stat().st_mtime > LEFT_MS:
            shutil.rmtree(part, ignore_errors=True)


def _rotate(settings: Settings, rules: BackupRules) -> None:
    """Remove backups of the schedule's folder that are not kept; others were made by hand, and stay."""
    register, folder = BackupRegister(settings.home), _path(rules.to)
    _remove_unfinished(folder)
    own = [one for one in register.all() if Path(one.folder).parent == folder]
    dated = [DatedBackup(one.id, one.at, one.proof is BackupProof.VERIFIED) for one in own]
    wanted, gone = kept(dated, rules), list[str]()
    for one in own:
        if one.id in wanted:
            continue
        try:
            _remove(Path(one.folder))
        except OSError as error:
            log.warning("the backup %s can't be removed: %s", one.folder, error.strerror)
            continue
        gone.append(one.id)
    register.forget(gone)


def _remove(folder: Path) -> None:
    """Remove a backup; renamed first, so that a half-removed one is not taken for a backup."""
    aside = folder.with_name(f".{folder.name}.part")
    with suppress(FileNotFoundError):
        folder.rename(aside)
    if aside.exists():
        shutil.rmtree(aside)
