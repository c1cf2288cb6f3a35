"""Alerts as an owner has them, over a real store: what no event says, and a receiver that nothing waits for."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail.assembly.notify import keeping
from handrail.assembly.notify.keeping import keeping_notices
from handrail.engine.notify import channel_server
from handrail.settings import read_settings
from interfaces.cli.notify.webhook_receiver import Receiver, receiving
from interfaces.shell import PATIENCE_S, Shell

ASKS = """
id: asks
steps:
  - {id: go, approve: Go on?, expires: 30m}
"""
TELLS = """
import json, os, sys
given = json.load(sys.stdin)
folder = sys.argv[1]
with open(os.path.join(folder, given["id"] + ".part"), "w") as file:
    json.dump(given, file)
os.rename(file.name, os.path.join(folder, given["id"] + ".json"))
"""
RULES = """
[[notify.rules]]
when = "waiting"
longer_than = "1ms"
to = ["file"]

[[notify.rules]]
when = "approval_expires"
before = "1h"
to = ["file"]

[[notify.rules]]
when = "disk"
below = "999999999GB"
to = ["file"]

[[notify.rules]]
when = "journal_size"
above = "1B"
to = ["file"]

[[notify.rules]]
when = "backup_old"
to = ["file"]

[[notify.rules]]
when = "verify_failed"
to = ["file"]
"""


def served(shell: Shell, holds: Callable[[], Any]) -> None:
    """Serve the channels of a home until something is the case."""

    async def scene() -> None:
        settings = read_settings({"home": str(shell.home), "project": str(shell.folder)}, {})
        async with keeping_notices(settings), asyncio.timeout(PATIENCE_S):
            while not holds():
                await asyncio.sleep(0.05)

    asyncio.run(scene())


def test_what_no_event_says_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_server, "CONDITIONS_S", 0.1)
    shell, out = Shell(tmp_path), tmp_path / "out"
    out.mkdir()
    program = shell.write(TELLS, "tells.py")
    channel = f'[notify.channels.file]\nkind = "command"\nargv = {json.dumps([sys.executable, program, str(out)])}\n'
    shell.configure(channel + RULES)
    run = shell.json("run", "start", shell.write(ASKS), code=4)["run"]
    (shell.home / "verified.json").write_text('{"at": 5, "ok": false, "events": 3}')

    def told() -> dict[str, Any]:
        every = [json.loads(file.read_text()) for file in out.glob("*.json")]
        assert len({one["type"] for one in every}) == len(every), "each once"
        return {one["type"].removeprefix("handrail."): one for one in every}

    served(shell, lambda: len(told()) >= 6)
    served(shell, lambda: True)
    found = told()
    assert set(found) == {"waiting", "approval_expires", "disk", "journal_size", "backup_old", "verify_failed"}
    assert found["waiting"]["subject"] == run
    assert found["waiting"]["data"]["waits_for"] == "approval"
    assert "expires in 29 minutes" in found["approval_expires"]["data"]["text"]
    assert found["backup_old"]["data"]["text"] == "there is no backup"
    (listed,) = shell.json("webhooks", "list")["channels"]
    assert (listed["kind"], listed["status"], listed["sent"]) == ("command", "works", 6)


def test_a_receiver_that_hangs_keeps_no_run_and_no_other_channel_waiting(tmp_path: Path) -> None:
    may_answer = threading.Event()
    with receiving() as hanging, receiving() as quick:
        hanging.before = lambda: may_answer.wait(PATIENCE_S)
        shell = two_channels(tmp_path, hanging, quick)
        seen: list[str] = []

        def holds() -> bool:
            # Quick runs one after the other, all while the first receiver has not answered once.
            if len(seen) < 3:
                seen.append(shell_run(shell))
            elif not may_answer.is_set() and len({json.loads(body)["subject"] for _, body in quick.arrived}) == 3:
                assert hanging.arrived == []
                may_answer.set()
            return all(len({json.loads(body)["id"] for _, body in one.arrived}) == 6 for one in (hanging, quick))

        served(shell, holds)
        for receiver in (hanging, quick):
            kinds = [json.loads(body)["data"]["kind"] for _, body in receiver.arrived]
            assert kinds.count("run_completed") == 3
            for run in seen:
                numbers = [
                    data["n"] for _, body in receiver.arrived if (data := json.loads(body)["data"]).get("run") == run
                ]
                assert numbers == sorted(numbers)


def shell_run(shell: Shell) -> str:
    """A run from start to end, by a process of its own: this one serves."""
    with shell.process("run", "start", str(shell.folder / "plan.yaml"), "--json") as process:
        code, out, err = process.end()
    assert code == 0, err
    return str(json.loads(out)["run"])


def two_channels(folder: Path, first: Receiver, second: Receiver) -> Shell:
    shell = Shell(folder)
    shell.write("id: ship\nsteps:\n  - {id: tag, tool: value.set, args: {value: 1}}\n")
    channels = "".join(
        f'[notify.channels.{name}]\nkind = "webhook"\nurl = "{one.url}"\nsecret = "{name}"\nallow = ["127.0.0.1"]\n'
        for name, one in (("hanging", first), ("quick", second))
    )
    rule = '[[notify.rules]]\nwhen = "event"\nkinds = ["run_started", "run_completed"]\nto = ["hanging", "quick"]\n'
    shell.configure(channels + rule)
    for name in ("hanging", "quick"):
        shell.json("webhooks", "rotate", name)
    return shell


def test_a_fault_in_one_task_does_not_end_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as hanging, receiving() as quick:
        shell = two_channels(tmp_path, hanging, quick)
        faults = iter([RuntimeError("a fault")])
        real = channel_server.ChannelServer.round

        async def faulty(server: channel_server.ChannelServer) -> bool:
            if (error := next(faults, None)) is not None:
                raise error
            return await real(server)

        monkeypatch.setattr(channel_server.ChannelServer, "round", faulty)
        monkeypatch.setattr(keeping, "RETRY_S", 0.05)
        ran: list[str] = []

        def holds() -> bool:
            if not ran:
                ran.append(shell_run(shell))
            return len(quick.arrived) == 2

        served(shell, holds)
        assert next(faults, None) is None
