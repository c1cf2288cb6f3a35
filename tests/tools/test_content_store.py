"""Stored contents: given back exactly as they were, and never readable if they hold a secret."""

from __future__ import annotations

import hashlib
from pathlib import Path

from handrail.domain.definition.model import Category
from handrail.engine.known_secrets import KnownSecrets
from handrail.tools.files.content_store import ContentStore
from tools.calls import Fails

SECRETS = KnownSecrets(given={"hunter22": "${secret:KEY}"})
CONTENT = b"user = ann\nkey = hunter22\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def store(folder: Path, key: bytes = bytes(32)) -> ContentStore:
    return ContentStore(folder, secrets=SECRETS, key=lambda: key)


def test_a_content_with_a_secret_is_encrypted_and_given_back_as_it_was(tmp_path: Path) -> None:
    name = store(tmp_path).put("run_a", "s", CONTENT)
    (file,) = (tmp_path / "run_a").iterdir()
    assert (file.name, name.endswith(".sealed")) == (name, True)
    assert b"hunter22" not in file.read_bytes()
    assert b"user" not in file.read_bytes()
    assert store(tmp_path).get("run_a", name, sha256=SHA256) == CONTENT


def test_a_content_without_a_secret_is_stored_as_it_is(tmp_path: Path) -> None:
    name = store(tmp_path).put("run_a", "s", b"plain")
    assert (tmp_path / "run_a" / name).read_bytes() == b"plain"
    assert store(tmp_path).get("run_a", name, sha256=hashlib.sha256(b"plain").hexdigest()) == b"plain"


def test_a_changed_content_another_name_and_another_key_are_refused(tmp_path: Path) -> None:
    mine = store(tmp_path)
    name = mine.put("run_a", "s", CONTENT)
    with Fails(Category.CONFLICT, "was changed"):
        store(tmp_path, b"x" * 32).get("run_a", name, sha256=SHA256)
    file = tmp_path / "run_a" / name
    sealed = file.read_bytes()
    file.write_bytes(sealed[:-1] + b"x")
    with Fails(Category.CONFLICT, "was changed"):
        mine.get("run_a", name, sha256=SHA256)
    file.write_bytes(b"short")
    assert mine.find("run_a", name, sha256=SHA256) is None


def test_without_a_key_a_content_with_a_secret_is_not_stored(tmp_path: Path) -> None:
    with Fails(Category.PERMISSION, "has a secret in it"):
        ContentStore(tmp_path, secrets=SECRETS).put("run_a", "s", CONTENT)
    assert not list(tmp_path.rglob("*"))
