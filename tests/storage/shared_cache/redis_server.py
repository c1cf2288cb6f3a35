"""A real Redis or Valkey for tests, on a socket of its own: no port, nothing on the disk."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from interfaces.shell import until
from outside.debian import redis


@contextmanager
def redis_server(folder: Path) -> Iterator[str]:
    """Its address, until the block ends."""
    program, environment = redis()
    socket = folder / "redis.sock"
    options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--dir", str(folder)]
    server = subprocess.Popen(
        [str(program), *options], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: socket.exists() or server.poll() is not None)
        assert server.poll() is None
        yield f"unix://{socket}"
    finally:
        server.terminate()
        server.wait(30)
