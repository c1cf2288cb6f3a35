"""pgbouncer for tests and benches: the machine's own, or Debian's, unpacked into build/pgbouncer with its libraries.

python tests/storage/postgres/pooler.py          fetch it now"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from outside.debian import NotFetched, unpacked
from storage.postgres import server

BUILD = Path(__file__).parents[3] / "build" / "pgbouncer"
PACKAGES = ("pgbouncer", "libc-ares2", "libevent-2.1-7")
"""The program, and those of its libraries that a machine without it does not have."""
PORT = 6432


class Pooler(NamedTuple):
    """The program, and the variables that it has to be started with."""

    program: str
    variables: Mapping[str, str]


@functools.cache
def found() -> Pooler | NotFetched:
    """The pooler, or why there is none; tried once in a process."""
    own = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if own:
        return Pooler(own, {})
    try:
        root = unpacked(BUILD, PACKAGES)
    except NotFetched as error:
        return error
    libraries = [str(one) for one in sorted(root.glob("usr/lib/*-linux-*"))]
    pooler = Pooler(str(root / "usr" / "sbin" / "pgbouncer"), {"LD_LIBRARY_PATH": ":".join(libraries)})
    tried = subprocess.run(
        [pooler.program, "--version"], env=dict(pooler.variables), capture_output=True, text=True, check=False
    )
    return pooler if tried.returncode == 0 else NotFetched(f"Debian's pgbouncer fails: {tried.stderr.strip()}")


@contextmanager
def pooling(pooler: Pooler, url: str, *, connections: int) -> Iterator[str]:
    """The address of a database behind a pooler in transaction mode that has only so many connections to it."""
    database, sockets = url.split("@/")[1].split("?host=")
    folder = Path(sockets).parent / f"pooler-{os.getpid()}"
    folder.mkdir()
    program, settings = Path(pooler.program), folder / "pgbouncer.ini"
    account: dict[str, Any] = {}
    variables = dict(pooler.variables)
    if os.geteuid() == 0:  # it refuses to run as root, and a plain user may not be able to read build/
        account = {"user": server.PLAIN_USER, "group": "nogroup", "extra_groups": []}
        if variables:
            copied = folder / "programs"
            shutil.copytree(BUILD / "root" / "usr", copied, symlinks=True)
            program = copied / "sbin" / "pgbouncer"
            variables = {"LD_LIBRARY_PATH": ":".join(str(one) for one in copied.glob("lib/*-linux-*"))}
    settings.write_text(
        f"""[databases]
{database} = host={sockets} user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
listen_port = {PORT}
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
logfile = {folder / "log"}
"""
    )
    if account:
        for path in (folder, settings):
            shutil.chown(path, server.PLAIN_USER)
    try:
        command = [str(program), "-q", str(settings)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=variables, **account) as process:
            try:
                deadline = time.monotonic() + 10
                while not (folder / f".s.PGSQL.{PORT}").exists():
                    log = folder / "log"
                    assert time.monotonic() < deadline, log.read_text() if log.exists() else "no log"
                    time.sleep(0.02)
                yield f"postgresql://postgres@/{database}?host={folder}&port={PORT}"
            finally:
                process.terminate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    one = found()
    if isinstance(one, NotFetched):
        sys.exit(f"pgbouncer can't be tried: {one}")
    sys.stdout.write(f"{one.program}\n")
