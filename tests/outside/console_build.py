"""The console, and the page for the windows of clients, built from their source.

What ui/package-lock.json names is installed once into build/ui, checked by hash.
Node comes from nodejs.py. A build never writes into ui/: its source is copied beside the packages first.

python -m outside.console_build     build both into the package (in tests/; `make ui` does so)"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from outside.nodejs import TESTS, Node, NotInstalled, do, filled, install, left_out

ROOT = TESTS.parent
SOURCE = ROOT / "ui"
BUILT = ROOT / "src" / "handrail" / "interfaces" / "http" / "static"
APP = ROOT / "src" / "handrail" / "interfaces" / "mcp" / "surface" / "views" / "app.html"
OPENAPI = ROOT / "src" / "handrail" / "interfaces" / "http" / "openapi.json"
PACKAGES = ROOT / "build" / "ui"
CONTRACT = Path("src", "core", "contract.ts")
LOCKED = ("package.json", "package-lock.json", ".npmrc")


class Built(NamedTuple):
    """What a build gives besides the console's files: the contract, and the page for the windows of clients."""

    contract: str
    app: str


def built(into: Path) -> Built:
    """Build the console anew into a folder; the test is left out, or fails, where Node can't be had."""
    tools = _once()
    if isinstance(tools, NotInstalled):
        left_out("a build of the console", tools)
    return build(tools, into)


@functools.cache
def _once() -> tuple[Node, Path] | NotInstalled:
    try:
        return installed()
    except NotInstalled as error:
        return error


def installed() -> tuple[Node, Path]:
    """Node, and the folder with what the console is built with."""
    node = install()
    return node, filled(PACKAGES, [SOURCE / name for name in LOCKED], lambda folder: _fill(node, folder))


def _fill(node: Node, folder: Path) -> None:
    for name in LOCKED:
        shutil.copy(SOURCE / name, folder / name)
    do([*node.npm, "ci", "--loglevel=error", "--cache", "cache"], folder)
    shutil.rmtree(folder / "cache")


def build(tools: tuple[Node, Path], into: Path) -> Built:
    """Write the contract anew from the API's document, check the types, and build both; the console into a folder."""
    node, packages = tools
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "ui"
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("node_modules"))
        (source / "node_modules").symlink_to(packages / "node_modules", target_is_directory=True)
        run = [str(node.program), "--no-warnings"]
        _do([*run, "types.mjs", str(OPENAPI)], source)
        _do([*run, "node_modules/typescript/bin/tsc", "--noEmit"], source)
        _do([*run, "node_modules/vite/bin/vite.js", "build", "--logLevel", "error", "--outDir", str(into)], source)
        page = ["build", "--config", "vite.app.config.ts", "--logLevel", "error", "--outDir", "built-app"]
        _do([*run, "node_modules/vite/bin/vite.js", *page], source)
        return Built(*((source / name).read_text(encoding="utf-8") for name in (CONTRACT, "built-app/app.html")))


def _do(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(command[2:4])} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    try:
        made = build(installed(), BUILT)
        (SOURCE / CONTRACT).write_text(made.contract, encoding="utf-8")
        APP.write_text(made.app, encoding="utf-8")
    except NotInstalled as reason:
        sys.exit(f"the console was not built: {reason}")
