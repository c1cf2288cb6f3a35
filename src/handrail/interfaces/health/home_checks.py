"""Checks of this machine: store, keys, clock, permissions, disk, tools, sandbox, cache.

They change nothing, except that opening a store signs its new events. Thresholds and words that `/healthz` shares are
in domain/health/judgement.py; checks of a program that runs are in live_checks.py."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

from handrail.assembly.backups.register import BackupProof
from handrail.assembly.backups.schedule import TABLE as BACKUPS
from handrail.assembly.backups.schedule import state_of
from handrail.assembly.checks import sandbox_of
from handrail.assembly.hosts import host_state
from handrail.assembly.notify.keeping import TABLE
from handrail.assembly.notify.webhooks import channels_of
from handrail.assembly.opening import open_reader, open_store
from handrail.assembly.people import answer_rules, passphrase_of
from handrail.assembly.tools import toolbox_of
from handrail.assembly.witnesses import witness_states
from handrail.domain.errors import HandrailError
from handrail.domain.health.check import CheckLevel, HealthCheck, fail, failed_with, ok, warn
from handrail.domain.health.judgement import channel_check, checkpoint_check, clock_check, disk_check, server_check
from handrail.domain.instant import instant_from, instant_text
from handrail.domain.journal.checkpoint import Checkpoint, checkpoint_digest
from handrail.domain.plural import plural
from handrail.domain.scheduling.breaker import BreakerStatus
from handrail.domain.secrets.key_files import PUBLIC, TokenName
from handrail.domain.trust.decision import COMMAND, off_words
from handrail.engine.clock import system_clock
from handrail.engine.notify.channel_view import ChannelStatus, ChannelView
from handrail.engine.proving.projection_repair import WholeStore
from handrail.engine.proving.witness_courier import CopyState
from handrail.engine.reading.tool_stats import breakers_of
from handrail.foundation.address_text import without_password
from handrail.settings import Settings

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
CACHE_BYTES_WARN: Final = 50_000_000
CACHE_FILES_MAX: Final = 1_000
NO_WITNESS: Final = (
    "there is none: who can write HANDRAIL_HOME can replace key, checkpoints and journal together, unseen by verify"
)
WITHOUT_SANDBOX: Final = (
    "install bubblewrap 0.8 or newer; where it can't be installed, let checks run without a sandbox, as your own shell "
    'does: [checks] sandbox = "off" in config.toml of HANDRAIL_HOME; they can then read and change all that you can'
)
SANDBOX_OFF: Final = (
    "off, as config.toml says: commands of checks can read and change all that you can, and what they change in the "
    "project stays; other states of it (tests_prove, tests_notice, tests_kept) are tried in a copy"
)


async def home_checks(settings: Settings, *, started: tuple[float, float]) -> AsyncIterator[HealthCheck]:
    """All checks; `started` is the time of both clocks when the command started."""
    yield _home(settings.home)
    yield free_space(settings.home)
    yield await _store(settings)
    yield await _host(settings)
    yield keys_of(settings)
    for check in await _signing(settings):
        yield check
    yield backups_of(settings)
    yield await _clock(settings, started)
    for check in await _servers(settings):
        yield check
    for check in await _channels(settings):
        yield check
    yield _trust(settings)
    yield _approvals(settings)
    for check in _tools(settings):
        yield check
    yield await _sandbox(settings)
    yield _cache(settings.home / "cache")


async def home_health(settings: Settings, *, started: tuple[float, float]) -> list[HealthCheck]:
    """What `/healthz` would say of this home if a server ran: without tips, and without what is a choice."""
    signing = [one for one in await _signing(settings) if one.name != "witnesses" or one.level is CheckLevel.FAIL]
    return [
        await _store(settings),
        free_space(settings.home),
        await _clock(settings, started),
        keys_of(settings),
        *signing,
        *([backups_of(settings)] if BACKUPS in settings.home_tables else []),
        *await _servers(settings),
        *await _channels(settings),
    ]


def clocks() -> tuple[float, float]:
    """The time now: wall clock and monotonic clock."""
    return time.time(), time.monotonic()


def _home(home: Path) -> HealthCheck:
    nearest = next(folder for folder in (home, *home.parents) if folder.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        return fail("home", f"{nearest} is not writable", "make it writable, or set HANDRAIL_HOME")
    if nearest != home:
        return ok("home", f"{home} does not exist yet; it is created on first use")
    if sys.platform != "win32" and home.stat().st_mode & OTHERS:
        return warn("home", f"{home} is open to other users", f"chmod 700 {home}")
    return ok("home", f"{home} is {_private(home)}")


def free_space(home: Path) -> HealthCheck:
    """Whether the disk of the home has room."""
    nearest = next(folder for folder in (home, *home.parents) if folder.exists())
    return disk_check(shutil.disk_usage(nearest).free)


async def _store(settings: Settings) -> HealthCheck:
    if settings.choices.store:
        return await _opened(settings)
    if not settings.journal.exists():
        return ok("store", "no journal yet; it is created on first use")
    if not os.access(settings.journal, os.W_OK):
        return fail("store", f"{settings.journal} is not writable", f"chmod u+w {settings.journal}")
    return await _opened(settings)


async def _opened(settings: Settings) -> HealthCheck:
    try:
        async with open_store(settings) as opened:  # not as a project: looking registers nothing
            events = (await opened.store.end()).events
            is_signed = await opened.checkpoints.last() is not None
    except HandrailError as error:
        return fail("store", str(error), error.hint)
    signed = "matches its checkpoints" if is_signed else "no checkpoint yet"
    where = f" in {without_password(settings.choices.store)}" if settings.choices.store else ""
    return ok("store", f"{plural(events, 'event')}{where}, {signed}")


async def _host(settings: Settings) -> HealthCheck:
    try:
        state = await host_state(settings)
    except HandrailError as error:
        return fail("host", str(error), error.hint)
    if state is None:
        return ok("host", "local: every worker takes the runs that are free")
    if state.problem:
        return fail("host", f"{state.name}: {state.problem}", "runs wait in the journal until it answers")
    return ok("host", f"{state.name} answers")


def keys_of(settings: Settings) -> HealthCheck:
    """Whether the keys are there, and private."""
    keys = _key_files(settings)
    if not keys:
        return ok("keys", "no keys yet; they are created on first use")
    for key in keys:
        if sys.platform != "win32" and key.stat().st_mode & OTHERS:
            return fail("keys", f"{key} is readable by other users", f"chmod 600 {key}")
    return ok("keys", ", ".join(f"{key.name} is {_private(key)}" for key in keys))


def _key_files(settings: Settings) -> list[Path]:
    """Every key and every token of a home."""
    files = [*settings.keys.glob("*.*"), *(settings.home / token for token in TokenName)]
    return sorted(file for file in files if file.suffix not in {PUBLIC, ".lock"} and file.exists())


async def _signing(settings: Settings) -> list[HealthCheck]:
    """When the last checkpoint was signed, and how far the witnesses are."""
    try:
        async with open_reader(settings) as look:
            last = await look.checkpoints.last()
        checkpoint = last.checkpoint if last is not None else None
        signed = checkpoint.at if checkpoint is not None else None
        checked = checkpoint_check(None, unsigned=0, signed=signed, now=system_clock())
    except HandrailError as error:
        return [failed_with("witnesses", error)]
    # No witness is a choice, not a fault: only doctor says it, which a person asks.
    none = warn("witnesses", NO_WITNESS, "name one in [witnesses] of config.toml: docs/guides/witnesses.md")
    unsigned = ok("witnesses", "nothing is signed yet")
    return [checked, *(await witness_checks(settings, checkpoint) or [unsigned if checkpoint is None else none])]


async def witness_checks(settings: Settings, last: Checkpoint | None) -> list[HealthCheck]:
    """How far each witness is that the settings name, and how old its last copy is."""
    try:
        states = await witness_states(settings)
    except HandrailError as error:
        return [failed_with("witnesses", error)]
    return [_witness(name, state, last) for name, state in states.items()] if last is not None else []


def _witness(name: str, state: CopyState, last: Checkpoint) -> HealthCheck:
    copied = (
        f"checkpoint {state.number} was copied at {instant_text(state.at)}" if state.at else "nothing was copied yet"
    )
    name, age_ms = f"witness {name}", max(0, system_clock() - state.at) if state.at else None
    if state.reason:
        words = f"{copied}; the last try failed: {state.reason}"
        return warn(name, words, "correct it; it is tried again", age_ms=age_ms)
    if state.digest != checkpoint_digest(last):
        words = f"{copied}; the newest is {last.number}"
        return warn(name, words, "sign and copy: handrail journal checkpoint", age_ms=age_ms)
    return ok(name, f"{copied}, {_age(age_ms or 0)} ago", age_ms=age_ms)


def backups_of(settings: Settings) -> HealthCheck:
    """How old the newest backup is, and whether it was ever restored and verified."""
    try:
        state = state_of(settings)
    except HandrailError as error:
        return fail("backups", str(error), error.hint)
    newest = state.newest
    age_ms = state.age_ms
    if newest is None or age_ms is None:
        if not settings.choices.store and not settings.journal.exists():
            return ok("backups", "there is nothing to back up yet")
        how = "`handrail db backup FOLDER`, or a schedule in [backup] of config.toml: docs/operations/backup.md"
        return warn("backups", "there is none: a lost disk loses everything", how)
    what = f"the newest is {_age(age_ms)} old, {newest.proof.value}"
    if newest.proof is BackupProof.BROKEN:
        return fail(
            "backups", f"{what}: {newest.reason}", "make another one: `handrail db backup FOLDER`", age_ms=age_ms
        )
    if state.is_overdue:
        return warn(
            "backups", f"{what}: that is too old", "make another one: `handrail db backup FOLDER`", age_ms=age_ms
        )
    if newest.proof is not BackupProof.VERIFIED:
        return warn("backups", what, f"`handrail db verify {newest.folder}`", age_ms=age_ms)
    return ok("backups", what, age_ms=age_ms)


def _age(passed_ms: int) -> str:
    hours = max(0, passed_ms) // 3_600_000
    return plural(hours // 24, "day") if hours >= 48 else plural(hours, "hour") if hours else "less than an hour"


def _trust(settings: Settings) -> HealthCheck:
    trust = settings.trust
    if trust.is_off:
        return warn("trust", off_words(trust), f"look at it, then run `{COMMAND}`")
    if trust.is_trusted and trust.decision is not None:
        return ok("trust", f"this project's files are trusted by {trust.decision.by}, {trust.decision.at}")
    return ok("trust", "nothing in this project's files needs trust")


def _approvals(settings: Settings) -> HealthCheck:
    """Whether somebody can answer approvals at all."""
    try:
        needs_passphrase = answer_rules(settings).passphrase
    except HandrailError as error:
        return fail("approvals", str(error), error.hint)
    if needs_passphrase and not passphrase_of(settings).is_set():
        what = "every answer needs a passphrase, and none is set: no answer counts"
        return fail("approvals", what, "set one at a terminal: handrail approvals passphrase")
    return ok("approvals", "every answer needs the passphrase" if needs_passphrase else "answers need no passphrase")


def _private(path: Path) -> str:
    # Windows has no such mode: files in a user's folder are private there.
    return "private" if sys.platform == "win32" else f"private ({stat.S_IMODE(path.stat().st_mode):04o})"


async def _clock(settings: Settings, started: tuple[float, float]) -> HealthCheck:
    wall, steady = clocks()
    jump_ms = int(((wall - started[0]) - (steady - started[1])) * 1_000)
    try:
        async with open_reader(settings) as look:
            latest = await look.ledger.latest(limit=1)
    except HandrailError as error:
        return warn("clock", f"can't compare it with the journal: {error}", error.hint)
    return clock_check(now=system_clock(), jump_ms=jump_ms, last_event=latest[-1].at if latest else None)


async def _servers(settings: Settings) -> list[HealthCheck]:
    """The tool servers of this project that are not called for a while, because they failed; from the journal."""
    try:
        names = toolbox_of(settings).server_names()
        async with open_reader(settings) as look:
            known = await breakers_of(look.store, names, project=look.project.id)
    except HandrailError:
        return []  # the checks of store and tools say why
    return [server_check(one) for one in known.values() if one.status is not BreakerStatus.CLOSED]


async def _channels(settings: Settings) -> list[HealthCheck]:
    """The channels that are notified, if there are any."""
    if TABLE not in settings.home_tables:
        return []
    try:
        async with open_reader(settings) as look:
            return await channel_checks(settings, look.store)
    except HandrailError as error:
        return [failed_with("channels", error)]


async def channel_checks(settings: Settings, store: WholeStore) -> list[HealthCheck]:
    """How each channel is, if it was served already."""
    found = await channels_of(settings, store.outbox())
    return [_channel(one) for one in found if one.status is not ChannelStatus.UNUSED]


def _channel(one: ChannelView) -> HealthCheck:
    if one.status is ChannelStatus.DISABLED:
        return ok(f"channel {one.name}", f"disabled by {one.disabled_by}: {one.reason}")
    failing_ms = max(0, system_clock() - instant_from(one.failing_since)) if one.failing_since else None
    return channel_check(one.name, dead=one.dead, waiting=one.waiting, failing_ms=failing_ms, why=one.error)


def _tools(settings: Settings) -> Iterator[HealthCheck]:
    try:
        toolbox = toolbox_of(settings)
        count, broken = len(toolbox.specs()), toolbox.broken
    except HandrailError as error:
        yield fail("tools", str(error), error.hint)
        return
    yield ok("tools", f"plans can call {plural(count, 'tool')}")
    for name, reason in broken.items():
        yield warn(f"tools: {name}", f"the plugin can't be used: {reason}", "fix or uninstall its package")


async def _sandbox(settings: Settings) -> HealthCheck:
    """Whether the commands of checks can run: by the same trial that they go through."""
    try:
        flaw = await sandbox_of(settings).trial()
    except HandrailError as error:
        return fail("sandbox", str(error), error.hint)
    if flaw:
        return warn("sandbox", f"checks and plans that run commands are off: {flaw}", WITHOUT_SANDBOX)
    is_off = settings.home_tables.get("checks", {}).get("sandbox") == "off"
    return ok("sandbox", SANDBOX_OFF if is_off else "commands are confined: a trial could not escape")


def _cache(folder: Path) -> HealthCheck:
    files = [file for file in folder.rglob("*") if file.is_file()][:CACHE_FILES_MAX] if folder.is_dir() else []
    size = sum(file.stat().st_size for file in files)
    words = f"{plural(len(files), 'snapshot')}, {size / 1e6:.1f} MB"
    if size > CACHE_BYTES_WARN or len(files) == CACHE_FILES_MAX:
        return warn("cache", words, f"remove {folder}; it is created again")
    return ok("cache", words)
