"""The schedule of retention: `[retention]` in config.toml of HANDRAIL_HOME, kept by servers and workers while they are
up. Any number of processes on one home may keep it: a lock lets one of them work, and a file says when that was."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from handrail.assembly.retention.archives import rules_of
from handrail.assembly.retention.pruning import Pruned, prune
from handrail.assembly.stores import is_shared
from handrail.domain.definition.duration import duration_ms
from handrail.domain.errors import HandrailError
from handrail.domain.retention.rules import RetentionRules
from handrail.engine.clock import system_clock
from handrail.foundation.atomic_file import write_whole
from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.settings import Settings

FILE: Final = "pruned"
"""When the rules were applied last, in milliseconds since 1970."""
LOOK_S: Final = 60.0
RETRY_MS: Final = 600_000
ACTOR: Final = "handrail"

log = logging.getLogger(__name__)


@asynccontextmanager
async def keeping_retention(settings: Settings) -> AsyncIterator[None]:
    """Archive and expire in the background, as the settings say, until the block ends."""
    rules = rules_of(settings)
    if rules is None:
        yield
        return
    task = asyncio.ensure_future(_keep(settings, rules))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def prune_if_due(settings: Settings, rules: RetentionRules, *, now: int) -> Pruned | None:
    """Apply the rules, if it is time; None if not."""
    if not is_shared(settings) and not settings.journal.exists():
        return None
    last = _last(settings)
    # A clock that was set back must not stop it until it has caught up.
    if last is not None and 0 <= now - last < duration_ms(rules.every):
        return None
    done = await prune(settings, actor=ACTOR)
    await asyncio.to_thread(write_whole, settings.home / FILE, str(now).encode(), takes_turns=True)
    return done


async def _keep(settings: Settings, rules: RetentionRules) -> None:
    not_before = 0
    while True:
        now = system_clock()
        if now >= not_before:
            try:
                _report(await prune_if_due(settings, rules, now=now))
            except (HandrailError, OSError) as error:
                log.warning("old runs could not be archived: %s; what to do: %s", error, getattr(error, "hint", ""))
                not_before = now + RETRY_MS
        await asyncio.sleep(LOOK_S)


def _report(done: Pruned | None) -> None:
    if done is None:
        return
    if done.archived.runs:
        log.info("archived %d runs with %d events", done.archived.runs, done.archived.events)
    for left in done.archived.left_alone:
        log.warning("%s was not archived: %s", left.run, left.reason)
    for one in done.abandoned:
        log.info("%s is abandoned: %s%s", one.run, one.how, f" failed: {one.reason}" if one.reason else "")


def _last(settings: Settings) -> int | None:
    try:
        return int(read_plain(settings.home / FILE, bytes_max=100))
    except (OSError, NotPlain, ValueError):
        return None
