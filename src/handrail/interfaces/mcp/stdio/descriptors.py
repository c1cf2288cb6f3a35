"""Moves stdin and stdout to private descriptors, so that only the protocol uses them.

From then on a print goes to stderr and a child process reads an empty stdin. This is never reversed."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple


class StdioDescriptors(NamedTuple):
    """The private descriptors for reading from the client and writing to it."""

    reading: int
    writing: int


def claim_stdio() -> StdioDescriptors:
    """Move stdin and stdout to private descriptors; 0 becomes empty, 1 becomes stderr."""
    for descriptor in (0, 1, 2):
        _fill(descriptor)
    stdio = StdioDescriptors(os.dup(0), os.dup(1))
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)  # one stray print between two messages would break the client's parser
    for descriptor in stdio:
        _make_binary_and_blocking(descriptor)
    return stdio


def _fill(descriptor: int) -> None:
    """Open a descriptor that the parent process closed; otherwise the next file we open would get its number."""
    try:
        os.fstat(descriptor)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)


def _make_binary_and_blocking(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt  # only Windows has it

        msvcrt.setmode(descriptor, os.O_BINARY)
    else:
        os.set_blocking(descriptor, True)
