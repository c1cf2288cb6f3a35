"""Secrets of a store: made once, private, the same for all its processes, and refused where others can read them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from handrail.assembly import opening
from handrail.assembly.opening import CARRYING, carrying_key
from handrail.domain.errors import Forbidden, IntegrityBroken, Unavailable
from handrail.foundation.atomic_file import write_whole
from handrail.settings import Settings, read_settings
from handrail.storage import keys
from handrail.storage.keys import SEED_BYTES, open_key, open_secret

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="rights are not told by mode there")
OPEN_SECRET = """
import sys
from pathlib import Path
from handrail.storage.keys import open_secret
print(open_secret(Path(sys.argv[1]), "carrying.key").hex())
"""


def settings_in(folder: Path) -> Settings:
    return read_settings({"home": str(folder / "home"), "project": str(folder)}, {})


def test_a_secret_is_made_once_and_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "keys"
    made = open_secret(folder, "one.key")
    assert len(made) == SEED_BYTES
    assert open_secret(folder, "one.key") == made
    assert open_secret(folder, "two.key") != made
    assert open_secret(tmp_path / "other", "one.key") != made


def test_a_secret_stands_beside_the_journals_key_and_leaves_it_alone(tmp_path: Path) -> None:
    open_secret(tmp_path, "one.key")
    key = open_key(tmp_path, has_checkpoints=False)
    open_secret(tmp_path, "two.key")
    assert open_key(tmp_path, has_checkpoints=True).public == key.public


@posix_only
def test_a_secret_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    open_secret(folder, "one.key")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "one.key").stat().st_mode & 0o777 == 0o600
    (folder / "one.key").chmod(0o644)
    with pytest.raises(Forbidden, match="can be read by users other"):
        open_secret(folder, "one.key")


@pytest.mark.parametrize("content", [b"", b"00" * 31, b"no hex at all", b"\xff" * 64])
def test_a_damaged_secret_is_not_taken_for_one(tmp_path: Path, content: bytes) -> None:
    open_secret(tmp_path, "one.key")
    (tmp_path / "one.key").write_bytes(content)
    with pytest.raises(IntegrityBroken, match=r"one\.key is damaged"):
        open_secret(tmp_path, "one.key")


def test_a_place_where_nothing_can_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match=r"the secret one\.key can't be used") as refused:
        open_secret(tmp_path / "file" / "keys", "one.key")
    assert "check the permissions" in refused.value.hint


def test_processes_that_start_at_once_share_one_secret(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OPEN_SECRET, str(tmp_path / "keys")]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    told = {process.communicate(timeout=60)[0] for process in started}
    assert len(told) == 1
    assert len(told.pop().strip()) == 2 * SEED_BYTES


def test_a_secret_that_another_process_made_first_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def locked_too_late(_: Path) -> Iterator[None]:
        write_whole(tmp_path / "one.key", b"ab" * SEED_BYTES)
        yield

    monkeypatch.setattr(keys, "locked", locked_too_late)
    assert open_secret(tmp_path, "one.key") == b"\xab" * SEED_BYTES


def test_what_clients_carry_is_sealed_alike_by_all_processes_of_one_store(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    assert carrying_key(settings) == carrying_key(settings) == open_secret(settings.keys, CARRYING)


def test_without_a_place_for_it_a_process_seals_for_itself_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_in(tmp_path)
    open_secret(settings.keys, CARRYING)
    (settings.keys / CARRYING).write_text("damaged")
    opening.log.addHandler(caplog.handler)  # another test may have taken the program's log away from the root
    try:
        first, second = carrying_key(settings), carrying_key(settings)
    finally:
        opening.log.removeHandler(caplog.handler)
    assert len(first) == len(second) == SEED_BYTES
    assert first != second
    assert "damaged" in caplog.text
