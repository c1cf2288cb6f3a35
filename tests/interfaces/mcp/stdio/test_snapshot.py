"""A snapshot is kept whole or not at all, and only while it is known what it rests on."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.interfaces.mcp.stdio import snapshot as module
from handrail.interfaces.mcp.stdio.places import Places
from handrail.interfaces.mcp.stdio.snapshot import FILE_BYTES_MAX, Snapshot

ANSWERS = {("2026-07-28", "tools/list"): '{"tools": ["with spaces", "ümlaut"]}'.encode(), ("1", "ping"): b"{}"}


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(str(tmp_path / "home"), str(tmp_path))


def test_what_is_kept_is_read_again(places: Places) -> None:
    assert Snapshot(places, ("run",)).load() is None
    assert Snapshot(places, ("run",)).save(ANSWERS)
    assert Snapshot(places, ("run",)).load() == ANSWERS
    assert Snapshot(places, ("guide",)).load() is None


@pytest.mark.parametrize(
    "name", [".handrail/workflows/deep/er.yaml", ".handrail/config.toml", "home/workflows/w.yaml", "home/config.toml"]
)
def test_it_rests_on_every_file_that_may_change_the_answers(name: str, places: Places, tmp_path: Path) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text("one", encoding="utf-8")
    assert Snapshot(places, ()).save(ANSWERS)
    file.write_text("another", encoding="utf-8")
    assert Snapshot(places, ()).load() is None


def test_answers_are_not_kept_if_something_changed_while_they_were_given(places: Places, tmp_path: Path) -> None:
    snapshot = Snapshot(places, ())
    (tmp_path / ".handrail" / "workflows").mkdir(parents=True)
    (tmp_path / ".handrail" / "workflows" / "new.yaml").touch()
    assert not snapshot.save(ANSWERS)
    assert not (tmp_path / "home").exists()


def test_too_many_files_or_answers_mean_no_snapshot(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not Snapshot(places, ()).save({("1", "tools/list"): b"x" * FILE_BYTES_MAX})
    monkeypatch.setattr(module, "STAMPED_MAX", 10)
    assert not Snapshot(places, ()).save(ANSWERS)
    assert Snapshot(places, ()).load() is None


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data + b"x", lambda _: b"", lambda _: b"x" * 99]
)
def test_a_damaged_file_is_as_good_as_none(damage: object, places: Places, tmp_path: Path) -> None:
    assert callable(damage)
    assert Snapshot(places, ()).save(ANSWERS)
    (file,) = (tmp_path / "home" / "cache" / "mcp").iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert Snapshot(places, ()).load() is None
