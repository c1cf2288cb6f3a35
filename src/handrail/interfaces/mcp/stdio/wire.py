"""The wire: takes the protocol's two descriptors out of everybody else's reach.

From then on a print goes to stderr, and a child process reads nothing. It is so until the process ends."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple


class Wire(NamedTuple):
    """The descriptors on which the client is heard and answered; nobody else knows them."""

    reading: int
    writing: int


def claim_wire() -> Wire:
    """Move stdin and stdout to descriptors of their own."""
    for descriptor in (0, 1, 2):
        _fill(descriptor)
    wire = Wire(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    for descriptor in wire:
        _make_plain(descriptor)
    return wire


def _fill(descriptor: int) -> None:
    """Whoever starts us may have closed it, and then the next file that is opened would take its place."""
    try:
        os.fstat(descriptor)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)


def _make_plain(descriptor: int) -> None:
    """Bytes as they are, and calls that wait."""
    if sys.platform == "win32":
        import msvcrt  # only Windows has it

        msvcrt.setmode(descriptor, os.O_BINARY)
    else:
        os.set_blocking(descriptor, True)
