"""Packed files of a backup: what goes in comes out, and any change is seen."""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from handrail.domain.backups.manifest import BackupPart, PartContent
from handrail.domain.errors import IntegrityBroken, NotFound
from handrail.storage.backups.encryption import CHUNK_BYTES, TAG_BYTES
from handrail.storage.backups.packing import packed, require_unchanged, unpacked

KEY = bytes(range(32))
FRAME = CHUNK_BYTES + TAG_BYTES + 4


def pack(
    folder: Path, content: bytes, key: bytes | None, *, of: PartContent = PartContent.JOURNAL
) -> tuple[Path, BackupPart]:
    part = packed(folder, of, f"{of.value}.gz", [content[:10], content[10:]], key=key)
    return folder / part.name, part


def unpack(file: Path, part: BackupPart, key: bytes | None) -> bytes:
    return b"".join(unpacked(file, part, key=key))


def changed(part: BackupPart, file: Path) -> BackupPart:
    """What a forger who can rewrite the manifest, but does not know the key, would put there."""
    return replace(part, bytes=file.stat().st_size, sha256=hashlib.sha256(file.read_bytes()).hexdigest())


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
@pytest.mark.parametrize("size", [0, 1, 10_000, CHUNK_BYTES, 2 * CHUNK_BYTES + 7])
def test_what_is_packed_comes_out_again(tmp_path: Path, size: int, key: bytes | None) -> None:
    content = os.urandom(size)  # does not compress: the packed file has as many chunks
    file, part = pack(tmp_path, content, key)
    assert unpack(file, part, key) == content
    assert (part.content_bytes, part.bytes) == (size, file.stat().st_size)
    assert file.stat().st_mode & 0o777 == 0o600
    require_unchanged(file, part)


def test_a_plain_file_is_gzip_and_an_encrypted_one_shows_nothing(tmp_path: Path) -> None:
    content = b"words that compress " * 1_000
    file, _ = pack(tmp_path, content, None)
    assert gzip.decompress(file.read_bytes()) == content
    file, _ = pack(tmp_path, content, KEY, of=PartContent.HOME)
    assert b"words" not in file.read_bytes()


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
@pytest.mark.parametrize("place", [0, 5, 30, -1])
def test_a_changed_byte_is_seen_even_if_the_manifest_was_adapted(tmp_path: Path, place: int, key: bytes | None) -> None:
    file, part = pack(tmp_path, os.urandom(5_000), key)
    content = bytearray(file.read_bytes())
    content[place] ^= 1
    file.write_bytes(content)
    with pytest.raises(IntegrityBroken):
        require_unchanged(file, part)
    if key is not None or place not in (5,):  # byte 5 of gzip is the time of the file: not content
        with pytest.raises(IntegrityBroken):
            unpack(file, changed(part, file), key)


CUTS: dict[str, Callable[[bytes], bytes]] = {
    "the last chunk is gone": lambda content: content[: 2 * FRAME],
    "the end is gone": lambda content: content[:-1],
    "only a length is left": lambda content: content[: FRAME + 2],
    "two chunks were exchanged": lambda content: content[FRAME : 2 * FRAME] + content[:FRAME] + content[2 * FRAME :],
    "a chunk is there twice": lambda content: content[:FRAME] + content,
    "all is gone": lambda content: b"",
    "a chunk says that it is huge": lambda content: b"\xff" + content[1:],
}


@pytest.mark.parametrize("how", CUTS, ids=list(CUTS))
def test_chunks_of_an_encrypted_file_can_not_be_moved_or_cut_off(tmp_path: Path, how: str) -> None:
    file, part = pack(tmp_path, os.urandom(2 * CHUNK_BYTES + 7), KEY)
    file.write_bytes(CUTS[how](file.read_bytes()))
    with pytest.raises(IntegrityBroken):
        unpack(file, changed(part, file), KEY)


def test_a_file_with_another_content_can_not_take_its_place(tmp_path: Path) -> None:
    file, part = pack(tmp_path, b"the home", KEY, of=PartContent.HOME)
    with pytest.raises(IntegrityBroken):
        unpack(file, replace(part, content=PartContent.KEYS), KEY)


def test_a_forged_file_that_never_ends_is_stopped_at_the_size_in_its_manifest(tmp_path: Path) -> None:
    file, part = pack(tmp_path, bytes(50 * CHUNK_BYTES), None)
    forged = replace(part, content_bytes=1_000)
    with pytest.raises(IntegrityBroken, match="more than its manifest"):
        next(unpacked(file, forged, key=None))  # before the first chunk is passed on


def test_a_missing_or_shorter_file_is_named(tmp_path: Path) -> None:
    file, part = pack(tmp_path, b"content", None)
    with pytest.raises(IntegrityBroken, match="bytes instead of"):
        unpack(file, replace(part, bytes=part.bytes + 1), None)
    file.unlink()
    with pytest.raises(NotFound, match=r"journal\.gz is missing"):
        unpack(file, part, None)
    with pytest.raises(NotFound, match=r"journal\.gz is missing"):
        require_unchanged(file, part)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and links are POSIX's")
@pytest.mark.parametrize("what", ["pipe", "zero"])
def test_what_never_ends_in_place_of_a_file_is_refused_at_once(tmp_path: Path, what: str) -> None:
    file, part = pack(tmp_path, b"content", None)
    file.unlink()
    if what == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero")
    with pytest.raises(IntegrityBroken, match="is not a regular file"):
        require_unchanged(file, part)
    with pytest.raises(IntegrityBroken, match="is not a regular file"):
        unpack(file, part, None)
