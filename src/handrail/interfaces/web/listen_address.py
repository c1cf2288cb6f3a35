"""The address and port on which `handrail serve` listens.

Which requests are allowed is checked in guard.py."""

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
class ListenAddress:
    """An address of this machine: the host that was asked for, and what it resolved to."""

    asked: str
    family: socket.AddressFamily
    address: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self._ip.is_loopback

    @property
    def is_wildcard(self) -> bool:
        """Whether it stands for every address of this machine, like 0.0.0.0."""
        return self._ip.is_unspecified

    @property
    def names(self) -> tuple[str, ...]:
        """Its host names in URLs, the best first. Names under which other machines know it come from --allow-host."""
        own = [] if self.is_wildcard else [_in_url(self.address)]
        if self.is_wildcard or self.address in {"127.0.0.1", "::1"}:
            own += ["127.0.0.1" if self._ip.version == 4 else "[::1]", LOCALHOST]
        if self.asked not in {self.address, LOCALHOST}:
            own.append(_in_url(self.asked.lower()))
        return tuple(dict.fromkeys(own))

    @property
    def url(self) -> str:
        """The URL for a client on this machine."""
        return f"http://{self.names[0]}:{self.port}"

    @property
    def _ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        return ipaddress.ip_address(self.address.partition("%")[0])


def resolve_address(host: str, port: int) -> ListenAddress:
    """Resolve a host name or address; raises Invalid if that fails. IPv4 is preferred if there are several."""
    try:
        # An empty host would mean every address; a blank one fails.
        found = socket.getaddrinfo(host or " ", port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise _not_local(host, error) from error
    family, _, _, _, address = min(found, key=lambda one: one[0] is not socket.AF_INET)
    return ListenAddress(asked=host, family=family, address=str(address[0]), port=port)


def listen_on(address: ListenAddress) -> socket.socket:
    """A socket that listens on this address; raises Unavailable if another program has the port."""
    # IPPROTO_TCP must be given: only then does asyncio set TCP_NODELAY, without which each answer takes 40 ms longer.
    listener = socket.socket(address.family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        _claim_port(listener)
        if address.family is socket.AF_INET6:  # else "::" would serve IPv4 too, which the guard has no names for
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address.address, address.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _bind_error(address, error) from error
    return listener


def _claim_port(listener: socket.socket) -> None:
    if sys.platform == "win32":  # on Windows SO_REUSEADDR would let another program share the port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def _bind_error(address: ListenAddress, error: OSError) -> Exception:
    match error.errno:
        case errno.EADDRINUSE:
            hint = "stop the program that uses it, or choose another with --port"
            return Unavailable(f"port {address.port} of {address.address} is in use", hint=hint)
        case errno.EACCES:
            return Forbidden(f"no permission to use port {address.port}", hint="choose one above 1023 with --port")
        case errno.EADDRNOTAVAIL:
            return _not_local(address.asked, error)
        case _:
            return Unavailable(f"port {address.port} of {address.address} can't be used: {error}")


def _not_local(host: str, error: Exception) -> Invalid:
    return Invalid(f"{host!r} is not an address of this machine: {error}", hint="use --host 127.0.0.1")


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address
