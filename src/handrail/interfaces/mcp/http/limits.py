"""Limits of the HTTP edge: how much, how many and how long. Values only; who holds them says so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a client may take of this process."""

    body_bytes: int = 4 * 1_024 * 1_024
    """The largest body of a request."""
    header_bytes: int = 32 * 1_024
    """The largest head of a request: names and values together."""
    header_s: float = 10.0
    """How long a client may take to send the head of a request, however steadily it sends."""
    body_silence_s: float = 30.0
    """How long a client may be silent in the middle of a body."""
    body_s: float = 300.0
    """How long a whole body may take, however steadily it comes."""
    rest_s: float = 5.0
    """How long the rest of a body is still read when the answer is given already."""
    keep_alive_s: int = 15
    """How long a connection may rest between two requests."""
    write_s: float = 30.0
    """How long a client may leave its answer unread."""
    connections: int = 500
    """How many connections are served at once; most systems allow a process about 1,000 open files."""
    sessions: int = 1_000
    """How many sessions of the handshake era are open at once."""
    session_idle_s: float = 30 * 60.0
    """After how long without a request a session is closed."""
    ready_s: float = 5.0
    """How long the store may take to say that it can be read."""
    shutdown_s: float = 3.0
    """How long calls that are under way may take when the process is asked to end."""
