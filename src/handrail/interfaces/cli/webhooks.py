"""`handrail webhooks`: the channels of [notify], what waits for them, and what could not be delivered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from handrail.assembly.notify.keeping import settings_of_notices
from handrail.assembly.notify.webhooks import channels_of, finish_rotation, rotate_secret, try_channel
from handrail.assembly.opening import open_reader, open_store
from handrail.domain.errors import Invalid, NotFound
from handrail.domain.plural import plural
from handrail.engine.clock import system_clock
from handrail.engine.notify.channel_view import ChannelStatus, ChannelView, MessageView, message_view
from handrail.engine.notify.control import Channels
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.own_command import advise
from handrail.interfaces.cli.words.reason import reason_option
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.cli.words.times import time_format, utc_option
from handrail.interfaces.pictures.caption import plain

SHOWN_MAX: Final = 1_000


@click.group()
def command() -> None:
    """Show the channels that are notified; test them, send again, disable them, change their keys.

    Channels of every kind are named in [notify] of config.toml in HANDRAIL_HOME; servers and workers serve them."""


@command.command("list")
@click.argument("channel", required=False)
@click.option("--dead", "is_dead", is_flag=True, help="List the dead letters, of all channels or of CHANNEL.")
@click.option("--waiting", "is_waiting", is_flag=True, help="List what waits to be sent.")
@utc_option
@json_option
@click.pass_context
@reports_errors
async def list_(
    ctx: click.Context, channel: str | None, is_dead: bool, is_waiting: bool, is_utc: bool, as_json: bool
) -> None:
    """List the channels: how each is, what waits for it, what is dead. With --dead or --waiting, list that."""
    if is_dead and is_waiting:
        raise Invalid("--dead and --waiting are two lists", hint="give one of them")
    settings = settings_of(ctx)
    async with open_reader(settings) as look:
        outbox = look.store.outbox()
        found = [one for one in await channels_of(settings, outbox) if channel in {None, one.name}]
        if channel is not None and not found:
            raise NotFound(f"there is no channel {channel!r}", hint="`handrail webhooks list` lists all")
        if is_dead or is_waiting:
            kept = [(one.name, await outbox.messages(one.name, is_dead=is_dead, limit=SHOWN_MAX)) for one in found]
            messages = [message_view(name, one) for name, some in kept for one in some]
            data = listing("notices", messages)
            answer(data, as_json=as_json, as_text=lambda: _print_messages(messages, is_utc=is_utc))
            return
    answer(listing("channels", found), as_json=as_json, as_text=lambda: _print_channels(found, is_utc=is_utc))


@command.command()
@click.argument("channel")
@click.argument("ids", nargs=-1)
@json_option
@click.pass_context
@reports_errors
async def resend(ctx: click.Context, channel: str, ids: tuple[str, ...], as_json: bool) -> None:
    """Send dead letters to CHANNEL again: those with these IDS, or all."""
    settings = settings_of(ctx)
    async with open_store(settings) as opened:
        channels = Channels(opened.store.outbox(), settings_of_notices(settings).channels)
        count = await channels.resend(channel, ids, actor=person())
    _require_found(count, ids)
    answer({"channel": channel, "resent": count}, as_json=as_json, as_text=lambda: say(f"{_dead(count)} sent again"))


@command.command()
@click.argument("channel")
@click.argument("ids", nargs=-1)
@json_option
@click.pass_context
@reports_errors
async def discard(ctx: click.Context, channel: str, ids: tuple[str, ...], as_json: bool) -> None:
    """Remove dead letters to CHANNEL: those with these IDS, or all. They are sent no more."""
    settings = settings_of(ctx)
    async with open_store(settings) as opened:
        channels = Channels(opened.store.outbox(), settings_of_notices(settings).channels)
        count = await channels.discard(channel, ids, actor=person())
    _require_found(count, ids)
    answer({"channel": channel, "discarded": count}, as_json=as_json, as_text=lambda: say(f"{_dead(count)} discarded"))


@command.command("test")
@click.argument("channel")
@json_option
@click.pass_context
@reports_errors
async def test_(ctx: click.Context, channel: str, as_json: bool) -> None:
    """Send a test to CHANNEL now, and say whether it has arrived. Exit code 8 if it has not."""
    settings = settings_of(ctx)
    async with open_reader(settings) as look:
        notice = await try_channel(settings, look.store, channel, actor=person())
    answer(
        {"channel": channel, "id": notice.id}, as_json=as_json, as_text=lambda: say(f"{channel} has taken {notice.id}")
    )


@command.command()
@click.argument("channel")
@reason_option
@json_option
@click.pass_context
@reports_errors
async def disable(ctx: click.Context, channel: str, reason: str, as_json: bool) -> None:
    """Send nothing to CHANNEL until it is enabled again, also after a restart. What happens meanwhile is not lost.

    A notice that is on its way at this moment may still arrive."""
    settings = settings_of(ctx)
    async with open_store(settings) as opened:
        channels = Channels(opened.store.outbox(), settings_of_notices(settings).channels)
        await channels.disable(channel, actor=person(), at=system_clock(), reason=reason)
    answer({"channel": channel, "status": "disabled"}, as_json=as_json, as_text=lambda: say(f"{channel} is disabled"))


@command.command()
@click.argument("channel")
@click.option("--skip", is_flag=True, help="Leave out what happened meanwhile, and what waited before.")
@json_option
@click.pass_context
@reports_errors
async def enable(ctx: click.Context, channel: str, skip: bool, as_json: bool) -> None:
    """Send to CHANNEL again, from where it stopped."""
    settings = settings_of(ctx)
    async with open_store(settings) as opened:
        channels = Channels(opened.store.outbox(), settings_of_notices(settings).channels)
        end = await opened.store.end() if skip else None
        await channels.enable(channel, actor=person(), end=end)
    answer({"channel": channel, "status": "enabled"}, as_json=as_json, as_text=lambda: say(f"{channel} is enabled"))


@command.command()
@click.argument("channel")
@click.option(
    "--ed25519", "is_ed25519", flag_value=True, default=None, help="Sign with a private key: receivers need no secret."
)
@click.option("--hmac", "is_ed25519", flag_value=False, help="Sign with a secret that the receiver has, too.")
@click.option("--at-once", is_flag=True, help="Let the present key sign no more from now on.")
@click.option("--finish", is_flag=True, help="End a rotation: remove the old key.")
@json_option
@click.pass_context
@reports_errors
async def rotate(
    ctx: click.Context, channel: str, is_ed25519: bool | None, at_once: bool, finish: bool, as_json: bool
) -> None:
    """Make a key for the webhook CHANNEL, or another one, and print what its receiver needs to verify.

    Until `--finish` both keys sign everything, so that no receiver misses anything while it learns the new one."""
    settings = settings_of(ctx)
    if finish:
        removed = finish_rotation(settings, channel, actor=person())
        answer({"channel": channel, "removed": removed}, as_json=as_json, as_text=lambda: say(f"removed {removed}"))
        return
    made = rotate_secret(settings, channel, actor=person(), is_ed25519=is_ed25519, at_once=at_once)
    answer(made, as_json=as_json, as_text=lambda: say(made.key))
    if made.old_until:
        advise(
            f"both keys sign now; when the receiver knows the new one: `handrail webhooks rotate {channel} --finish`"
        )


def _require_found(count: int, ids: Sequence[str]) -> None:
    if count < len(set(ids)):
        raise NotFound(
            f"{len(set(ids)) - count} of these are no dead letters of it; {_dead(count)} found",
            hint="`handrail webhooks list --dead` lists them",
        )


def _dead(count: int) -> str:
    return plural(count, "dead letter")


def _print_channels(found: Sequence[ChannelView], *, is_utc: bool) -> None:
    if not found:
        advise("no channels: name them in [notify] of config.toml in HANDRAIL_HOME (docs/operations/notify.md)")
        return
    shown = time_format(is_utc=is_utc)
    head = ("channel", Column("kind", 3), "state", "waiting", "dead", Column("sent", 2), Column("last sent", 1), "why")
    rows = [
        (
            one.name,
            one.kind or "-",
            one.status.value,
            one.waiting,
            one.dead,
            one.sent,
            shown.at(one.sent_at) if one.sent_at else "-",
            plain(_why(one)),
        )
        for one in found
    ]
    print_table(head, rows)


def _why(one: ChannelView) -> str:
    if one.status is ChannelStatus.DISABLED:
        return f"{one.disabled_by}: {one.reason}"
    return one.error or "-"


def _print_messages(found: Sequence[MessageView], *, is_utc: bool) -> None:
    if not found:
        advise("none")
        return
    shown = time_format(is_utc=is_utc)
    head = ("id", "channel", Column("when", 2), Column("at", 1), "tries", "notice", "why")
    print_table(
        head,
        [
            (one.id, one.channel, one.when, shown.at(one.at), one.attempts, plain(one.text), plain(one.error) or "-")
            for one in found
        ],
    )
