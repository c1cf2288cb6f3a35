"""Commands, mails and the desktop, with real programs and a real mail server."""

from __future__ import annotations

import asyncio
import email
import email.policy
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from handrail.domain.notify.channel import CommandChannel, EmailChannel
from handrail.engine.known_secrets import KnownSecrets
from handrail.engine.notify.sender import NotSent
from handrail.tools.channels.channel_secrets import ChannelSecrets
from handrail.tools.channels.command import CommandSender
from handrail.tools.channels.desktop import DesktopSender
from handrail.tools.channels.email import EmailSender
from tools.channels.test_webhook import NOTICE, Given

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")


def command(folder: Path, program: str, *, timeout: str = "10s") -> CommandSender:
    script = folder / "program.py"
    script.write_text(program, encoding="utf-8")
    return CommandSender(CommandChannel(argv=(sys.executable, str(script)), timeout=timeout), folder / "run")


async def test_a_program_gets_the_notice_on_stdin_and_nothing_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "hidden")
    program = f"""
import json, os, sys
given = json.load(sys.stdin)
json.dump([given["id"], given["data"]["text"], sys.argv[1:], "MY_TOKEN" in os.environ, os.getcwd()],
          open({str(tmp_path / "got")!r}, "w"))
print("x" * 1_000_000)
sys.stderr.write("y" * 1_000_000)
"""
    await command(tmp_path, program).send(NOTICE, now=0)
    assert json.loads((tmp_path / "got").read_text()) == [
        "ntc_1",
        NOTICE.text,
        [],
        False,
        os.path.realpath(tmp_path / "run"),
    ]


async def test_a_program_that_fails_says_why_and_one_that_reads_nothing_may(tmp_path: Path) -> None:
    with pytest.raises(NotSent, match="ended with 3: no line"):
        await command(tmp_path, "import sys; sys.stderr.write('no\\n line'); sys.exit(3)").send(NOTICE, now=0)
    await command(tmp_path, "").send(NOTICE, now=0)
    with pytest.raises(NotSent, match="can't be started"):
        await CommandSender(CommandChannel(argv=("no-such-program-here",)), tmp_path).send(NOTICE, now=0)


@POSIX
async def test_a_program_that_hangs_is_ended_with_all_that_it_has_started(tmp_path: Path) -> None:
    program = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({str(tmp_path / "child")!r}, "w").write(str(child.pid))
time.sleep(600)
"""
    with pytest.raises(NotSent, match="did not end within 3 s"):
        await command(tmp_path, program, timeout="3s").send(NOTICE, now=0)
    child = int((tmp_path / "child").read_text())
    for _ in range(200):
        if not _is_running(child):
            break
        await asyncio.sleep(0.05)
    assert not _is_running(child)


def _is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@dataclass
class Mailbox:
    """A mail server that takes, refuses, or never answers."""

    port: int = 0
    refuses: str = ""
    is_silent: bool = False
    said: list[str] = field(default_factory=list)
    mails: list[bytes] = field(default_factory=list)

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def say(line: str) -> None:
            writer.write(f"{line}\r\n".encode())
            await writer.drain()

        try:
            if self.is_silent:
                await reader.read()
                return
            await say("220 here")
            while line := (await reader.readline()).decode():
                self.said.append(line.strip())
                word = line.split()[0].upper() if line.split() else ""
                if self.refuses and word == self.refuses:
                    await say("535 no" if word == "AUTH" else "550 no such person")
                elif word == "EHLO":
                    await say("250-here\r\n250 AUTH PLAIN")
                elif word == "AUTH":
                    await say("235 yes")
                elif word == "DATA":
                    await say("354 go on")
                    self.mails.append(await reader.readuntil(b"\r\n.\r\n"))
                    await say("250 taken")
                elif word == "QUIT":
                    await say("221 bye")
                    return
                else:
                    await say("250 ok")
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def mail_server(**chosen: object) -> AsyncIterator[Mailbox]:
    box = Mailbox(**chosen)  # type: ignore[arg-type]
    server = await asyncio.start_server(box.talk, "127.0.0.1", 0)
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()


def mailing(box: Mailbox, given: Given | None = None, **more: str) -> EmailSender:
    channel = EmailChannel(
        server=f"127.0.0.1:{box.port}",
        tls=more.pop("tls", "none"),
        sender="h@example.com",
        to=("o@example.com",),
        **more,
    )
    return EmailSender(channel, ChannelSecrets("ops", given or Given(), KnownSecrets()), smtp_s=1.0)


async def test_a_mail_says_what_happened_and_is_the_same_for_every_try() -> None:
    async with mail_server() as box:
        made = mailing(box, Given(word="pass-word-1"), user="me", secret="word")
        for _ in range(2):
            await made.send(NOTICE, now=1_763_230_000_000)
    first, second = (email.message_from_bytes(one, policy=email.policy.default) for one in box.mails)
    assert first["Subject"] == f"handrail: {NOTICE.text}"
    assert (first["From"], first["To"]) == ("h@example.com", "o@example.com")
    assert first["Message-ID"] == second["Message-ID"] == "<ntc_1@example.com>"
    assert NOTICE.text in first.get_content()
    assert any(line.startswith("AUTH PLAIN") for line in box.said)
    assert b"pass-word-1" not in box.mails[0]


@pytest.mark.parametrize(
    ("refuses", "words"), [("RCPT", "did not take the mail"), ("AUTH", "refused the user or password")]
)
async def test_a_server_that_refuses_has_not_got_the_mail(refuses: str, words: str) -> None:
    async with mail_server(refuses=refuses) as box:
        with pytest.raises(NotSent, match=words) as found:
            await mailing(box, Given(word="pass-word-1"), user="me", secret="word").send(NOTICE, now=0)
        assert "pass-word-1" not in str(found.value)
        assert box.mails == []


async def test_a_server_that_is_silent_or_has_no_encryption_has_not_got_it_either() -> None:
    async with mail_server(is_silent=True) as box:
        with pytest.raises(NotSent, match="did not take the mail"):
            await mailing(box).send(NOTICE, now=0)
    async with mail_server() as box:
        with pytest.raises(NotSent, match="did not take the mail"):
            await mailing(box, tls="starttls").send(NOTICE, now=0)
        assert box.mails == [], "never in the clear where starttls is asked for"


@POSIX
async def test_the_desktop_shows_the_line_or_says_what_is_missing(tmp_path: Path) -> None:
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/shown\n')
    program.chmod(0o755)

    def found(_: str) -> Iterator[str]:
        yield str(program)

    await DesktopSender(tmp_path, found).send(NOTICE, now=0)
    assert (tmp_path / "shown").read_text().splitlines()[-1] == NOTICE.text
    with pytest.raises(NotSent, match="this machine has no"):
        await DesktopSender(tmp_path, lambda _: iter(())).send(NOTICE, now=0)
