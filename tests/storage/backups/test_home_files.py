"""The files of a home in an archive: what is taken, and what an archive may write."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from handrail.domain.errors import IntegrityBroken
from handrail.domain.secrets.key_files import TokenName
from handrail.storage.backups.home_files import archive, extract, files_below, names_of


def home_in(folder: Path) -> Path:
    home = folder / "home"
    for name in (
        *("config.toml", "journal.db", "journal.db-wal", "backups.json", "keys/journal.key", "keys/lock", *TokenName),
        *("checkpoints/log.jsonl", "logs/today.jsonl", "cache/library.json", "workers/w.lock", "kept/run_a/1"),
        *("projects.json", "projects.json.part", "something-new/of/later"),
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(name)
    (home / "linked").symlink_to("/etc/passwd")
    return home


def taken(home: Path, *, keys: bool) -> list[str]:
    return [file.relative_to(home).as_posix() for file in files_below(home, names_of(home, keys=keys))]


def test_everything_is_taken_that_is_not_made_again_and_keys_stand_apart(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    assert taken(home, keys=False) == ["config.toml", "kept/run_a/1", "projects.json", "something-new/of/later"]
    assert taken(home, keys=True) == sorted([*TokenName, "keys/journal.key"])


def test_what_is_archived_comes_out_again_and_is_private(tmp_path: Path) -> None:
    home, buffer = home_in(tmp_path), io.BytesIO()
    files = [*files_below(home, names_of(home, keys=False)), home / "gone-meanwhile"]
    assert archive(buffer, home, files, also=[("checkpoints/log.jsonl", b"signed\n")]) == 5
    assert extract(iter([buffer.getvalue()[:700], buffer.getvalue()[700:]]), tmp_path / "new") == 5
    assert (tmp_path / "new" / "checkpoints" / "log.jsonl").read_bytes() == b"signed\n"
    kept = tmp_path / "new" / "kept" / "run_a" / "1"
    assert (kept.read_text(), kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (
        "kept/run_a/1",
        0o600,
        0o700,
    )


def test_an_entry_that_leads_out_of_the_folder_or_is_no_file_is_refused(tmp_path: Path) -> None:
    link = tarfile.TarInfo("linked")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    for member in (tarfile.TarInfo("../out"), tarfile.TarInfo("/out"), tarfile.TarInfo("a/../../out"), link):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            tar.addfile(member)
        with pytest.raises(IntegrityBroken, match="does not write"):
            extract(iter([buffer.getvalue()]), tmp_path / "new" / "home")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "new" / "out").exists()


def test_an_archive_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IntegrityBroken, match="can't be read"):
        extract(iter([b"no archive" * 100]), tmp_path)


def test_an_archive_never_writes_over_a_file(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    archive(buffer, tmp_path, [], also=[("journal.db", b"another journal")])
    (tmp_path / "journal.db").write_bytes(b"the journal")
    with pytest.raises(FileExistsError):
        extract(iter([buffer.getvalue()]), tmp_path)
    assert (tmp_path / "journal.db").read_bytes() == b"the journal"
