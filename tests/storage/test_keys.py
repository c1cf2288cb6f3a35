"""The journal's key: made once, private, and missed when it is gone."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from handrail.domain.errors import Forbidden, IntegrityBroken, Unavailable
from handrail.foundation.atomic_file import make_private_folder, write_whole
from handrail.storage.file_lock import locked
from handrail.storage.keys import PrivateKey, PublicKey, open_key, open_public_key

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="rights are not told by mode there")
MAKE_KEY = """
import sys
from pathlib import Path
from handrail.storage.keys import open_key
print(open_key(Path(sys.argv[1]), has_checkpoints=False).public)
"""
KEY_WITHOUT_CRYPTOGRAPHY = """
import sys
from pathlib import Path
from handrail.storage.keys import open_key
open_key(Path(sys.argv[1]), has_checkpoints=True)
print("cryptography" in sys.modules)
"""


def test_a_key_is_made_once_and_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "keys"
    made = open_key(folder, has_checkpoints=False)
    found = open_key(folder, has_checkpoints=True)
    assert made.public == found.public
    assert made.key == found.key
    assert len(made.key) == 16


def test_what_the_key_signs_its_public_half_confirms(tmp_path: Path) -> None:
    key = open_key(tmp_path, has_checkpoints=False)
    public = open_public_key(tmp_path)
    assert public is not None
    assert (public.key, public.public) == (key.key, key.public)
    signature = key.sign(b"message")
    assert key.holds(b"message", signature)
    assert public.holds(b"message", signature)
    assert not public.holds(b"massage", signature)
    assert not public.holds(b"message", b"")
    assert not PublicKey(PrivateKey(bytes(32)).public_key.raw).holds(b"message", signature)


@posix_only
def test_the_key_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "keys"
    open_key(folder, has_checkpoints=False)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    assert (folder / "journal.key").stat().st_mode & 0o777 == 0o600


@posix_only
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o610])
def test_a_key_that_others_can_reach_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    open_key(tmp_path, has_checkpoints=False)
    path = tmp_path / "journal.key"
    path.chmod(mode)
    with pytest.raises(Forbidden, match="can be read by users other") as refused:
        open_key(tmp_path, has_checkpoints=False)
    assert refused.value.hint == f"chmod 600 {path}"
    path.chmod(0o600)
    assert open_key(tmp_path, has_checkpoints=False)


def test_a_lost_key_is_missed_as_soon_as_there_are_checkpoints(tmp_path: Path) -> None:
    open_key(tmp_path, has_checkpoints=False)
    (tmp_path / "journal.key").unlink()
    with pytest.raises(IntegrityBroken, match="the key that signed the checkpoints is gone") as missed:
        open_key(tmp_path, has_checkpoints=True)
    assert "backup" in missed.value.hint
    assert not (tmp_path / "journal.key").exists()


@pytest.mark.parametrize("content", [b"", b"00" * 31, b"00" * 33, b"zz" * 32, b"\xff" * 64])
def test_a_damaged_key_is_refused(tmp_path: Path, content: bytes) -> None:
    write_whole(tmp_path / "journal.key", content)
    with pytest.raises(IntegrityBroken, match="damaged"):
        open_key(tmp_path, has_checkpoints=False)


def test_a_key_that_can_not_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "journal.key").mkdir()
    with pytest.raises(Unavailable, match="can't be used"):
        open_key(tmp_path, has_checkpoints=False)


def test_threads_that_start_together_get_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        keys = list(threads.map(lambda _: open_key(tmp_path, has_checkpoints=False).public, range(16)))
    assert len(set(keys)) == 1


def test_processes_that_start_together_get_one_key(tmp_path: Path) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", MAKE_KEY, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    answers = {process.communicate(timeout=60)[0].strip() for process in started}
    assert answers == {open_key(tmp_path, has_checkpoints=True).public}


def test_a_start_with_a_key_does_without_the_cryptography_library(tmp_path: Path) -> None:
    open_key(tmp_path, has_checkpoints=False)
    command = [sys.executable, "-c", KEY_WITHOUT_CRYPTOGRAPHY, str(tmp_path)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "False"


def test_what_a_crash_left_of_a_key_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "journal.key.part").write_bytes(b"half")
    assert open_key(tmp_path, has_checkpoints=False)
    assert not (tmp_path / "journal.key.part").exists()


def test_a_public_key_is_optional_and_must_be_of_our_kind(tmp_path: Path) -> None:
    assert open_public_key(tmp_path) is None
    path = tmp_path / "journal.pub"
    path.write_bytes(b"no key")
    with pytest.raises(IntegrityBroken, match="not a public key"):
        open_public_key(tmp_path)
    path.write_bytes(
        X25519PrivateKey.generate().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    with pytest.raises(IntegrityBroken, match="not an Ed25519 key"):
        open_public_key(tmp_path)


def test_a_private_key_does_not_print_itself() -> None:
    seed = bytes(range(32))
    assert seed.hex() not in repr(PrivateKey(seed))


def test_a_lock_is_held_by_one_at_a_time_and_waiting_has_an_end(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    refused = pytest.raises(Unavailable, match="another process holds lock")
    with locked(lock), refused, locked(lock, wait_s=0.02):
        pytest.fail("the lock was given twice")
    with locked(lock, wait_s=0):
        assert lock.exists()


@posix_only
def test_a_folder_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    make_private_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o755
