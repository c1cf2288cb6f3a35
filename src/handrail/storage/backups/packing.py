"""Packs one file of a backup: compressed, encrypted if there is a key, with digests of both sides; and unpacks it.

gzip, so that a backup that is not encrypted can be read without handrail. Memory stays the same whatever the size."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from handrail.domain.backups.manifest import ANOTHER, BackupPart, PartContent
from handrail.domain.errors import IntegrityBroken, NotFound
from handrail.foundation.open_flags import BINARY
from handrail.foundation.plain_file import NotPlain, open_plain
from handrail.storage.backups.encryption import CHUNK_BYTES, ChunkCipher

LEVEL: Final = 3
"""As fast as 1 on a journal, and half the time of 6 for a file that is 2 % larger; docs/decisions/0017."""
GZIP: Final = 16 + zlib.MAX_WBITS


class Packer:
    """Writes one packed file. Also what tarfile writes to."""

    def __init__(self, folder: Path, content: PartContent, name: str, *, key: bytes | None) -> None:
        self._content, self._name = content, name
        self._cipher = ChunkCipher(key, content.value) if key is not None else None
        self._file = os.fdopen(
            os.open(folder / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | BINARY, 0o600), "wb", buffering=0
        )
        self._gzip = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
        self._held = bytearray()
        self._before, self._after = hashlib.sha256(), hashlib.sha256()
        self._before_bytes = self._after_bytes = 0

    def write(self, data: bytes) -> int:
        """Add content."""
        self._before.update(data)
        self._before_bytes += len(data)
        self._pass_on(self._gzip.compress(data))
        return len(data)

    def finish(self) -> BackupPart:
        """Write the end, and sync it."""
        self._pass_on(self._gzip.flush())
        self._put(bytes(self._held), is_last=True)
        os.fsync(self._file.fileno())
        self.close()
        return BackupPart(
            content=self._content,
            name=self._name,
            bytes=self._after_bytes,
            sha256=self._after.hexdigest(),
            content_bytes=self._before_bytes,
            content_sha256=self._before.hexdigest(),
        )

    def close(self) -> None:
        """Close the file, whatever its state."""
        self._file.close()

    def _pass_on(self, packed: bytes) -> None:
        self._held += packed
        while len(self._held) > CHUNK_BYTES:  # never the last: whether one follows is part of what is encrypted
            self._put(bytes(self._held[:CHUNK_BYTES]), is_last=False)
            del self._held[:CHUNK_BYTES]

    def _put(self, chunk: bytes, *, is_last: bool) -> None:
        written = self._cipher.encrypted(chunk, is_last=is_last) if self._cipher else chunk
        self._after.update(written)
        self._after_bytes += len(written)
        view = memoryview(written)
        while view:
            view = view[self._file.write(view) :]


def packed(folder: Path, content: PartContent, name: str, chunks: Iterable[bytes], *, key: bytes | None) -> BackupPart:
    """Write one packed file from chunks of its content."""
    packer = Packer(folder, content, name, key=key)
    try:
        for chunk in chunks:
            packer.write(chunk)
        return packer.finish()
    finally:
        packer.close()


def chunks_of(file: Path) -> Iterator[bytes]:
    """The content of a file of this process."""
    with file.open("rb") as opened:
        while chunk := opened.read(CHUNK_BYTES):
            yield chunk


def unpacked(file: Path, part: BackupPart, *, key: bytes | None) -> Iterator[bytes]:
    """The content of a packed file; IntegrityBroken if anything of it differs from the manifest."""
    yield from _content(_stored(file, part), part, key)


def require_unchanged(file: Path, part: BackupPart) -> None:
    """Refuse a file that is not the one in the manifest, without looking into it."""
    digest = hashlib.sha256()
    for chunk in _stored(file, part):
        digest.update(chunk)
    if digest.hexdigest() != part.sha256:
        raise _differs(part, "has changed since the backup was made")


def _stored(file: Path, part: BackupPart) -> Iterator[bytes]:
    """The bytes of a packed file: of a regular one, and as many as its manifest says."""
    try:
        # The disk may be one that others write to: a pipe, or a link to a device, would never end.
        opened = open_plain(file)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(
            f"{part.name} is missing in the backup", hint="restore the file, or use another backup"
        ) from error
    except NotPlain as error:
        raise _differs(part, error.reason) from error
    with opened:
        size = os.fstat(opened.fileno()).st_size
        if size != part.bytes:
            raise _differs(part, f"has {size:,} bytes instead of {part.bytes:,}")
        left = size
        while chunk := opened.read(min(CHUNK_BYTES, left)):  # no more of a file that grows meanwhile
            left -= len(chunk)
            yield chunk


def _content(chunks: Iterator[bytes], part: BackupPart, key: bytes | None) -> Iterator[bytes]:
    digest, size, gzip = hashlib.sha256(), 0, zlib.decompressobj(GZIP)
    if key is not None:
        chunks = ChunkCipher(key, part.content.value).decrypted(chunks)
    try:
        for chunk in chunks:
            for content in _inflated(gzip, chunk):
                size += len(content)
                if size > part.content_bytes:  # a forged file must not fill the disk
                    raise _differs(part, "contains more than its manifest says")
                digest.update(content)
                yield content
    except zlib.error as error:
        raise _differs(part, "is damaged") from error
    if not gzip.eof or gzip.unused_data or digest.hexdigest() != part.content_sha256:
        raise _differs(part, "has changed since the backup was made")


def _inflated(gzip: zlib._Decompress, chunk: bytes) -> Iterator[bytes]:
    while chunk:
        yield gzip.decompress(chunk, CHUNK_BYTES)
        chunk = gzip.unconsumed_tail


def _differs(part: BackupPart, how: str) -> IntegrityBroken:
    return IntegrityBroken(f"{part.name} {how}", hint=ANOTHER)
