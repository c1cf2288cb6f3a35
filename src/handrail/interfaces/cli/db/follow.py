"""`handrail db follow`: a second home that is at most some seconds behind."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

import click

from handrail.assembly.backups.follow import following, verify_copy
from handrail.domain.definition.duration import duration_ms
from handrail.domain.errors import HandrailError, IntegrityBroken, Unavailable
from handrail.domain.plural import plural
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.run.execution import Stopped, first_of, stoppable
from handrail.interfaces.cli.words.answer import answer
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.settings import Settings

EVERY_MS_MIN: Final = 100


def _every(_: click.Context, __: click.Parameter, text: str) -> int:
    try:
        return max(EVERY_MS_MIN, duration_ms(text))
    except HandrailError as error:
        raise click.BadParameter(f"{error}; {error.hint}") from error


@click.command()
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--every", default="2s", show_default=True, callback=_every, help="How often to copy what is new.")
@click.option("--once", is_flag=True, help="Copy what is new, verify all of the copy, and end.")
@click.option("--with-keys", is_flag=True, help="Copy the keys, too, so that the copy can take over at once.")
@json_option
@click.pass_context
@reports_errors
async def follow(ctx: click.Context, target: Path, every: int, once: bool, with_keys: bool, as_json: bool) -> None:
    """Keep a copy of this home in the folder TARGET, at most --every behind, until stopped.

    Each new event has to follow the chain before it is written; the whole copy is verified at the start, and with
    --once. TARGET is a new folder, or one that follows this home already."""
    settings = settings_of(ctx)
    if once:
        events = await _once(settings, target, with_keys=with_keys)
        text = f"{target} has all {plural(events, 'event')}, verified"
        answer({"target": str(target), "events": events}, as_json=as_json, as_text=lambda: say(text))
        return
    with stoppable() as stop:
        task = asyncio.ensure_future(_follow(settings, target, every / 1_000, with_keys=with_keys))
        try:
            await first_of(task, stop)
        except Stopped:
            say("stopped: the copy stays as it is", err=True)
        finally:
            task.cancel()
            await asyncio.wait({task})


async def _once(settings: Settings, target: Path, *, with_keys: bool) -> int:
    with following(settings, target, with_keys=with_keys) as follower:
        await follower.step()
        return await verify_copy(target)


async def _follow(settings: Settings, target: Path, every_s: float, *, with_keys: bool) -> None:
    with following(settings, target, with_keys=with_keys) as follower:
        await follower.step()
        events = await verify_copy(target)
        say(f"{target} has all {plural(events, 'event')}, verified; Ctrl-C stops", err=True)
        is_behind = False
        while True:
            started = time.monotonic()
            try:
                await follower.step()
                if is_behind:
                    say("the copy is up to date again", err=True)
                is_behind = False
            except IntegrityBroken:
                raise
            except Unavailable as error:  # the disk of one of the two may be back in a moment
                if not is_behind:
                    say(f"the copy falls behind: {error}", err=True, fg="red")
                is_behind = True
            await asyncio.sleep(max(0.0, every_s - (time.monotonic() - started)))
