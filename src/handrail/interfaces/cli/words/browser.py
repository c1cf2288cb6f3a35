"""The console in a browser: asks the running server for a one-time link, and opens it."""

from __future__ import annotations

import os
import sys
import urllib.error
import webbrowser
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from handrail.domain.errors import Conflict, HandrailError, Unavailable
from handrail.domain.project import Project
from handrail.domain.secrets.key_files import TokenName
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.web.own_server import ask_server
from handrail.interfaces.web.token_file import open_token

ASK_S: Final = 10.0
ANSWER_MAX: Final = 20_000
RESTART: Final = "stop that server, then run `handrail open` again"


class Link(Struct, frozen=True):
    """A one-time link to the console, and the project that it opens on."""

    url: str
    project: Project
    open: int
    """How many projects are open in the server."""
    changed: bool = False
    """Whether the project's settings have changed since the server read them."""


class _Refusal(Struct, frozen=True):
    """What we read of problem details."""

    detail: str
    hint: str = ""


def fresh_link(home: Path, url: str, folder: Path) -> Link:
    """A one-time link to the console of a running server of this home; it opens the project in the folder first."""
    key, _ = open_token(home, TokenName.CONSOLE)
    wanted = msgspec.json.encode({"project": str(folder)})
    try:
        with ask_server(f"{url}/api/v1/ticket", key, within_s=ASK_S, content=wanted) as answer:
            # Strictly: a server of an older version would ignore the folder, and give a link to another project.
            return msgspec.json.decode(answer.read(ANSWER_MAX), type=Link)
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(url, error.read(ANSWER_MAX)) from error
    except (OSError, msgspec.MsgspecError) as error:
        raise Unavailable(f"the server at {url} gives no link: {error}", hint=RESTART) from error


def _refused(url: str, answer: bytes) -> HandrailError:
    try:
        why = msgspec.json.decode(answer, type=_Refusal)
    except msgspec.MsgspecError:
        return Unavailable(f"the server at {url} gives no link", hint=RESTART)
    return Conflict(f"the server at {url} does not open this project: {why.detail}", hint=why.hint or RESTART)


def to_page(link: str, page: str) -> str:
    """The link, to a page of the console, or to that of a run."""
    path = page if page.startswith("/") else f"/runs/{page}"
    return f"{link}&to={quote(path)}" if page else link


def show_in_browser(link: str) -> None:
    """Open a link where there is a desktop; at a terminal it is printed, too."""
    has_desktop = sys.platform in {"darwin", "win32"} or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    is_open = has_desktop and webbrowser.open(link)
    if not is_open or sys.stderr.isatty():
        say(f"open {link}", err=True)
