"""The token of the HTTP server: created once, private, reused, and never incomplete."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from handrail.domain.errors import Invalid, Unavailable
from handrail.domain.secrets.key_files import TokenName
from handrail.interfaces.web.token_file import open_token

posix = pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX knows them")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_token_is_made_once_and_used_again(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    token, file = open_token(home)
    assert file == home / TokenName.AGENTS
    assert len(token) == 43
    assert file.read_text(encoding="utf-8") == token + "\n"
    assert open_token(home) == (token, file)
    assert [one.name for one in home.iterdir()] == [TokenName.AGENTS]
    assert open_token(tmp_path / "other")[0] != token


@posix
def test_only_its_owner_can_read_it_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        _, file = open_token(tmp_path / "home")
    finally:
        os.umask(before)
    assert (mode(file), mode(file.parent)) == (0o600, 0o700)


@posix
@pytest.mark.parametrize("wide", [0o644, 0o640, 0o602, 0o777])
def test_a_token_that_others_could_read_is_closed_to_them_and_that_is_said(
    wide: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token, file = open_token(tmp_path)
    file.chmod(wide)
    assert open_token(tmp_path)[0] == token
    assert mode(file) == 0o600
    assert "other users could read" in caplog.text
    assert token not in caplog.text


@posix
def test_a_private_token_causes_no_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    open_token(tmp_path)
    open_token(tmp_path)
    assert not caplog.records


def test_many_processes_at_once_have_one_token(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = set(pool.map(lambda _: open_token(tmp_path)[0], range(64)))
    assert len(found) == 1
    assert [one.name for one in tmp_path.iterdir()] == [TokenName.AGENTS]


@pytest.mark.parametrize("text", ["", "\n", "short", "x" * 31, "with a blank " * 4, "é" * 40, "x" * 600, "x" * 5_000])
def test_what_is_no_token_is_refused_with_a_hint(text: str, tmp_path: Path) -> None:
    (tmp_path / TokenName.AGENTS).write_text(text, encoding="utf-8")
    (tmp_path / TokenName.AGENTS).chmod(0o600)
    with pytest.raises(Invalid, match="contains no token") as refused:
        open_token(tmp_path)
    assert "remove" in refused.value.hint


def test_a_token_that_the_user_wrote_is_used(tmp_path: Path) -> None:
    (tmp_path / TokenName.AGENTS).write_text("my-own.token_" + "x" * 32 + "==\r\n", encoding="utf-8")
    assert open_token(tmp_path)[0] == "my-own.token_" + "x" * 32 + "=="


def test_a_home_that_can_not_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(Unavailable, match="can't be stored"):
        open_token(tmp_path / "file")
    (tmp_path / TokenName.AGENTS).mkdir()
    with pytest.raises(Unavailable):
        open_token(tmp_path)


@posix
def test_a_fifo_in_place_of_the_file_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / TokenName.AGENTS, 0o600)
    with pytest.raises(Invalid):
        open_token(tmp_path)
