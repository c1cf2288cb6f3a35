"""Proof bundles: one run in one file, for whoever wants to check it elsewhere and has no store.

Pure: the exact bytes. The first line is the header; it names the digest of all that follows, and its signature covers
the rest of the header. What follows are parts, a line each, in the order of PARTS. A file that is not byte for byte
what handrail would write for what it says is refused, so no byte can change unseen. Whether the parts fit each other
is engine/bundle_check.py's business."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.chain import Record
from handrail.domain.checkpoint import SealedCheckpoint
from handrail.domain.errors import IntegrityBroken, Limited

BUNDLE_FORMAT: Final = "handrail-proof-1"
BUNDLE_BYTES_MAX: Final = 256 * 1024 * 1024
HEADER_BYTES_MAX: Final = 4_096
PARTS_MAX: Final = 1_000_000
JUDGED: Final = frozenset({"step_completed", "output_refused"})
"""The events that hold the evidence of checks."""
APPROVAL: Final = "approval_"
HINT: Final = "do not rely on it; ask for it again where it was made: `handrail journal export RUN --bundle FILE`"


class BundleHeader(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a bundle is of, and who vouches for that."""

    format: str
    run: str
    n: int
    """How many events the run had."""
    head: str
    """The hash of the last of them."""
    made: int
    digest: str
    """Of every byte behind the header's line."""
    key: str
    """The public key, as hex."""
    signature: str = ""


class DefinitionPart(Struct, frozen=True, tag_field="part", tag="definition", forbid_unknown_fields=True):
    """The text that the run is pinned to, with the workflows that it calls inlined."""

    hash: str
    text: str


class ToolPart(Struct, frozen=True, tag_field="part", tag="tool", forbid_unknown_fields=True):
    """What a server said of a tool when the run began."""

    name: str
    hash: str
    text: str


class EventPart(Struct, frozen=True, tag_field="part", tag="event", forbid_unknown_fields=True):
    """An event exactly as it is stored; bytes are hex, except the body, which is the text that was hashed."""

    n: int
    at: int
    kind: str
    actor: str
    step: str | None
    attempt: int | None
    format: int
    salt: str
    body: str
    prev: str
    hash: str
    erased: str | None = None


class EvidencePart(Struct, frozen=True, tag_field="part", tag="evidence", forbid_unknown_fields=True):
    """What a check of a step left behind, taken from an event, for reading."""

    event: int
    step: str
    evidence: Any


class ApprovalPart(Struct, frozen=True, tag_field="part", tag="approval", forbid_unknown_fields=True):
    """What a person was asked, or said, taken from an event, for reading."""

    event: int
    at: int
    kind: str
    actor: str
    step: str
    digest: str = ""
    words: str = ""


class ErasurePart(Struct, frozen=True, tag_field="part", tag="erasure", forbid_unknown_fields=True):
    """That the words of an event were erased: by whom, why, and what proves its place since."""

    event: int
    at: int
    actor: str
    digest: str
    residue: str
    reason: str


class CheckpointPart(Struct, frozen=True, tag_field="part", tag="checkpoint", forbid_unknown_fields=True):
    """The newest checkpoint that knows the run.

    A checkpoint names all streams that changed: it stands here itself only if those are this run and the store's own,
    so that nothing is told of others. Otherwise its digest does, and the bundle's signature vouches for that."""

    number: int
    at: int
    digest: str
    n: int
    """How many events of the run it knows."""
    hash: str
    """The hash of the last of them."""
    sealed: SealedCheckpoint | None = None


Part: TypeAlias = DefinitionPart | ToolPart | EventPart | EvidencePart | ApprovalPart | ErasurePart | CheckpointPart
PARTS: Final[tuple[type[Part], ...]] = get_args(Part)
"""The kinds of parts, in the order in which they stand in a bundle."""

_encode: Final = msgspec.json.Encoder(order="sorted").encode
_header: Final = msgspec.json.Decoder(BundleHeader)
_part: Final[msgspec.json.Decoder[Part]] = msgspec.json.Decoder(Part)


class Bundle(Struct, frozen=True):
    """A bundle as it was read: its form holds, what it says is to be proven."""

    header: BundleHeader
    parts: tuple[Part, ...]

    def of(self, kind: type[Any]) -> list[Any]:
        """The parts of one kind."""
        return [part for part in self.parts if isinstance(part, kind)]


def broken(reason: str) -> IntegrityBroken:
    """The error that says why a bundle proves nothing."""
    return IntegrityBroken(reason, hint=HINT)


def rest_of(parts: Iterable[Part]) -> bytes:
    """All that stands behind the header's line."""
    rest = b"".join(_encode(part) + b"\n" for part in parts)
    if len(rest) > BUNDLE_BYTES_MAX - HEADER_BYTES_MAX:
        raise Limited(f"the bundle would be larger than {BUNDLE_BYTES_MAX // 2**20} MiB", hint="export the run plainly")
    return rest


def digest_of(data: bytes) -> str:
    """The digest of bytes, as content hashes are written."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def signed_bytes(header: BundleHeader) -> bytes:
    """The exact bytes that the store's key signs: the header but for the signature."""
    return _encode(replace(header, signature=""))


def bundle_bytes(header: BundleHeader, rest: bytes) -> bytes:
    """The whole file."""
    return _encode(header) + b"\n" + rest


def bundle_from(data: bytes) -> Bundle:
    """The bundle that a file holds; whatever handrail would not have written so is refused."""
    if len(data) > BUNDLE_BYTES_MAX:
        raise broken(f"it is larger than {BUNDLE_BYTES_MAX // 2**20} MiB")
    line, newline, rest = data.partition(b"\n")
    if len(line) > HEADER_BYTES_MAX or not newline:
        raise broken("it is not a proof bundle: its first line is no header")
    header = _decoded(_header, line, "its header")
    if header.format != BUNDLE_FORMAT:
        raise broken(f"its format {header.format[:40]!r} is not known to this handrail")
    if digest_of(rest) != header.digest:
        raise broken("what stands behind its header is not what the header says: it was changed or cut")
    return Bundle(header, tuple(_parts(rest)))


def record_of(run: str, part: EventPart) -> Record:
    """The record that an event in a bundle stands for."""
    try:
        salt, event_hash = bytes.fromhex(part.salt), bytes.fromhex(part.hash)
        erased = None if part.erased is None else bytes.fromhex(part.erased)
    except ValueError as error:
        raise broken(f"event {part.n}: what should be hex is not") from error
    return Record(
        stream=run,
        n=part.n,
        at=part.at,
        kind=part.kind,
        actor=part.actor,
        step=part.step,
        attempt=part.attempt,
        format=part.format,
        salt=salt,
        body=part.body.encode(),
        hash=event_hash,
        erased=erased,
    )


def event_part(record: Record, prev: bytes) -> EventPart:
    """A record as it stands in a bundle."""
    return EventPart(
        n=record.n,
        at=record.at,
        kind=record.kind,
        actor=record.actor,
        step=record.step,
        attempt=record.attempt,
        format=record.format,
        salt=record.salt.hex(),
        body=record.body.decode(),
        prev=prev.hex(),
        hash=record.hash.hex(),
        erased=None if record.erased is None else record.erased.hex(),
    )


def evidence_parts(records: Iterable[Record]) -> list[EvidencePart]:
    """What checks left behind, as the events tell it."""
    return [
        EvidencePart(event=record.n, step=record.step or "", evidence=one)
        for record in records
        if record.kind in JUDGED
        for one in _listed(_body(record).get("evidence"))
    ]


def approval_parts(records: Iterable[Record]) -> list[ApprovalPart]:
    """What persons were asked and said, as the events tell it."""
    return [_approval(record, _body(record)) for record in records if record.kind.startswith(APPROVAL)]


def _approval(record: Record, body: Mapping[str, Any]) -> ApprovalPart:
    return ApprovalPart(
        event=record.n,
        at=record.at,
        kind=record.kind,
        actor=record.actor,
        step=record.step or "",
        digest=str(body.get("digest", "")),
        words=str(body.get("text") or body.get("reason") or ""),
    )


def _body(record: Record) -> Mapping[str, Any]:
    # Not the event itself: what is copied here stays the same for ever, whatever events get to hold later.
    body = msgspec.json.decode(record.body)
    return body if isinstance(body, dict) else {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _parts(rest: bytes) -> Iterable[Part]:
    if not rest.endswith(b"\n") or rest.count(b"\n") > PARTS_MAX:
        raise broken("it does not end where a line ends, or has too many lines")
    last = 0
    for number, line in enumerate(rest[:-1].split(b"\n"), start=2):
        part = _decoded(_part, line, f"line {number}")
        place = PARTS.index(type(part))
        if place < last:
            raise broken(f"line {number}: the parts are not in their order")
        last = place
        yield part


def _decoded(decoder: msgspec.json.Decoder[Any], line: bytes, name: str) -> Any:
    try:
        value = decoder.decode(line)
        is_ours = _encode(value) == line
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError) as error:
        raise broken(f"{name} can't be read: {error}") from error
    if not is_ours:
        raise broken(f"{name} is not written as handrail writes")
    return value
