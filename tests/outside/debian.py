"""Programs of Debian for tests, unpacked into build/, unless the machine has its own: bubblewrap for the sandbox,
Prometheus and promtool for metrics and alert rules, Redis for the shared cache.

Nothing is installed and no root is needed. Where one can't be had or may not make namespaces, tests are left out, and
say so.

python tests/outside/debian.py          fetch them now"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from handrail.storage.file_lock import locked

BUILD = Path(__file__).parents[2] / "build" / "debian"
LEAST = (0, 8)
WAIT_S = 120.0
REQUIRED = "HANDRAIL_OUTSIDE"
"""Set it to `required`, and what can't be had fails instead of being left out."""


class NotFetched(Exception):
    """A program is not on this machine, now."""


def bubblewrap() -> Path:
    """A bubblewrap that works; the test is left out, or fails, where there is none."""
    return _or_left_out(_once(), "the sandbox")


def prometheus(program: str = "prometheus") -> Path:
    """A Prometheus, or its `promtool`; the test is left out, or fails, where there is none."""
    return _or_left_out(_prometheus_once(program), "Prometheus")


def redis() -> tuple[Path, dict[str, str]]:
    """A Redis or Valkey server, and the environment it needs; the test is left out, or fails, where there is none."""
    program = _or_left_out(_redis_once(), "the shared cache")
    inside = program.is_relative_to(BUILD.parent)
    folders = [str(one) for one in (program.parents[1] / "lib").glob("*-linux-gnu")] if inside else []
    return program, {**os.environ, **({"LD_LIBRARY_PATH": ":".join(folders)} if folders else {})}


def _or_left_out(found: Path | NotFetched, what: str) -> Path:
    if isinstance(found, Path):
        return found
    reason = f"{what} was not tried: {found}"
    if os.environ.get(REQUIRED) == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@functools.cache
def _once() -> Path | NotFetched:
    """Try it once in a process, also if it fails."""
    try:
        found = fetch()
        _require_namespaces(found)
    except NotFetched as error:
        return error
    return found


@functools.cache
def _prometheus_once(program: str) -> Path | NotFetched:
    try:
        return fetch_prometheus(program)
    except NotFetched as error:
        return error


@functools.cache
def _redis_once() -> Path | NotFetched:
    try:
        return fetch_redis()
    except NotFetched as error:
        return error


def fetch_redis() -> Path:
    """The machine's own Redis or Valkey, else Debian's Redis."""
    own = shutil.which("valkey-server") or shutil.which("redis-server")
    if own:
        return Path(own)
    if not sys.platform.startswith("linux"):
        raise NotFetched("it needs Linux")
    packages = ["redis-server", "redis-tools", "liblzf1", "libjemalloc2"]
    return unpacked(BUILD.parent / "redis", packages) / "usr" / "bin" / "redis-server"


def fetch_prometheus(program: str) -> Path:
    """The machine's own Prometheus or promtool, else Debian's."""
    if not sys.platform.startswith("linux"):
        raise NotFetched("it needs Linux")
    own = shutil.which(program)
    return Path(own) if own else unpacked(BUILD.parent / "prometheus", ["prometheus"]) / "usr" / "bin" / program


def fetch() -> Path:
    """The machine's own bubblewrap if it is new enough, else Debian's."""
    if not sys.platform.startswith("linux"):
        raise NotFetched("it needs Linux")
    own = shutil.which("bwrap")
    if own and _version(own) >= LEAST:
        return Path(own)
    program = unpacked(BUILD, ["bubblewrap"]) / "usr" / "bin" / "bwrap"
    if _version(str(program)) < LEAST:
        raise NotFetched("the archive's bubblewrap is older than 0.8")
    return program


def unpacked(build: Path, packages: Sequence[str]) -> Path:
    """The folder with the files of these packages; they are downloaded once."""
    root = build / "root"
    if not root.exists():
        build.mkdir(parents=True, exist_ok=True)
        with locked(build / "lock", wait_s=WAIT_S):
            if not root.exists():
                _unpack(build, _downloaded(build, packages))
    return root


def _downloaded(build: Path, packages: Sequence[str]) -> list[Path]:
    folder = build / "package"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    private = ["-o", f"Dir::State::lists={build / 'lists'}", "-o", f"Dir::Cache={build / 'cache'}"]
    sandbox = ["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []
    try:
        _do(["apt-get", *sandbox, "download", *packages], folder)
    except NotFetched:  # no lists of packages, or old ones: fetch them to a place of our own
        for name in ("lists/partial", "cache/archives/partial"):
            (build / name).mkdir(parents=True, exist_ok=True)
        _do(["apt-get", *sandbox, *private, "update"], folder)
        _do(["apt-get", *sandbox, *private, "download", *packages], folder)
    return sorted(folder.glob("*.deb"))


def _unpack(build: Path, packages: Sequence[Path]) -> None:
    part = build / "part"
    shutil.rmtree(part, ignore_errors=True)
    for package in packages:
        _do(["dpkg", "-x", str(package), str(part)], build)
    part.rename(build / "root")


def _version(program: str) -> tuple[int, ...]:
    found = re.search(r"(\d+)\.(\d+)", _do([program, "--version"], Path("/")))
    return (int(found[1]), int(found[2])) if found else (0,)


def _require_namespaces(program: Path) -> None:
    options = ["--unshare-all", "--unshare-user", "--disable-userns", "--ro-bind", "/", "/", "--proc", "/proc"]
    _do([str(program), *options, "true"], Path("/"))


def _do(command: Sequence[str], folder: Path) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise NotFetched(f"{command[0]} can't be started: {error.strerror}") from error
    if done.returncode:
        raise NotFetched(f"{Path(command[0]).name} failed: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{fetch()}\n{fetch_prometheus('prometheus')}\n{fetch_redis()}\n")
    except NotFetched as error:
        sys.exit(f"not everything can be tried: {error}")
