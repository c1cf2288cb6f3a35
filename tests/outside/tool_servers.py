"""Real tool servers from the registries: Python's in environments of their own, Node's beside the other judges.

Python's are installed once into build/servers by the locks in servers/, checked by hash: git and time with an SDK that
speaks 2026-07-28, sqlite with one that still shakes hands. What they are used for is real_servers.py's matter.

python -m outside.tool_servers      install now (in tests/; nodejs.py does so)"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from outside.nodejs import TESTS, Node, NotInstalled, do, filled, left_out
from outside.nodejs import installed as node_installed

BUILD = TESTS.parent / "build" / "servers"
LOCKS = Path(__file__).parent / "servers"
MODERN, HANDSHAKE = "modern", "handshake"
NPM = "@modelcontextprotocol"


@dataclass(frozen=True)
class ToolServers:
    """How each real server is started."""

    folder: Path
    node: Node

    def git(self, repository: Path) -> list[str]:
        return [self._python(MODERN), "-m", "mcp_server_git", "--repository", str(repository)]

    def time(self) -> list[str]:
        return [self._python(MODERN), "-m", "mcp_server_time", "--local-timezone", "UTC"]

    def sqlite(self, database: Path) -> list[str]:
        start = "import mcp_server_sqlite; mcp_server_sqlite.main()"  # it has no module to run, only a script
        return [self._python(HANDSHAKE), "-c", start, "--db-path", str(database)]

    def filesystem(self, folder: Path) -> list[str]:
        return [*self.node.script(f"{NPM}/server-filesystem/dist/index.js"), str(folder)]

    def memory(self) -> list[str]:
        return self.node.script(f"{NPM}/server-memory/dist/index.js")

    def everything(self, transport: str = "stdio") -> list[str]:
        return [*self.node.script(f"{NPM}/server-everything/dist/index.js"), transport]

    def _python(self, environment: str) -> str:
        return str(_program(self.folder / environment))


def tool_servers() -> ToolServers:
    """All real servers; the test is left out, or fails, where they can't be had."""
    node = node_installed("tool servers")
    folder = _once() if shutil.which("git") else NotInstalled("there is no git here")
    if isinstance(folder, NotInstalled):
        left_out("tool servers", folder)
    return ToolServers(folder, node)


@functools.cache
def _once() -> Path | NotInstalled:
    try:
        return install()
    except NotInstalled as error:
        return error


def install() -> Path:
    """Install what the locks name, unless it is there."""
    return filled(BUILD, [LOCKS / f"{name}.lock" for name in (MODERN, HANDSHAKE)], _fill)


def _fill(folder: Path) -> None:
    for name in (MODERN, HANDSHAKE):
        do([sys.executable, "-m", "venv", "--without-pip", name], folder)
        pip = [sys.executable, "-m", "pip", "--python", str(_program(folder / name)), "install", "--quiet"]
        # The locks are whole; one of the servers asks for extras of the SDK, which pip would resolve again.
        whole = ["--disable-pip-version-check", "--no-deps", "--require-hashes", "-r", str(LOCKS / f"{name}.lock")]
        do([*pip, *whole], folder)
        do(
            [str(_program(folder / name)), "-m", "compileall", "-q", "lib" if sys.platform != "win32" else "Lib"],
            folder / name,
        )


def _program(environment: Path) -> Path:
    return environment / "Scripts" / "python.exe" if sys.platform == "win32" else environment / "bin" / "python"


def _main() -> None:
    try:
        install()
    except (NotInstalled, subprocess.SubprocessError) as error:
        sys.exit(f"the tool servers are not installed: {error}")


if __name__ == "__main__":
    _main()
