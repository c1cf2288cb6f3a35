"""The console in a browser: asks the running server for a one-time link, and opens it."""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path
from typing import Final

import msgspec

from handrail.domain.errors import Unavailable
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.web.token_file import CONSOLE_FILE, open_token

ASK_S: Final = 10.0
ANSWER_MAX: Final = 10_000


def fresh_link(home: Path, url: str) -> str:
    """A one-time link to the console of a running server of this home."""
    key, _ = open_token(home, CONSOLE_FILE)
    request = urllib.request.Request(  # noqa: S310 - our own address, from our own file
        f"{url}/api/v1/ticket",
        data=b"{}",
        method="POST",
        headers={"authorization": f"Bearer {key}", "content-type": "application/json"},
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy may see the key
    try:
        with direct.open(request, timeout=ASK_S) as answer:
            link: str = msgspec.json.decode(answer.read(ANSWER_MAX))["url"]
            return link
    except (OSError, msgspec.MsgspecError, LookupError) as error:
        raise Unavailable(
            f"the server at {url} gives no link: {error}", hint="stop it, then run `handrail serve --open`"
        ) from error


def show_in_browser(link: str) -> None:
    """Open a link where there is a desktop; at a terminal it is printed, too."""
    has_desktop = sys.platform in {"darwin", "win32"} or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    is_open = has_desktop and webbrowser.open(link)
    if not is_open or sys.stderr.isatty():
        say(f"open {link}", err=True)
