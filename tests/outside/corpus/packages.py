"""Real packages that the gates are tried with, installed once into build/corpus by the locks in locks/, by hash.

Sources of Python's registry with their own tests, and of Node's with four test runners. Go's own library is the Go
package, libwcwidth in the sources of wcwidth the one in C.

python -m outside.corpus.packages        install now (in tests/; nodejs.py does so)"""

from __future__ import annotations

import functools
import shutil
import sys
from pathlib import Path

from outside.nodejs import TESTS, NotInstalled, do, filled, left_out
from outside.nodejs import install as install_node

BUILD = TESTS.parent / "build" / "corpus"
LOCKS = Path(__file__).parent / "locks"
NPM = ("package.json", "package-lock.json", ".npmrc")
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def packages() -> Path:
    """The folder with `sources`, `site` and `node_modules`; the test is left out, or fails, where there is none."""
    found = _once()
    if isinstance(found, NotInstalled):
        left_out("the corpus", found)
    return found


@functools.cache
def _once() -> Path | NotInstalled:
    try:
        return install()
    except NotInstalled as error:
        return error


def install() -> Path:
    """Install what the locks name, unless it is there."""
    return filled(BUILD, [LOCKS / name for name in ("sources.lock", "packages.lock", *NPM)], _fill)


def _fill(folder: Path) -> None:
    for name in NPM:
        shutil.copy(LOCKS / name, folder / name)
    lines = (LOCKS / "sources.lock").read_text(encoding="utf-8").splitlines()
    names = ",".join(line.partition("==")[0] for line in lines)
    sources = ["download", "--no-deps", "--require-hashes", "--no-binary", names, "-d", "archives"]
    do([*PIP, *sources, "-r", str(LOCKS / "sources.lock")], folder)
    for archive in sorted((folder / "archives").glob("*.tar.gz")):
        shutil.unpack_archive(archive, folder / "sources")
    shutil.rmtree(folder / "archives")
    wheels = ["install", "--no-deps", "--no-compile", "--require-hashes", "--target", "site"]
    do([*PIP, *wheels, "-r", str(LOCKS / "packages.lock")], folder)
    # Not `ci`: that wants binaries of every platform in the lock, and not every registry has them all.
    do([*install_node().npm, "install", "--no-save", "--loglevel=error", "--cache", "cache"], folder)
    shutil.rmtree(folder / "cache")


if __name__ == "__main__":
    try:
        install()
    except NotInstalled as failed:
        sys.exit(f"the packages of the corpus are not installed: {failed}")
