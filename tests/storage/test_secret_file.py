"""Secrets in a file: for the owner's eyes only, whole, shared by processes, and within limits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.domain.errors import Forbidden, Invalid, Limited, NotFound, Unavailable
from handrail.engine.secrets import ReadSecrets, Secret, SecretCard
from handrail.foundation.atomic_file import write_whole
from handrail.storage import secret_file
from handrail.storage.keyring_secrets import Ring
from handrail.storage.secret_file import SecretFile

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="rights are not told by mode there")
KEEP = """
import sys
from pathlib import Path
from handrail.storage.secret_file import SecretFile
for number in range(5):
    SecretFile(Path(sys.argv[1]), choice="file").keep(f"{sys.argv[2]}{number}", "hunter22", None)
"""


class Drawer:
    """A keyring that can be looked into, and locked."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.locked = False

    def open(self) -> Drawer:
        if self.locked:
            raise Unavailable("the keyring is locked")
        return self

    def put(self, key: str, value: str) -> None:
        self.values[key] = value

    def get(self, key: str) -> str | None:
        return self.values.get(key)

    def drop(self, key: str) -> None:
        if self.locked:
            raise Unavailable("the keyring is locked")
        del self.values[key]


def no_ring() -> Ring:
    raise Unavailable("there is no keyring")


def secrets(folder: Path, opening: Callable[[], Ring] = no_ring, *, choice: secret_file.Choice = "auto") -> SecretFile:
    return SecretFile(folder / "keys", choice=choice, opening=opening, clock=lambda: 1_000)


def test_a_secret_is_found_again_by_any_process(tmp_path: Path) -> None:
    card = secrets(tmp_path).keep("TOKEN", "hunter22", ["git.*"])
    assert card == SecretCard(name="TOKEN", given_to=("git.*",), kept="file", set=1_000)
    assert secrets(tmp_path).find("TOKEN") == Secret(value="hunter22", given_to=("git.*",))
    assert secrets(tmp_path).find("OTHER") is None
    assert secrets(tmp_path).cards() == [card]


def test_a_change_by_another_process_is_seen_at_once(tmp_path: Path) -> None:
    mine, other = secrets(tmp_path), secrets(tmp_path)
    assert mine.find("TOKEN") is None
    for value in ("value-no-1", "value-no-2"):
        other.keep("TOKEN", value, None)
        found = mine.find("TOKEN")
        assert found is not None
        assert found.value == value
    other.remove("TOKEN")
    assert mine.find("TOKEN") is None


def test_a_new_value_keeps_the_rights_and_new_rights_keep_the_value(tmp_path: Path) -> None:
    mine = secrets(tmp_path)
    mine.keep("TOKEN", "value-no-1", ["git.*", "git.*"])
    mine.keep("TOKEN", "value-no-2", None)
    assert mine.find("TOKEN") == Secret(value="value-no-2", given_to=("git.*",))
    mine.keep("TOKEN", None, ["file.write"])
    assert mine.find("TOKEN") == Secret(value="value-no-2", given_to=("file.write",))
    with pytest.raises(NotFound, match="to keep"):
        mine.keep("OTHER", None, ["file.write"])


def test_a_removed_secret_is_gone_from_the_disk(tmp_path: Path) -> None:
    mine = secrets(tmp_path)
    mine.keep("TOKEN", "hunter22", None)
    mine.remove("TOKEN")
    assert not any(b"hunter22" in file.read_bytes() for file in (tmp_path / "keys").iterdir())
    with pytest.raises(NotFound, match="there is no secret `TOKEN`"):
        mine.remove("TOKEN")
    mine.keep("TOKEN", "hunter22", None)
    with pytest.raises(NotFound) as missed:
        mine.remove("TOKN")
    assert missed.value.hint == "did you mean `TOKEN`?"


@posix_only
def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    secrets(tmp_path).keep("TOKEN", "hunter22", None)
    folder = tmp_path / "keys"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


@posix_only
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o610])
def test_a_file_that_others_can_reach_is_refused_with_the_remedy(tmp_path: Path, mode: int) -> None:
    mine = secrets(tmp_path)
    mine.keep("TOKEN", "hunter22", None)
    path = tmp_path / "keys" / "secrets.json"
    path.chmod(mode)
    for refused in (lambda: mine.find("TOKEN"), mine.cards, lambda: mine.keep("A", "hunter22", None)):
        with pytest.raises(Forbidden, match="can be read by users other") as caught:
            refused()
        assert caught.value.hint == f"chmod 600 {path}"


@pytest.mark.parametrize(
    "content", [b"", b"hunter22", b'{"format": 2}', b'{"secrets": {"A": {"set": "hunter22"}}}', b'"\xff"']
)
def test_a_damaged_file_is_reported_without_a_word_of_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "keys").mkdir()
    write_whole(tmp_path / "keys" / "secrets.json", content)
    with pytest.raises(Invalid, match=r"secrets\.json is damaged") as caught:
        secrets(tmp_path).find("A")
    assert "hunter22" not in f"{caught.value}{caught.value.hint}"
    assert caught.value.__cause__ is None


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets(tmp_path).keep("TOKEN", "hunter22", None)
    monkeypatch.setattr(secret_file, "FILE_BYTES_MAX", 20)
    with pytest.raises(Limited, match="larger than 20 bytes"):
        secrets(tmp_path).find("TOKEN")


def test_a_place_that_can_not_be_used_is_reported(tmp_path: Path) -> None:
    (tmp_path / "keys" / "secrets.json").mkdir(parents=True)
    with pytest.raises(Unavailable, match="can't be used"):
        secrets(tmp_path).find("TOKEN")
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="can't be used"):
        secrets(tmp_path / "file").keep("TOKEN", "hunter22", None)


@pytest.mark.parametrize(
    ("name", "value", "given_to", "words"),
    [
        ("a b", "hunter22", None, "not a valid secret name"),
        ("", "hunter22", None, "not a valid secret name"),
        ("A", "", None, "empty"),
        ("A", "a" * 10_001, None, "longer than 10,000"),
        ("A", "a\0b", None, "characters"),
        ("A", "a\ud800b", None, "characters"),
        ("A", "hunter22", [""], "not a pattern of tools"),
        ("A", "hunter22", ["git.*:host"], "not a pattern of tools"),
        ("A", "hunter22", ["http.request:"], "not a pattern of tools"),
        ("A", "hunter22", ["http.request:https://a.example/"], "not a pattern of tools"),
        ("A", "hunter22", ["a b"], "not a pattern of tools"),
        ("A", "hunter22", ["git.*"] * 21, "20 patterns"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, name: str, value: str, given_to: list[str] | None, words: str
) -> None:
    with pytest.raises((Invalid, Limited), match=words) as refused:
        secrets(tmp_path).keep(name, value, given_to)
    assert value not in str(refused.value) or not value
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("pattern", ["*", "git.*", "a-b.c/d", "http.request:a.example", "http.request:[::1]:80"])
def test_tools_are_named_by_patterns_and_hosts(tmp_path: Path, pattern: str) -> None:
    assert secrets(tmp_path).keep("A", "hunter22", [pattern]).given_to == (pattern,)


def test_there_are_only_so_many_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_file, "SECRETS_MAX", 2)
    drawer = Drawer()
    mine = secrets(tmp_path, drawer.open)
    for name in ("A", "B", "B"):
        mine.keep(name, "hunter22", None)
    with pytest.raises(Limited, match="already 2 secrets"):
        mine.keep("C", "hunter22", None)
    assert [card.name for card in mine.cards()] == ["A", "B"]
    assert len(drawer.values) == 2  # what was put into the ring for nothing is out again


def test_processes_that_keep_at_once_lose_nothing(tmp_path: Path) -> None:
    started = [subprocess.Popen([sys.executable, "-c", KEEP, str(tmp_path / "keys"), name]) for name in "AB"]
    assert [process.wait(timeout=60) for process in started] == [0, 0]
    assert len(secrets(tmp_path).cards()) == 10


def test_a_value_in_the_ring_is_nowhere_else(tmp_path: Path) -> None:
    drawer = Drawer()
    mine = secrets(tmp_path, drawer.open)
    assert mine.keep("TOKEN", "hunter22", ["git.*"]).kept == "keyring"
    assert mine.find("TOKEN") == Secret(value="hunter22", given_to=("git.*",))
    assert "hunter22" not in (tmp_path / "keys" / "secrets.json").read_text()
    assert list(drawer.values.values()) == ["hunter22"]
    mine.keep("TOKEN", "hunter23", None)
    mine.keep("TOKEN", None, ["file.*"])
    assert list(drawer.values.values()) == ["hunter23"]
    mine.remove("TOKEN")
    assert drawer.values == {}


def test_two_homes_on_one_keyring_do_not_meet(tmp_path: Path) -> None:
    drawer = Drawer()
    one, two = secrets(tmp_path / "1", drawer.open), secrets(tmp_path / "2", drawer.open)
    one.keep("TOKEN", "value-no-1", None)
    two.keep("TOKEN", "value-no-2", None)
    one.remove("TOKEN")
    assert two.find("TOKEN") == Secret(value="value-no-2")


def test_the_choice_says_where_new_values_go(tmp_path: Path) -> None:
    drawer = Drawer()
    assert secrets(tmp_path, drawer.open, choice="file").keep("A", "hunter22", None).kept == "file"
    assert secrets(tmp_path, no_ring, choice="auto").keep("B", "hunter22", None).kept == "file"
    with pytest.raises(Unavailable, match="no keyring"):
        secrets(tmp_path, no_ring, choice="keyring").keep("C", "hunter22", None)
    assert secrets(tmp_path, drawer.open, choice="keyring").keep("A", "hunter22", None).kept == "keyring"
    found = secrets(tmp_path, drawer.open, choice="file").find("A")  # it is in the ring, whatever is chosen now
    assert found == Secret(value="hunter22")
    assert json.loads((tmp_path / "keys" / "secrets.json").read_text())["secrets"]["A"].keys() == {"set", "ring"}


def test_a_ring_that_is_locked_or_has_lost_a_value_is_reported(tmp_path: Path) -> None:
    drawer = Drawer()
    mine = secrets(tmp_path, drawer.open)
    mine.keep("TOKEN", "hunter22", None)
    drawer.locked = True
    with pytest.raises(Unavailable, match="locked"):
        mine.find("TOKEN")
    drawer.locked = False
    drawer.values.clear()
    with pytest.raises(Unavailable, match="no longer has the secret `TOKEN`") as caught:
        mine.find("TOKEN")
    assert "handrail secrets set TOKEN" in caught.value.hint


def test_a_value_that_stays_in_the_ring_is_reported(tmp_path: Path) -> None:
    drawer = Drawer()
    mine = secrets(tmp_path, drawer.open)
    mine.keep("TOKEN", "hunter22", None)
    drawer.locked = True
    with pytest.raises(Unavailable, match="still in the platform's keyring") as caught:
        mine.remove("TOKEN")
    assert next(iter(drawer.values)) in caught.value.hint
    assert mine.cards() == []


def test_a_secret_does_not_print_itself(tmp_path: Path) -> None:
    secrets(tmp_path).keep("TOKEN", "hunter22", None)
    mine = secrets(tmp_path)
    assert "hunter22" not in f"{mine.find('TOKEN')!r}{mine.__dict__!r}"


def test_a_value_that_looks_like_an_ordinary_word_is_refused_with_why(tmp_path: Path) -> None:
    for value in ("1234567", "  short  "):
        with pytest.raises(Invalid, match="shorter than 8 characters") as refused:
            secrets(tmp_path).keep("PIN", value, None)
        assert value not in f"{refused.value} {refused.value.hint}"
    assert secrets(tmp_path).cards() == []


def test_all_values_are_read_at_once_and_a_mark_says_when_again(tmp_path: Path) -> None:
    mine, other = secrets(tmp_path), secrets(tmp_path)
    assert (mine.mark(), mine.values()) == (None, ReadSecrets(values={}))
    other.keep("A", "hunter22", None)
    first = mine.mark()
    assert first is not None
    assert mine.mark() == first
    assert mine.values().values == {"A": "hunter22"}
    other.keep("A", "hunter23", None)
    assert mine.mark() != first
    assert mine.values().values == {"A": "hunter23"}
    assert "hunter" not in repr(mine.values())


def test_values_that_the_keyring_does_not_give_now_are_counted(tmp_path: Path) -> None:
    drawer = Drawer()
    secrets(tmp_path, drawer.open).keep("A", "hunter22", None)
    secrets(tmp_path, drawer.open, choice="file").keep("B", "hunter23", None)
    mine = secrets(tmp_path, drawer.open)
    drawer.locked = True
    assert mine.values() == ReadSecrets(values={"B": "hunter23"}, unread=1)
    drawer.locked = False
    assert mine.values() == ReadSecrets(values={"A": "hunter22", "B": "hunter23"})
    drawer.locked = True  # it was read once: it is not asked for again
    assert mine.values().unread == 0


@posix_only
def test_a_file_that_can_not_be_looked_at_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    mine = SecretFile(tmp_path / "loop")
    with pytest.raises(Unavailable, match="can't be used"):
        mine.mark()
    (tmp_path / "home").write_text("a file")
    assert SecretFile(tmp_path / "home" / "keys").mark() is None
    assert SecretFile(tmp_path / "home" / "keys").values() == ReadSecrets(values={})
