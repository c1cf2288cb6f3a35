"""The link to a run's page in the console, while a server of this home is up.

A plain address: who follows it must be signed in to the console already, or signs in with `handrail open`."""

from __future__ import annotations

import asyncio
import re
from typing import Final
from urllib.parse import quote

from msgspec.structs import replace

from handrail.assembly.sole_server import running_server
from handrail.domain.errors import HandrailError
from handrail.interfaces.mcp.surface.caller import ToolReply
from handrail.settings import Settings

KEPT_S: Final = 5.0
"""How long one look at the server's file counts: a server starts and ends rarely, and calls are many."""
CONSOLE: Final = "console"

_plain = re.compile(r"https?://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?|https?://\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")
"""Only a host and a port: an address with anything else could carry a secret into the chats of agents."""


class ConsoleLink:
    """Knows where the console is; looks again after a few seconds."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._address = ""
        self._known_until_s = float("-inf")

    async def of(self, run: str) -> str:
        """The link to the page of a run; empty if no console is up."""
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._known_until_s:
            self._known_until_s = now_s + KEPT_S  # first: calls that come meanwhile use what was known before
            self._address = await asyncio.to_thread(self._look)
        return f"{self._address}/runs/{quote(run, safe='')}" if self._address else ""

    def _look(self) -> str:
        try:
            running = running_server(self._settings)
        except (
            HandrailError,
            OSError,
        ):  # it is just starting, or its lock can't be read: no call fails because of a link
            return ""
        return running.console if running is not None and _plain.fullmatch(running.console) else ""


def with_console(reply: ToolReply, link: str) -> ToolReply:
    """The answer with the link; the text leaves it out where the agent goes on by itself: it was said at the start."""
    if not link or reply.data is None:
        return reply
    is_known = "accepted" in reply.data and "step" in reply.data
    text = reply.text if is_known else f"{reply.text}\n{CONSOLE} {link}"
    return replace(reply, text=text, data={**reply.data, CONSOLE: link})
