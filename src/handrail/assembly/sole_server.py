"""One server a user: the server of a home holds a lock while it lives, and says in a file where it is.

The operating system releases the lock when the process dies, however it dies: a file that stays behind is harmless."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from handrail.domain.errors import Conflict
from handrail.domain.instant import instant_text
from handrail.engine.clock import system_clock
from handrail.foundation.atomic_file import write_whole
from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.settings import Settings
from handrail.storage.presence import ProcessPresence, is_alive

SERVER: Final = "server"
FILE: Final = "server.json"
FILE_BYTES_MAX: Final = 10_000

Announce: TypeAlias = Callable[[str, str], None]
"""Takes the address of the server, and of its console."""


class RunningServer(Struct, frozen=True, kw_only=True):
    """Where the server of a home is."""

    url: str
    pid: int
    started: str
    project: str
    console: str = ""
    """The address of its console; empty if it has none, because other machines can reach it."""


@contextmanager
def sole_server(settings: Settings) -> Iterator[Announce]:
    """Be the server of this home; the given function says where it is. Conflict if another process is."""
    presence = ProcessPresence.enter(settings.home / SERVER, SERVER)
    file = settings.home / FILE

    def announce(url: str, console: str) -> None:
        here = RunningServer(
            url=url,
            pid=os.getpid(),
            started=instant_text(system_clock()),
            project=str(settings.project),
            console=console,
        )
        write_whole(file, msgspec.json.encode(here))

    try:
        yield announce
    finally:
        file.unlink(missing_ok=True)
        presence.leave()


def running_server(settings: Settings) -> RunningServer | None:
    """The server of this home, if one lives; one that is just starting has no address yet."""
    if not is_alive(settings.home / SERVER, SERVER):
        return None
    try:
        return msgspec.json.decode(read_plain(settings.home / FILE, bytes_max=FILE_BYTES_MAX), type=RunningServer)
    except (FileNotFoundError, NotPlain, msgspec.MsgspecError) as error:
        raise Conflict("a server is just starting", hint="try again in a moment") from error
