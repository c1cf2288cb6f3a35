"""Chromium for the tests of the console: the machine's own, or Debian's package where we may install it (as root).

Playwright drives it; its own browsers are never downloaded. Where there is no Chromium, tests are left out, and say so.

python -m outside.console.chromium      install now (in tests/; nodejs.py does so)"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from handrail.storage.file_lock import locked
from outside.nodejs import TESTS, NotInstalled, left_out

BUILD = TESTS.parent / "build" / "chromium"
PACKAGE = "chromium"
WAIT_S = 280.0
FLAGS = (
    "--no-sandbox",  # Chromium's own sandbox does not start as root; what it shows here is only ours
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> Path:
    """The program; the test is left out, or fails, where there is none."""
    found = _once()
    if isinstance(found, NotInstalled):
        left_out("Chromium", found)
    return found


@functools.cache
def _once() -> Path | NotInstalled:
    """Try it once in a process, also if it fails."""
    try:
        return install()
    except NotInstalled as error:
        return error


def install() -> Path:
    """The machine's own Chromium; if it has none, Debian's, installed by name."""
    if found := _found():
        return found
    _require_debian()
    BUILD.mkdir(parents=True, exist_ok=True)
    with locked(BUILD / "lock", wait_s=WAIT_S):
        if _found() is None:  # else another process was first
            _apt("update")
            _apt("install", "-y", "--no-install-recommends", PACKAGE)
    if found := _found():
        return found
    raise NotInstalled(f"Debian's package {PACKAGE} brought no program of that name")


def _found() -> Path | None:
    path = shutil.which(PACKAGE)
    return Path(path) if path else None


def _require_debian() -> None:
    if not sys.platform.startswith("linux") or platform.freedesktop_os_release().get("ID") != "debian":
        raise NotInstalled(f"there is no {PACKAGE} here; install it by hand")
    if os.geteuid() != 0:
        raise NotInstalled(f"there is no {PACKAGE} here; as root: apt-get install {PACKAGE}")


def _apt(*words: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(["apt-get", *words], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled(f"apt-get {words[0]} failed: {(done.stderr or done.stdout).strip()[-600:]}")


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{install()}\n")
    except NotInstalled as reason:
        sys.exit(f"the console is not tried in a browser: {reason}")
