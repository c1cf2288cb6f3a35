"""The place where `handrail serve` listens: one address and port, bound before anything else is opened.

Who may come in there is the guard's business."""

from __future__ import annotations

import errno
import ipaddress
import socket
import sys
from dataclasses import dataclass
from typing import Final

from handrail.domain.errors import Forbidden, Invalid, Unavailable

BACKLOG: Final = 128
LOCALHOST: Final = "localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An address of this machine, as asked for and as found."""

    asked: str
    family: socket.AddressFamily
    address: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return self._ip.is_loopback

    @property
    def is_everywhere(self) -> bool:
        """Whether it stands for every address that this machine has."""
        return self._ip.is_unspecified

    @property
    def names(self) -> tuple[str, ...]:
        """The names it goes by in URLs, the best first; beyond loopback others may be added by hand."""
        own = [] if self.is_everywhere else [_in_url(self.address)]
        if self.is_everywhere or self.address in {"127.0.0.1", "::1"}:
            own += ["127.0.0.1" if self._ip.version == 4 else "[::1]", LOCALHOST]
        if self.asked not in {self.address, LOCALHOST}:
            own.append(_in_url(self.asked.lower()))
        return tuple(dict.fromkeys(own))

    @property
    def url(self) -> str:
        """Where a client on this machine finds it."""
        return f"http://{self.names[0]}:{self.port}"

    @property
    def _ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        return ipaddress.ip_address(self.address.partition("%")[0])


def place_of(host: str, port: int) -> Place:
    """The place that a host's name or address means; Invalid if it means none. IPv4 wins where it means several."""
    try:
        found = socket.getaddrinfo(host or " ", port, type=socket.SOCK_STREAM)  # no name would mean any
    except (OSError, UnicodeError) as error:
        raise _not_ours(host, error) from error
    family, _, _, _, address = min(found, key=lambda one: one[0] is not socket.AF_INET)
    return Place(asked=host, family=family, address=str(address[0]), port=port)


def bound(place: Place) -> socket.socket:
    """A socket that listens at a place; Unavailable if another program does."""
    # TCP by its name: only then does asyncio switch the waiting for more to send off, which costs 40 ms an answer.
    listener = socket.socket(place.family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        _be_alone(listener)
        if place.family is socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((place.address, place.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _refused(place, error) from error
    return listener


def _be_alone(listener: socket.socket) -> None:
    if sys.platform == "win32":  # there, to reuse an address means to share it
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def _refused(place: Place, error: OSError) -> Exception:
    match error.errno:
        case errno.EADDRINUSE:
            hint = "stop the program that has it, or choose another with --port"
            return Unavailable(f"port {place.port} of {place.address} is in use", hint=hint)
        case errno.EACCES:
            return Forbidden(f"port {place.port} may not be used", hint="choose one above 1023 with --port")
        case errno.EADDRNOTAVAIL:
            return _not_ours(place.asked, error)
        case _:
            return Unavailable(f"port {place.port} of {place.address} can't be used: {error}")


def _not_ours(host: str, error: Exception) -> Invalid:
    return Invalid(f"{host!r} is no address of this machine: {error}", hint="use --host 127.0.0.1")


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address
