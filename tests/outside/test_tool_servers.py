"""The installer of Python's tool servers: exact, checked by hash, and honest where it can't be done."""

from __future__ import annotations

import re

import pytest

from outside import tool_servers
from outside.nodejs import REQUIRED, NotInstalled
from outside.tool_servers import HANDSHAKE, LOCKS, MODERN


@pytest.mark.parametrize(
    ("name", "sdk", "named"),
    [(MODERN, 2, ("mcp-server-git", "mcp-server-time")), (HANDSHAKE, 1, ("mcp-server-sqlite",))],
)
def test_a_lock_carries_hashes_and_no_addresses(name: str, sdk: int, named: tuple[str, ...]) -> None:
    lock = (LOCKS / f"{name}.lock").read_text(encoding="utf-8")
    assert "://" not in lock
    packages = re.findall(r"^([a-z0-9.-]+)==([0-9.]+)[^\n]*\\\n    --hash=sha256:", lock, re.MULTILINE)
    assert len(packages) == len(re.findall(r"^\S", lock, re.MULTILINE))
    assert dict(packages)["mcp"].startswith(f"{sdk}.")
    assert set(named) <= set(dict(packages))


def test_servers_that_cannot_be_installed_are_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_servers, "node_installed", lambda _: None)
    monkeypatch.setattr(tool_servers, "_once", lambda: NotInstalled("pip failed: no network"))
    monkeypatch.delenv(REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="not judged by tool servers: pip failed: no network"):
        tool_servers.tool_servers()
    monkeypatch.setenv(REQUIRED, "required")
    with pytest.raises(pytest.fail.Exception, match="not judged by tool servers"):
        tool_servers.tool_servers()
