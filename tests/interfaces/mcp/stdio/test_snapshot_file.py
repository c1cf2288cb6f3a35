"""A snapshot is kept whole or not at all, and only while everything it depends on is unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.interfaces.mcp.stdio import snapshot_file as module
from handrail.interfaces.mcp.stdio.folders import Folders
from handrail.interfaces.mcp.stdio.snapshot_file import FILE_BYTES_MAX, SnapshotFile

ANSWERS = {("2026-07-28", "tools/list"): '{"tools": ["with spaces", "ümlaut"]}'.encode(), ("1", "ping"): b"{}"}


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(str(tmp_path / "home"), str(tmp_path))


def test_what_is_saved_is_loaded_again(folders: Folders) -> None:
    assert SnapshotFile(folders, ("run",)).load() is None
    assert SnapshotFile(folders, ("run",)).save(ANSWERS)
    assert SnapshotFile(folders, ("run",)).load() == ANSWERS
    assert SnapshotFile(folders, ("guide",)).load() is None


@pytest.mark.parametrize(
    "name", [".handrail/workflows/deep/er.yaml", ".handrail/config.toml", "home/workflows/w.yaml", "home/config.toml"]
)
def test_it_depends_on_every_file_that_may_change_the_answers(name: str, folders: Folders, tmp_path: Path) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text("one", encoding="utf-8")
    assert SnapshotFile(folders, ()).save(ANSWERS)
    file.write_text("another", encoding="utf-8")
    assert SnapshotFile(folders, ()).load() is None


def test_answers_are_not_kept_if_something_changed_while_they_were_given(folders: Folders, tmp_path: Path) -> None:
    snapshot = SnapshotFile(folders, ())
    (tmp_path / ".handrail" / "workflows").mkdir(parents=True)
    (tmp_path / ".handrail" / "workflows" / "new.yaml").touch()
    assert not snapshot.save(ANSWERS)
    assert not (tmp_path / "home").exists()


def test_too_many_files_or_answers_mean_no_snapshot(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not SnapshotFile(folders, ()).save({("1", "tools/list"): b"x" * FILE_BYTES_MAX})
    monkeypatch.setattr(module, "STAMPED_MAX", 10)
    assert not SnapshotFile(folders, ()).save(ANSWERS)
    assert SnapshotFile(folders, ()).load() is None


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data + b"x", lambda _: b"", lambda _: b"x" * 99]
)
def test_a_damaged_file_is_not_used(damage: object, folders: Folders, tmp_path: Path) -> None:
    assert callable(damage)
    assert SnapshotFile(folders, ()).save(ANSWERS)
    (file,) = (tmp_path / "home" / "cache" / "mcp").iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert SnapshotFile(folders, ()).load() is None
