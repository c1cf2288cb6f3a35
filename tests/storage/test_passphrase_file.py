"""The passphrase for approvals: only its hash is stored, and wrong tries wait longer and longer."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from handrail.domain.errors import Forbidden, IntegrityBroken, Invalid, Unavailable
from handrail.storage.passphrase_file import COST, FILE, PassphraseFile

RIGHT = "correct horse"


class Now:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.ms = 1_000_000

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def kept(tmp_path: Path, now: Now) -> PassphraseFile:
    kept = PassphraseFile(tmp_path / "keys", now)
    kept.keep(RIGHT, old=None)
    return kept


def test_the_right_one_is_right_and_nothing_of_it_is_in_the_file(kept: PassphraseFile) -> None:
    assert kept.is_set()
    assert kept.tried(RIGHT).is_right
    text = (kept.folder / FILE).read_text(encoding="utf-8")
    assert RIGHT not in text
    data = msgspec.json.decode(text)
    assert data["n"] >= 2**15
    assert len(bytes.fromhex(data["salt"])) >= 16


def test_two_files_of_one_passphrase_differ(tmp_path: Path, now: Now) -> None:
    for name in "ab":
        PassphraseFile(tmp_path / name, now).keep(RIGHT, old=None)
    assert (tmp_path / "a" / FILE).read_bytes() != (tmp_path / "b" / FILE).read_bytes()


def test_wrong_tries_are_counted_and_each_makes_the_next_one_wait_longer(kept: PassphraseFile, now: Now) -> None:
    waits = []
    for count in range(1, 9):
        tried = kept.tried("wrong horse")
        assert (tried.is_right, tried.wrong) == (False, count)
        waits.append(tried.wait_s)
        early = kept.tried(RIGHT)
        assert (early.is_right, early.wrong, early.wait_s) == (False, count, tried.wait_s), "it is not looked at"
        assert (tried.is_early, early.is_early) == (False, True)
        now.ms += 1_000 * tried.wait_s
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert kept.tried(RIGHT).is_right
    assert kept.tried("wrong horse").wrong == 1, "a right one starts the count again"


def test_a_change_needs_the_old_one(kept: PassphraseFile, now: Now) -> None:
    for old in (None, "", "wrong horse"):
        with pytest.raises(Forbidden, match="nothing was changed"):
            kept.keep("another horse", old=old)
        with pytest.raises(Forbidden, match="was not looked at: nothing was changed") as early:
            kept.keep("another horse", old=RIGHT)
        assert early.value.hint.startswith("wait ")
        now.ms += 60_000
    assert kept.tried(RIGHT).is_right
    kept.keep("another horse", old=RIGHT)
    assert kept.tried("another horse").is_right
    assert not kept.tried(RIGHT).is_right


@pytest.mark.parametrize("text", ["", "short", "x" * 1_001])
def test_a_passphrase_has_a_least_and_a_greatest_length(tmp_path: Path, now: Now, text: str) -> None:
    with pytest.raises(Invalid, match="8 to 1,000 characters"):
        PassphraseFile(tmp_path / "keys", now).keep(text, old=None)
    assert not (tmp_path / "keys").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_others_can_not_read_it_and_one_that_they_can_read_is_refused(kept: PassphraseFile) -> None:
    assert (kept.folder / FILE).stat().st_mode & 0o077 == 0
    (kept.folder / FILE).chmod(0o644)
    with pytest.raises(Forbidden, match="other than its owner"):
        kept.tried(RIGHT)


@pytest.mark.parametrize("text", ["", "{}", '{"salt":"zz","hash":"zz"}', '{"salt":"","hash":""}'])
def test_a_damaged_file_is_reported(kept: PassphraseFile, text: str) -> None:
    (kept.folder / FILE).write_text(text, encoding="utf-8")
    with pytest.raises(IntegrityBroken):
        kept.tried(RIGHT)


def test_a_cheaper_hash_than_ours_is_refused(kept: PassphraseFile) -> None:
    data = msgspec.json.decode((kept.folder / FILE).read_bytes())
    (kept.folder / FILE).write_bytes(msgspec.json.encode({**data, "n": COST // 2}))
    with pytest.raises(IntegrityBroken, match="was not written by handrail"):
        kept.tried(RIGHT)


def test_a_file_that_is_gone_is_reported(tmp_path: Path, now: Now) -> None:
    (tmp_path / "keys").mkdir()
    with pytest.raises(Unavailable, match="can't be used"):
        PassphraseFile(tmp_path / "keys", now).tried(RIGHT)
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="can't be used"):
        PassphraseFile(tmp_path / "file" / "keys", now).keep(RIGHT, old=None)
