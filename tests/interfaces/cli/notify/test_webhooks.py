"""Webhooks as an operator has them: configured, keyed, sent by a worker, listed, tried, disabled, sent again."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from handrail.assembly.opening import open_store
from handrail.domain.errors import Forbidden
from handrail.domain.notify.notice import Message, Notice
from handrail.domain.policy.act import Act
from handrail.domain.policy.table import may
from handrail.domain.policy.verdict import require_allowed
from handrail.engine.notify.outbox import ChannelState
from handrail.settings import read_settings
from interfaces.cli.notify.webhook_receiver import Receiver, receiving
from interfaces.shell import Shell, until

FAILS = """
id: fails
on_failure: stop
steps:
  - {id: read, tool: file.read, args: {path: no-such-file}}
"""
CONFIG = """
[notify.channels.ops]
kind = "webhook"
url = "URL"
secret = "ops-key"
old_secret = "ops-key-old"
allow = ["127.0.0.1"]

[[notify.rules]]
when = "run_failed"
to = ["ops"]
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def shell(tmp_path: Path, receiver: Receiver) -> Shell:
    shell = Shell(tmp_path)
    shell.configure(CONFIG.replace("URL", receiver.url))
    return shell


def channel(shell: Shell) -> dict[str, Any]:
    (one,) = shell.json("webhooks", "list")["channels"]
    return dict(one)


def test_a_failed_run_is_told_signed_and_a_dead_receiver_is_told_later(shell: Shell, receiver: Receiver) -> None:
    key = shell.json("webhooks", "rotate", "ops")["key"]
    assert channel(shell)["status"] == "unused"
    with shell.process("worker") as worker:
        until(lambda: channel(shell)["status"] == "works")
        run = shell.json("run", "start", shell.write(FAILS), code=1)["run"]
        until(lambda: receiver.arrived)
        (reported,) = receiver.verified(key)
        assert (reported["type"], reported["subject"]) == ("handrail.run_failed", run)
        assert reported["data"]["workflow"] == "fails"
        assert "no-such-file" in reported["data"]["text"]
        receiver.status = 500
        shell.json("run", "start", shell.write(FAILS), code=1)
        until(lambda: channel(shell)["status"] == "failing")
        assert channel(shell)["error"] == "127.0.0.1 answered 500"
        receiver.status = 204
        until(lambda: len(receiver.arrived) == 2)
        until(lambda: channel(shell)["sent"] == 2)
        assert shell.run("webhooks", "disable", "ops", "--reason", "too loud").exit_code == 0
        shell.json("run", "start", shell.write(FAILS), code=1)
        assert (channel(shell)["status"], channel(shell)["reason"]) == ("disabled", "too loud")
        worker.send(signal.SIGTERM)
        worker.end()
    assert len(receiver.verified(key)) == 2
    checks = {one["name"]: one for one in shell.json("status")["checks"]}
    assert checks["channel ops"]["message"].endswith(": too loud")
    shell.json("webhooks", "enable", "ops")
    with shell.process("worker"):
        until(lambda: len(receiver.arrived) == 3)


def test_a_channel_is_tried_by_hand_and_says_why_it_does_not_work(shell: Shell, receiver: Receiver) -> None:
    missing = shell.json("webhooks", "test", "ops", code=3)["error"]
    assert "ops-key" in missing["message"]
    key = shell.json("webhooks", "rotate", "ops")["key"]
    shell.json("webhooks", "test", "ops")
    assert receiver.verified(key)[0]["type"] == "handrail.test"
    receiver.status = 302
    refused = shell.json("webhooks", "test", "ops", code=8)["error"]
    assert "redirects are not followed" in refused["message"]
    assert "`ops`" in shell.json("webhooks", "test", "opps", code=3)["error"]["hint"]


def test_a_key_is_changed_without_a_gap(shell: Shell, receiver: Receiver) -> None:
    first = shell.json("webhooks", "rotate", "ops")["key"]
    made = shell.run("webhooks", "rotate", "ops")
    second = made.stdout.strip()
    assert "--finish" in made.stderr
    shell.run("webhooks", "test", "ops")
    assert receiver.verified(first) == receiver.verified(second)
    assert shell.json("webhooks", "rotate", "ops", "--finish") == {"channel": "ops", "removed": "ops-key-old"}
    shell.json("webhooks", "rotate", "ops", "--finish", code=3)
    receiver.arrived.clear()
    shell.run("webhooks", "test", "ops")
    assert len(receiver.verified(second)) == 1
    assert shell.json("webhooks", "rotate", "ops", "--ed25519", "--at-once")["key"].startswith("whpk_")
    shell.run("webhooks", "test", "ops")
    assert receiver.arrived[-1][0]["webhook-signature"].startswith("v1a,")
    assert first not in (shell.home / "config.toml").read_text()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('kind = "webhook"', 'kind = "pigeon"'), "pigeon"),
        (('when = "run_failed"', 'when = "run_faild"'), "run_faild"),
        (('to = ["ops"]', 'to = ["opps"]'), "opps"),
        (('secret = "ops-key"\n', ""), "secret"),
        (('old_secret = "ops-key-old"', 'url_secret = "address"'), "one of url and url_secret"),
        (('allow = ["127.0.0.1"]', "alow = []"), "alow"),
        (('to = ["ops"]', 'to = ["ops"]\nkinds = ["run_ended"]'), "run_ended"),
    ],
)
def test_what_is_wrong_in_the_table_is_said(shell: Shell, change: tuple[str, str], words: str) -> None:
    shell.configure((shell.home / "config.toml").read_text().replace(*change))
    refused = shell.json("webhooks", "list", code=5)["error"]
    assert words in refused["message"]
    assert "[notify" in refused["message"]


def test_a_project_can_name_no_channels(shell: Shell) -> None:
    shell.write('[notify.channels.mine]\nkind = "command"\nargv = ["true"]\n', ".handrail/config.toml")
    result = shell.run("webhooks", "list")
    assert result.exit_code == 5
    assert "notify" in result.output


def bury(shell: Shell, *numbers: int) -> None:
    """What a server leaves that could not deliver these notices for days."""

    async def scene() -> None:
        settings = read_settings({"home": str(shell.home), "project": str(shell.folder)}, {})
        async with open_store(settings) as opened:
            outbox = opened.store.outbox()
            assert await outbox.claim("ops", "out", ttl_ms=60_000)
            notices = [
                Notice(id=f"ntc_{n}", when="event", at=5_000, subject=f"run_{n}", text=f"no. {n}", source="s")
                for n in numbers
            ]
            new = [Message(number=n, notice=notice) for n, notice in zip(numbers, notices, strict=True)]
            assert await outbox.write("ops", "out", ChannelState(), put=new)
            dead = [replace(one, attempts=90, tried=6_000, error="answered 500", is_dead=True) for one in new]
            assert await outbox.write("ops", "out", ChannelState(), put=dead)
            await outbox.release("out")

    asyncio.run(scene())


def test_dead_letters_are_listed_warned_of_sent_again_and_discarded(shell: Shell) -> None:
    shell.json("webhooks", "rotate", "ops")
    bury(shell, 1, 2, 3)
    listed = shell.json("webhooks", "list", "--dead")["notices"]
    assert [(one["id"], one["attempts"], one["error"]) for one in listed] == [
        (f"ntc_{n}", 90, "answered 500") for n in (1, 2, 3)
    ]
    assert "answered 500" in shell.run("webhooks", "list", "ops", "--dead").output
    warned = {one["name"]: one for one in shell.json("status")["checks"]}["channel ops"]
    assert (warned["level"], warned["message"][:14]) == ("warn", "3 dead letters")
    assert shell.json("webhooks", "resend", "ops", "ntc_2") == {"channel": "ops", "resent": 1}
    assert [one["id"] for one in shell.json("webhooks", "list", "--waiting")["notices"]] == ["ntc_2"]
    assert "1 of these" in shell.json("webhooks", "discard", "ops", "ntc_3", "ntc_9", code=3)["error"]["message"]
    assert shell.json("webhooks", "discard", "ops") == {"channel": "ops", "discarded": 1}
    assert (channel(shell)["dead"], channel(shell)["waiting"]) == (0, 1)
    shell.json("webhooks", "list", "--dead", "--waiting", code=5)


def test_only_people_change_channels() -> None:
    for actor in ("agent:claude", "handrail", "worker:w-1"):
        with pytest.raises(Forbidden):
            require_allowed(may(actor, Act.NOTIFY))
