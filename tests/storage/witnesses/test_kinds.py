"""The kinds of witnesses, each with real files, a real repository and real sockets."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from engine.history import KEY, fill, notary_of
from handrail.domain.errors import Conflict, HandrailError, Invalid, Limited, NotFound, Unavailable
from handrail.domain.journal.checkpoint import (
    Checkpoint,
    SealedCheckpoint,
    checkpoint_bytes,
    checkpoint_digest,
    checkpoint_line,
    sealed_with,
)
from handrail.domain.journal.witnessed import short_line, witnessed_from
from handrail.engine.proving.witness_courier import CopyState
from handrail.storage.memory import MemoryStore
from handrail.storage.witnesses import copies as reading
from handrail.storage.witnesses.copies import witnessed_in
from handrail.storage.witnesses.file_witness import FileWitness
from handrail.storage.witnesses.git_witness import REF, GitWitness
from handrail.storage.witnesses.https_witness import HttpsWitness
from handrail.storage.witnesses.register import WitnessRegister
from handrail.storage.witnesses.syslog_witness import SyslogWitness
from handrail.storage.witnesses.targets import TARGETS_MAX, witnesses_of

STATE = CopyState(number=1, digest="d", at=1)


def sealed(number: int, *, store: str = "st_one") -> SealedCheckpoint:
    one = Checkpoint(number=number, store=store, at=number, events=10 * number, order="", heads=())
    return sealed_with(one, key=KEY.key, signature=KEY.sign(checkpoint_bytes(one)))


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


async def test_a_file_grows_by_whole_lines_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "seen.jsonl"
    witness = FileWitness("file:it", path)
    before = os.umask(0)
    try:
        await witness.copy([sealed(1), sealed(2)])
    finally:
        os.umask(before)
    await witness.copy([sealed(3)])
    assert path.read_bytes() == b"".join(map(checkpoint_line, (sealed(1), sealed(2), sealed(3))))
    assert path.stat().st_mode & 0o077 == 0
    assert [one.number for one in witnessed_in(str(path)).found] == [1, 2, 3]
    assert [one.number for one in witnessed_in(f"file:{path}").found] == [1, 2, 3]


async def test_a_line_that_a_crash_tore_does_not_take_the_next_one_with_it(tmp_path: Path) -> None:
    path = tmp_path / "seen.jsonl"
    path.write_bytes(checkpoint_line(sealed(1)) + checkpoint_line(sealed(2))[:40])
    await FileWitness("file:it", path).copy([sealed(2)])
    copies = witnessed_in(str(path))
    assert ([one.number for one in copies.found], copies.damaged) == ([1, 2], (2,))


async def test_a_folder_that_is_missing_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="can't be written"):
        await FileWitness("file:it", tmp_path / "unmounted" / "seen.jsonl").copy([sealed(1)])
    assert not (tmp_path / "unmounted").exists()


async def test_a_repository_gets_commits_on_its_own_ref_and_nothing_else_changes(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "a.txt").write_text("mine")
    hook = tmp_path / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/hooked'\n")
    hook.chmod(0o755)
    witness = GitWitness("git:it", tmp_path)
    await witness.copy([sealed(1), sealed(2)])
    await witness.copy([sealed(3)])
    assert len(git(tmp_path, "rev-list", REF).split()) == 2
    assert git(tmp_path, "status", "--porcelain") == "?? a.txt", "no index, no working tree, no branch"
    assert not (tmp_path / "hooked").exists(), "no hook of the repository runs"
    for where in (str(tmp_path), f"git:{tmp_path}"):
        assert [one.number for one in witnessed_in(where).found] == [1, 2, 3]


async def test_a_folder_without_a_repository_is_refused_with_what_git_says(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="not a git repository"):
        await GitWitness("git:it", tmp_path).copy([sealed(1)])
    with pytest.raises(Unavailable, match="failed"):
        witnessed_in(str(tmp_path))


async def test_a_missing_git_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="not installed"):
        await GitWitness("git:it", tmp_path).copy([sealed(1)])


@pytest.mark.parametrize("kind", ["file", "git"])
async def test_a_witness_has_the_checkpoints_of_one_store_only(tmp_path: Path, kind: str) -> None:
    git(tmp_path, "init", "-q", "--bare", "repo")
    made = FileWitness("it", tmp_path / "a.jsonl") if kind == "file" else GitWitness("it", tmp_path / "repo")
    await made.copy([sealed(1)])
    with pytest.raises(Conflict, match="of another store"):
        await made.copy([sealed(1, store="st_two")])


class Endpoint:
    """A web server that keeps what it is sent."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.authorized: list[str] = []
        self.status = 204
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                outer.authorized.append(self.headers.get("Authorization", ""))
                self.send_response(outer.status)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/in?home=a"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    one = Endpoint()
    yield one
    one.server.shutdown()
    one.server.server_close()


async def test_an_endpoint_gets_each_checkpoint_as_one_post(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEEN_TOKEN", "let-me")
    await HttpsWitness(endpoint.url, "SEEN_TOKEN").copy([sealed(1), sealed(2)])
    assert endpoint.bodies == [checkpoint_line(sealed(1)), checkpoint_line(sealed(2))]
    assert endpoint.authorized == ["Bearer let-me"] * 2


@pytest.mark.parametrize("status", [302, 401, 500])
async def test_an_answer_that_is_not_a_yes_is_a_failure(endpoint: Endpoint, status: int) -> None:
    endpoint.status = status
    with pytest.raises(Unavailable, match=f"answered {status}"):
        await HttpsWitness(endpoint.url).copy([sealed(1)])
    assert len(endpoint.bodies) == 1, "no redirect is followed"


async def test_an_endpoint_that_is_away_or_a_token_that_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEEN_TOKEN", raising=False)
    with pytest.raises(Unavailable, match="can't be reached"):
        await HttpsWitness("https://127.0.0.1:1/in").copy([sealed(1)])
    with pytest.raises(Unavailable, match="SEEN_TOKEN"):
        await HttpsWitness("http://127.0.0.1:1/in", "SEEN_TOKEN").copy([sealed(1)])


async def test_syslog_gets_a_short_line_that_can_be_compared_later(tmp_path: Path) -> None:
    store = MemoryStore()
    await fill(store)
    one = sealed(1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(5)
        await SyslogWitness("syslog://x", "127.0.0.1", receiver.getsockname()[1]).copy([one])
        line = receiver.recv(65_000)
    assert line.startswith(b"<134>1 1970-01-01T00:00:00.001Z ")
    assert len(line) < 480, "what every syslog must accept"
    saved = tmp_path / "syslog"
    saved.write_bytes(b"Jan 1 cron[1]: something else\n" + line + b"\n")
    (found,) = witnessed_in(str(saved)).found
    assert (found.number, found.digest, found.key) == (1, checkpoint_digest(one.checkpoint), KEY.key)


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs unix sockets")
async def test_the_local_syslog_is_a_socket(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(path))
        receiver.settimeout(5)
        await SyslogWitness("syslog:", local=(str(path),)).copy([sealed(1)])
        assert witnessed_from(receiver.recv(65_000)) == witnessed_from(short_line(sealed(1)))
    with pytest.raises(Unavailable, match="can't be reached"):
        await SyslogWitness("syslog:", local=(str(path),)).copy([sealed(1)])  # nobody listens any more
    with pytest.raises(Unavailable, match="no syslog socket"):
        await SyslogWitness("syslog:", local=(str(tmp_path / "none"),)).copy([sealed(1)])


def test_every_kind_of_target_is_known_by_its_first_word(tmp_path: Path) -> None:
    targets = [
        f"file:{tmp_path}/a",
        f"git:{tmp_path}/b",
        "https://w.example/in",
        "http://[::1]:80/",
        "syslog:",
        "syslog://h:5",
    ]
    made = witnesses_of({"targets": targets, "token_env": "T"}, home=tmp_path / "home")
    assert [witness.name for witness in made] == targets
    assert [type(witness) for witness in made] == [
        FileWitness,
        GitWitness,
        HttpsWitness,
        HttpsWitness,
        SyslogWitness,
        SyslogWitness,
    ]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"targets": "file:/a"}, "takes a list"),
        ({"target": []}, "takes a list"),
        ({"targets": [1]}, "takes a list"),
        ({"targets": [], "token_env": 1}, "takes a list"),
        ({"targets": ["file:/a"] * (TARGETS_MAX + 1)}, "more than 10"),
        ({"targets": ["ftp://a"]}, "knows no target"),
        ({"targets": ["file:"]}, "knows no target"),
        ({"targets": ["file:a.jsonl"]}, "not a whole path"),
        ({"targets": ["http://example.com/"]}, "not encrypted"),
        ({"targets": ["http://localhost.example.com/"]}, "not encrypted"),
        ({"targets": ["https:///in"]}, "must have a host"),
        ({"targets": ["https://me:secret@example.com/"]}, "no user or password"),
        ({"targets": ["https://example.com:x/"]}, "no address"),
        ({"targets": ["syslog://"]}, "has no host"),
    ],
)
def test_a_wrong_target_is_refused_with_words(tmp_path: Path, table: dict[str, object], words: str) -> None:
    with pytest.raises(Invalid, match=words) as refused:
        witnesses_of(table, home=tmp_path)
    assert refused.value.hint
    assert "secret" not in str(refused.value)


def test_a_witness_inside_the_home_is_none(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "home")
    for target in (f"file:{tmp_path}/home/a", f"git:{tmp_path}/link/b"):
        with pytest.raises(Invalid, match="inside HANDRAIL_HOME"):
            witnesses_of({"targets": [target]}, home=tmp_path / "home")


def test_what_is_no_witness_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("nothing", "pipe"):
        with pytest.raises(NotFound, match="there is no witness"):
            witnessed_in(str(tmp_path / name))
    monkeypatch.setattr(reading, "BYTES_MAX", 10)
    (tmp_path / "large").write_bytes(b"x" * 11)
    with pytest.raises(Limited, match="larger than"):
        witnessed_in(str(tmp_path / "large"))


async def test_a_register_that_cannot_be_read_or_written_costs_no_copy(tmp_path: Path) -> None:
    register = WitnessRegister(tmp_path / "checkpoints")
    assert await register.all() == {}
    (tmp_path / "file").write_text("")
    with pytest.raises(HandrailError):
        await WitnessRegister(tmp_path / "file" / "inside").put("a", STATE)
    await register.put("a", STATE)
    (tmp_path / "checkpoints" / "witnesses.json").write_text("{broken")
    assert await register.all() == {}


async def test_a_sealed_checkpoint_survives_the_way_through_a_witness(tmp_path: Path) -> None:
    store = MemoryStore()
    await fill(store)
    checkpointer = notary_of(store, tmp_path)
    await checkpointer.seal()
    last = await checkpointer.log.last()
    assert last is not None
    found = witnessed_from(checkpoint_line(last))
    assert found is not None
    assert (found.sealed, found.heads) == (last, last.checkpoint.heads)
