"""`handrail cache show|warm|clear`: the caches of this home, level by level, and what they bring."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

import click
import msgspec

from handrail.assembly.caching.levels import cache_report, cleared
from handrail.assembly.caching.warming import Warmed, warmed
from handrail.assembly.sole_server import running_server
from handrail.domain.errors import HandrailError, Unavailable
from handrail.domain.instant import instant_text
from handrail.domain.metrics.cache_catalog import AGENT_ANSWERS, CACHES, SHARED_RESULTS, CacheLevel
from handrail.domain.plural import plural
from handrail.engine.measuring.cache_states import CacheReport, CacheState, Counts
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.pictures.caption import plain
from handrail.settings import Settings

CLEARABLE: Final = tuple(card.name for card in CACHES if card.level is not CacheLevel.MEMORY)
ON_DISK: Final = tuple(card.name for card in CACHES if card.level is CacheLevel.DISK)


@click.group()
def command() -> None:
    """Show, fill and empty the caches of this home; nothing is lost with them but time."""


@command.command()
@click.option("--at", "addresses", multiple=True, metavar="URL", help="Also ask a worker that has --metrics.")
@json_option
@click.pass_context
@reports_errors
async def show(ctx: click.Context, addresses: tuple[str, ...], as_json: bool) -> None:
    """Show every cache: its size, how often it had what was asked for, and what a hit saves.

    What is in memory is known of the running server, of workers that --at names, and of processes that have ended."""
    settings = settings_of(ctx)
    report = await cache_report(settings, await _running(settings, addresses))
    answer(msgspec.to_builtins(report), as_json=as_json, as_text=lambda: _print(report))


@command.command()
@click.option("--servers", is_flag=True, help="Also start all tool servers, and keep which tools they have.")
@json_option
@click.pass_context
@reports_errors
async def warm(ctx: click.Context, servers: bool, as_json: bool) -> None:
    """Fill the caches on disk that can be filled before anybody asks.

    These are the index of the library, the cards of installed rules, and the first answers of `handrail mcp`."""
    settings = settings_of(ctx)
    made = [*await warmed(settings, servers=servers), await _answers(settings)]
    answer(listing("caches", msgspec.to_builtins(made)), as_json=as_json, as_text=lambda: _print_warmed(made))


@command.command()
@click.argument("names", nargs=-1, type=click.Choice(CLEARABLE))
@json_option
@click.pass_context
@reports_errors
async def clear(ctx: click.Context, names: tuple[str, ...], as_json: bool) -> None:
    """Empty the caches NAMES; without names, all on disk, and not the shared one, which others use, too.

    What processes have in memory goes when they end."""
    removed = await cleared(settings_of(ctx), names or ON_DISK)
    data = listing("caches", [{"name": name, "removed": count} for name, count in removed.items()])
    answer(data, as_json=as_json, as_text=lambda: _print_cleared(removed))


async def _running(settings: Settings, addresses: tuple[str, ...]) -> Mapping[str, Counts]:
    """What running processes counted: those that are named must answer, the server of this home may."""
    # Late: its neighbours load the web server's library.
    from handrail.interfaces.metrics.scraped_caches import scraped

    found = {url: await asyncio.to_thread(scraped, settings.home, url) for url in addresses}
    try:
        server = running_server(settings)
        if server is not None and server.url not in found:
            found[server.url] = await asyncio.to_thread(scraped, settings.home, server.url)
    except HandrailError as error:
        say(f"the running server is left out: {plain(str(error))}", fg="yellow", err=True)
    return found


async def _answers(settings: Settings) -> Warmed:
    # Late: the SDK takes a third of a second to import.
    from handrail.interfaces.mcp.stdio.snapshot_making import make_snapshot

    started_s = time.perf_counter()
    count, problem = 0, ""
    try:
        count = await make_snapshot(settings)
    except (OSError, TimeoutError, Unavailable) as error:
        problem = str(error)
    took_ms = 1_000 * (time.perf_counter() - started_s)
    return Warmed(name=AGENT_ANSWERS.name, entries=count, took_ms=took_ms, problem=problem)


def _print(report: CacheReport) -> None:
    head = ("cache", "level", Column("entries", 1), "hit rate", "a hit saves", Column("keeps", 2))
    print_table(head, [_row(one) for one in report.caches])
    if report.shared is not None:
        speed = f"answers in {report.shared.get_ms:.2f} ms" if report.shared.get_ms is not None else "does not answer"
        say(f"shared cache at {plain(report.shared.address)}: {speed}")
    else:
        say(f"no cache is shared: {SHARED_RESULTS.name} is off until [cache] in config.toml names a server")
    sources = [f"the process at {plain(url)}, as of now" for url in report.asked]
    if report.ended_since is not None:
        sources.append(f"processes that have ended since {instant_text(report.ended_since)}")
    say(f"counted by {' and '.join(sources)}" if sources else "nothing was counted yet")
    say("processes that still run and can't be asked, such as agents' servers, are added when they end")


def _row(one: CacheState) -> tuple[str, ...]:
    size = "-" if one.entries is None else f"{one.entries:,}"
    if one.bytes:
        size += f" ({one.bytes / 1_000:,.1f} kB)"
    asked = one.hits + one.misses
    rate = "-" if one.hit_rate is None else f"{one.hit_rate:.0%} of {asked:,}"
    gain = "-" if one.gain_ms is None else f"{one.gain_ms:,.2f} ms"
    return (one.name, one.level.value, size, rate, gain, one.keeps)


def _print_warmed(made: list[Warmed]) -> None:
    rows: list[tuple[Any, ...]] = [
        (one.name, one.entries, f"{one.took_ms:,.0f} ms", plain(one.problem)) for one in made
    ]
    print_table(("cache", "entries", "took", ""), rows)


def _print_cleared(removed: Mapping[str, int]) -> None:
    for name, count in removed.items():
        say(f"{name}: removed {plural(count, 'entry', 'entries')}")
