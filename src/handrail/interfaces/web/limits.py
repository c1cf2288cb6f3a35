"""Limits of the HTTP server: sizes, counts and times.

Values only; enforced in site.py, connection.py, and by who answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """How much a client may use."""

    body_bytes: int = 4 * 1_024 * 1_024
    """The largest request body."""
    header_bytes: int = 32 * 1_024
    """The largest size of all request headers: names and values together."""
    header_s: float = 10.0
    """How long a client may take to send all headers, even if it keeps sending."""
    body_silence_s: float = 30.0
    """How long a client may be silent in the middle of a body."""
    body_s: float = 300.0
    """How long a whole body may take, even if the client keeps sending."""
    rest_s: float = 5.0
    """How long the rest of a body is still read after the response is sent."""
    keep_alive_s: int = 15
    """How long a connection may be idle between two requests."""
    write_s: float = 30.0
    """How long a client may leave its response unread."""
    connections: int = 500
    """How many connections are served at once; most systems allow a process about 1,000 open files."""
    sessions: int = 1_000
    """How many sessions of the handshake era are open at once; then the one that was idle for the longest ends."""
    sessions_awake: int = 64
    """How many of them the SDK has, busy ones aside: it needs about 40 kB for each; one that sleeps needs 2 kB."""
    session_idle_s: float = 30 * 60.0
    """After how long without a request a session is closed."""
    refused_s: float = 2.0
    """The longest that the answer to a wrong token is held back, after several from one address."""
    refused_log_s: float = 60.0
    """How often wrong tokens are logged: one line with their number."""
    ready_s: float = 5.0
    """How long the store may take to answer the readiness check."""
    shutdown_s: float = 3.0
    """How long running calls may still take when the process shuts down."""
