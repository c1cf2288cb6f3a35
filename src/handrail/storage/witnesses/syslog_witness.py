"""Syslog as witness: one short line for each checkpoint, with its digest, to the local socket or by UDP to a host.

UDP has no acknowledgement: that a line was sent does not mean that it was kept. The copy to compare with is the log
file that syslog writes."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from handrail.domain.errors import Unavailable
from handrail.domain.instant import instant_text
from handrail.domain.journal.checkpoint import SealedCheckpoint
from handrail.domain.journal.witnessed import short_line

PRIORITY: Final = 16 * 8 + 6
"""Facility local0, severity informational."""
LOCAL_SOCKETS: Final = ("/dev/log", "/var/run/syslog")
SEND_S_MAX: Final = 5.0


@dataclass(frozen=True)
class SyslogWitness:
    """The syslog of this machine, or of a host."""

    name: str
    host: str = ""
    """Empty: the local socket."""
    port: int = 514
    local: Sequence[str] = LOCAL_SOCKETS

    async def copy(self, sealed: Sequence[SealedCheckpoint]) -> None:
        """Send a line for each checkpoint."""
        await asyncio.to_thread(self._copy, sealed)

    def _copy(self, sealed: Sequence[SealedCheckpoint]) -> None:
        try:
            with self._socket() as connection:
                for one in sealed:
                    connection.send(self._message(one))
        except OSError as error:
            raise Unavailable(
                f"syslog can't be reached: {error}", hint="check that it runs, and its address"
            ) from error

    def _socket(self) -> socket.socket:
        if self.host:
            kind, _, _, _, address = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_DGRAM)[0]
            return _connected(socket.socket(kind, socket.SOCK_DGRAM), address)
        found = next((path for path in self.local if Path(path).exists()), None)
        if found is None or not hasattr(socket, "AF_UNIX"):
            raise Unavailable("this machine has no syslog socket", hint="name a host: syslog://host:514")
        return _connected(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), found)

    def _message(self, sealed: SealedCheckpoint) -> bytes:
        text = short_line(sealed)
        if not self.host:
            return f"<{PRIORITY}>handrail[{os.getpid()}]: ".encode() + text
        at = instant_text(sealed.checkpoint.at)
        return f"<{PRIORITY}>1 {at} {socket.gethostname()} handrail {os.getpid()} checkpoint - ".encode() + text


def _connected(connection: socket.socket, address: object) -> socket.socket:
    try:
        connection.settimeout(SEND_S_MAX)
        connection.connect(address)  # type: ignore[arg-type]  # its form depends on the family
    except BaseException:
        connection.close()
        raise
    return connection
