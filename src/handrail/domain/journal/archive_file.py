"""Archive files: ended runs in one compressed, signed file, which proves itself without a store.

Pure: the exact bytes. The first line is the header, with the digest of all that follows; its signature covers the rest
of the header. What follows is gzip of JSON lines: for each run its events in order, and the definitions that the runs
are pinned to. Hashes are not stored: they follow from the events, and the last of them has to be the head that the
header names. So no byte of a run can change unnoticed."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.errors import IntegrityBroken, Limited
from handrail.domain.journal.archived import hashes_digest
from handrail.domain.journal.chain import GENESIS, Record, chained
from handrail.domain.journal.store_event import ArchivedRun

ARCHIVE_FORMAT: Final = "handrail-archive-1"
CONTENT_BYTES_MAX: Final = 512 * 1024 * 1024
HEADER_BYTES_MAX: Final = 1_000_000
LEVEL: Final = 6
GZIP: Final = 16 + zlib.MAX_WBITS
HINT: Final = "bring the file back from a backup: the folder archives/ of the home"


class ArchiveHeader(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs are in an archive file, and which key signed it."""

    format: str = ARCHIVE_FORMAT
    archive: str
    store: str
    """The id of the store that the runs are of."""
    made: int
    runs: tuple[ArchivedRun, ...]
    digest: str
    """Of every byte after the header's line."""
    key: str
    """The public key, as hex."""
    signature: str = ""


class DefinitionLine(Struct, frozen=True, array_like=True, tag="definition", forbid_unknown_fields=True):
    """A definition that the runs are pinned to."""

    hash: str
    text: str


class EventLine(Struct, frozen=True, array_like=True, tag="event", forbid_unknown_fields=True):
    """An event as it was stored; `place` orders the events of the store. Bytes are hex, except the body."""

    run: str
    place: int
    n: int
    at: int
    kind: str
    actor: str
    step: str | None
    attempt: int | None
    format: int
    salt: str
    body: str
    erased: str | None


class PlacedRecord(Struct, frozen=True):
    """An event and its position in the order of all events when it was archived."""

    place: int
    record: Record


Line: TypeAlias = DefinitionLine | EventLine

_encode: Final = msgspec.json.Encoder(order="sorted").encode
_header: Final = msgspec.json.Decoder(ArchiveHeader)
_line: Final[msgspec.json.Decoder[Line]] = msgspec.json.Decoder(Line)


class ArchiveContent(Struct, frozen=True):
    """An archive file as it was read: every run in it is whole."""

    header: ArchiveHeader
    runs: Mapping[str, Sequence[PlacedRecord]]
    definitions: Mapping[str, bytes]


def broken(archive: str, reason: str) -> IntegrityBroken:
    """The error that says why an archive file is invalid."""
    return IntegrityBroken(f"the archive {archive} {reason}", hint=HINT)


def packed(runs: Iterable[Sequence[PlacedRecord]], definitions: Mapping[str, bytes]) -> bytes:
    """Everything after the header's line."""
    lines: list[Line] = [DefinitionLine(one, definitions[one].decode()) for one in sorted(definitions)]
    lines += [_event_line(placed) for run in runs for placed in run]
    content = b"".join(_encode(line) + b"\n" for line in lines)
    if len(content) > CONTENT_BYTES_MAX:
        raise Limited("the runs are too large for an archive file")
    gzip = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
    return gzip.compress(content) + gzip.flush()


def digest_of(data: bytes) -> str:
    """The digest of bytes, as content hashes are written."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def signed_bytes(header: ArchiveHeader) -> bytes:
    """The exact bytes that a key signs: the header without the signature."""
    return _encode(replace(header, signature=""))


def file_bytes(header: ArchiveHeader, rest: bytes) -> bytes:
    """The whole file."""
    return _encode(header) + b"\n" + rest


def header_of(data: bytes, name: str) -> tuple[ArchiveHeader, bytes]:
    """The header of a file, and what follows it; its digest is right, its signature is not looked at."""
    line, newline, rest = data.partition(b"\n")
    if len(line) > HEADER_BYTES_MAX or not newline:
        raise broken(name, "is no archive: its first line is not a header")
    try:
        header = _header.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise broken(name, f"can't be read: {error}") from error
    if header.format != ARCHIVE_FORMAT:
        raise broken(name, f"has a format that is not known to this handrail: {header.format[:40]!r}")
    if _encode(header) != line or digest_of(rest) != header.digest:
        raise broken(name, "is not as it was written: it was changed or cut")
    return header, rest


def content_of(data: bytes, name: str) -> ArchiveContent:
    """All runs in a file, each proved by its own hashes; a signature is the caller's to check."""
    header, rest = header_of(data, name)
    runs: dict[str, list[PlacedRecord]] = {}
    definitions: dict[str, bytes] = {}
    for line in _inflated(rest, name).splitlines():
        try:
            one = _line.decode(line)
            if isinstance(one, DefinitionLine):
                definitions[one.hash] = one.text.encode()
                continue
            known = runs.setdefault(one.run, [])
            known.append(_placed(one, known[-1].record.hash if known else GENESIS))
        except (msgspec.MsgspecError, ValueError) as error:
            raise broken(name, f"can't be read: {error}") from error
    _require_proved(header, runs, name)
    if any(digest_of(text) != content_hash for content_hash, text in definitions.items()):
        raise broken(name, "has a definition that was changed")
    return ArchiveContent(header, runs, definitions)


def _require_proved(header: ArchiveHeader, runs: Mapping[str, Sequence[PlacedRecord]], name: str) -> None:
    """Refuse a file whose runs are not exactly those of its header, event by event."""
    for noted in header.runs:
        if not _is_whole(noted, runs.get(noted.run, ())):
            raise broken(name, f"has events of {noted.run} that are not the archived ones")
    if runs.keys() != {noted.run for noted in header.runs}:
        raise broken(name, "has events of a run that its header does not name")


def _is_whole(noted: ArchivedRun, run: Sequence[PlacedRecord]) -> bool:
    # The hashes were computed from the events: equal ones prove every field of every event.
    numbers = [placed.record.n for placed in run]
    digest = hashes_digest(placed.record.hash for placed in run)
    return numbers == list(range(1, noted.n + 1)) and digest == noted.hashes


def _inflated(rest: bytes, name: str) -> bytes:
    # Bounded: a file that is forged must not fill the memory.
    gzip = zlib.decompressobj(GZIP)
    try:
        content = gzip.decompress(rest, CONTENT_BYTES_MAX + 1)
    except zlib.error as error:
        raise broken(name, "is damaged") from error
    if not gzip.eof or gzip.unused_data or len(content) > CONTENT_BYTES_MAX:
        raise broken(name, "is cut, or larger than handrail writes")
    return content


def _event_line(placed: PlacedRecord) -> EventLine:
    record = placed.record
    return EventLine(
        run=record.stream,
        place=placed.place,
        n=record.n,
        at=record.at,
        kind=record.kind,
        actor=record.actor,
        step=record.step,
        attempt=record.attempt,
        format=record.format,
        salt=record.salt.hex(),
        body=record.body.decode(),
        erased=None if record.erased is None else record.erased.hex(),
    )


def _placed(line: EventLine, before: bytes) -> PlacedRecord:
    record = Record(
        stream=line.run,
        n=line.n,
        at=line.at,
        kind=line.kind,
        actor=line.actor,
        step=line.step,
        attempt=line.attempt,
        format=line.format,
        salt=bytes.fromhex(line.salt),
        body=line.body.encode(),
        hash=b"",
        erased=None if line.erased is None else bytes.fromhex(line.erased),
    )
    return PlacedRecord(line.place, chained(before, record))
