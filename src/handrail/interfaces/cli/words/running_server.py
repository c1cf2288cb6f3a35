"""A server that runs already: says where it is, hands it the project of this command, and opens the console there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from handrail.assembly.opening import real_folder
from handrail.assembly.sole_server import RunningServer
from handrail.domain.plural import plural
from handrail.interfaces.cli.words.browser import Link, fresh_link, show_in_browser, to_page
from handrail.interfaces.cli.words.own_command import own_command
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.mcp.http.app import MCP_PATH
from handrail.interfaces.pictures.caption import plain
from handrail.settings import Settings


async def open_in(settings: Settings, running: RunningServer, *, page: str = "", as_json: bool) -> None:
    """Open the project of this command in the running server, and the console on it."""
    link = await asyncio.to_thread(fresh_link, settings.home, running.url, settings.project)
    url = to_page(link.url, page)
    if as_json:
        say(msgspec.json.encode({"url": url, "project": link.project.id}).decode())
        return
    _say_opened(link, running)
    show_in_browser(url)


async def show_running(
    settings: Settings, running: RunningServer, *, unused: Sequence[str], opens: bool, as_json: bool
) -> None:
    """Say where the running server is; with `opens`, open the project of this command there."""
    link = await asyncio.to_thread(fresh_link, settings.home, running.url, settings.project) if opens else None
    if as_json:
        say(msgspec.json.encode(_data(running, link, unused)).decode())
    else:
        say(f"already serving at {running.url} since {running.started}, in {plain(running.project)}", err=True)
    for option in unused:
        say(
            f"{option} is not used: this home has one server, and it runs already (process {running.pid}); "
            f"to use it, stop that server, then start it again with {option}",
            err=True,
        )
    if link is not None:
        _say_opened(link, running)
        show_in_browser(link.url)
    elif real_folder(settings.project) != real_folder(Path(running.project)):
        say(
            f"  `{own_command('open')}` opens this project in its console, too; "
            f"MCP there is for {plain(running.project)}",
            err=True,
        )


def _say_opened(link: Link, running: RunningServer) -> None:
    others = f", one of {plural(link.open, 'project')} that are open there" if link.open > 1 else ""
    say(f"opening {plain(link.project.name)} in the server at {running.url}{others}", err=True)
    if link.changed:
        say("  its settings have changed since the server read them: restart the server to use them", err=True)


def _data(running: RunningServer, link: Link | None, unused: Sequence[str]) -> dict[str, Any]:
    console = link.url if link is not None else f"{running.url}/"
    data: dict[str, Any] = {"url": running.url + MCP_PATH, "console": console, "pid": running.pid, "running": True}
    if link is not None:
        data["project"] = link.project.id
    if unused:
        data["unused"] = list(unused)
    return data
