"""Who can open an encrypted backup: with the passphrase, or with the key of a recipient, and nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from handrail.domain.backups.manifest import Encryption
from handrail.domain.errors import Forbidden, IntegrityBroken, Invalid, Limited, NotFound, Unavailable
from handrail.storage.backups.encryption import encrypted_for, key_of, new_recipient, read_passphrase

KEY = bytes(range(32))
WORDS = "correct horse battery"


def sealed(*recipients: str, passphrase: str = "") -> Encryption:
    encryption = encrypted_for(KEY, passphrase=passphrase, recipients=recipients)
    assert encryption is not None
    return encryption


def test_without_passphrase_and_recipient_nothing_is_encrypted() -> None:
    assert encrypted_for(KEY, passphrase="", recipients=()) is None


def test_the_passphrase_opens_it_and_another_does_not() -> None:
    encryption = sealed(passphrase=WORDS)
    assert key_of(encryption, passphrase=WORDS, key_file=None) == KEY
    with pytest.raises(Forbidden, match="passphrase is wrong"):
        key_of(encryption, passphrase=WORDS + "!", key_file=None)


def test_each_recipient_opens_it_and_a_stranger_does_not(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("ada", "bob", "eve")]
    ada, bob, _ = [new_recipient(file) for file in files]
    encryption = sealed(ada, bob, passphrase=WORDS)
    assert [key_of(encryption, passphrase="", key_file=file) for file in files[:2]] == [KEY, KEY]
    assert key_of(encryption, passphrase=WORDS, key_file=None) == KEY
    with pytest.raises(Forbidden, match="not encrypted for this key"):
        key_of(encryption, passphrase="", key_file=files[2])
    assert files[0].stat().st_mode & 0o777 == 0o600


def test_a_private_key_is_never_overwritten(tmp_path: Path) -> None:
    new_recipient(tmp_path / "ada")
    before = (tmp_path / "ada").read_bytes()
    with pytest.raises(Invalid, match="exists"):
        new_recipient(tmp_path / "ada")
    assert (tmp_path / "ada").read_bytes() == before


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(Forbidden) as refused:
        key_of(sealed(passphrase=WORDS), passphrase="", key_file=None)
    assert refused.value.hint == "give --passphrase-file"
    only_key = sealed(new_recipient(tmp_path / "ada"))
    with pytest.raises(Forbidden) as refused:
        key_of(only_key, passphrase="", key_file=None)
    assert refused.value.hint == "give --key-file"
    with pytest.raises(Forbidden, match="for recipients"):
        key_of(only_key, passphrase=WORDS, key_file=None)


def test_a_cost_that_a_stranger_has_chosen_is_refused() -> None:
    encryption = sealed(passphrase=WORDS)
    assert encryption.passphrase is not None
    with pytest.raises(IntegrityBroken, match="cost"):
        key_of(replace(encryption, passphrase=replace(encryption.passphrase, n=2**30)), passphrase=WORDS, key_file=None)


def test_a_recipient_is_recognised_by_its_form(tmp_path: Path) -> None:
    for wrong in ("", "hr_backup_", "hr_backup_" + "z" * 64, "ab" * 32):
        with pytest.raises(Invalid, match="public key of a recipient"):
            sealed(wrong)
    with pytest.raises(Limited):
        sealed(*[new_recipient(tmp_path / "ada")] * 21)
    (tmp_path / "other").write_text("hr_backup_secret_no\n")
    (tmp_path / "other").chmod(0o600)
    with pytest.raises(Invalid, match="not the private key"):
        key_of(sealed(passphrase=WORDS), passphrase="", key_file=tmp_path / "other")


def test_a_passphrase_file_is_private_and_long_enough(tmp_path: Path) -> None:
    file = tmp_path / "words"
    file.write_text(f"{WORDS}\nthe second line does not count\n")
    file.chmod(0o644)
    with pytest.raises(Forbidden, match="other than its owner"):
        read_passphrase(file)
    file.chmod(0o600)
    assert read_passphrase(file) == WORDS
    file.write_text("short\n")
    with pytest.raises(Invalid, match="fewer than 12"):
        read_passphrase(file)
    file.write_bytes(b"\xff" * 20)
    with pytest.raises(Unavailable):
        read_passphrase(file)
    with pytest.raises(NotFound):
        read_passphrase(tmp_path / "none")
