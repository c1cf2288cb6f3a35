"""Proof bundles: one run in one file, to be checked elsewhere without a store.

Pure: the exact bytes. The first line is the header; it contains the digest of everything that follows, and its
signature covers the rest of the header. The parts follow, one per line, in the order of PARTS. A file that is not
byte for byte what handrail would write for its content is refused, so no byte can change unnoticed. Whether the parts
match each other is checked in engine/proving/bundle_check.py."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias, get_args

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from handrail.domain.errors import IntegrityBroken, Limited
from handrail.domain.journal.chain import Record
from handrail.domain.journal.checkpoint import SealedCheckpoint

BUNDLE_FORMAT: Final = "handrail-proof-1"
BUNDLE_BYTES_MAX: Final = 256 * 1024 * 1024
HEADER_BYTES_MAX: Final = 4_096
PARTS_MAX: Final = 1_000_000
JUDGED: Final = frozenset({"step_completed", "output_refused"})
"""The events that contain the evidence of checks."""
APPROVAL: Final = "approval_"
HINT: Final = "do not rely on it; export it again where it was made: `handrail journal export RUN --bundle FILE`"


class BundleHeader(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which run a bundle is of, and which key signed it."""

    format: str
    run: str
    n: int
    """How many events the run had."""
    head: str
    """The hash of the last of them."""
    made: int
    digest: str
    """Of every byte after the header's line."""
    key: str
    """The public key, as hex."""
    signature: str = ""


class DefinitionPart(Struct, frozen=True, tag_field="part", tag="definition", forbid_unknown_fields=True):
    """The text that the run is pinned to, with the workflows that it calls inlined."""

    hash: str
    text: str


class ToolPart(Struct, frozen=True, tag_field="part", tag="tool", forbid_unknown_fields=True):
    """How a server described a tool when the run started."""

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
    """The evidence of one check, copied from an event for readers."""

    event: int
    step: str
    evidence: Any


class ApprovalPart(Struct, frozen=True, tag_field="part", tag="approval", forbid_unknown_fields=True):
    """What a person was asked or answered, copied from an event for readers."""

    event: int
    at: int
    kind: str
    actor: str
    step: str
    digest: str = ""
    words: str = ""
    channel: str | UnsetType = UNSET
    """How an answer came; left out where the event does not say, as in bundles from before channels were recorded."""


class ErasurePart(Struct, frozen=True, tag_field="part", tag="erasure", forbid_unknown_fields=True):
    """An event's content was erased: who did it, why, and the digests that still prove its place."""

    event: int
    at: int
    actor: str
    digest: str
    residue: str
    reason: str


class CheckpointPart(Struct, frozen=True, tag_field="part", tag="checkpoint", forbid_unknown_fields=True):
    """The newest checkpoint that covers the run.

    A checkpoint names all streams that changed. It is included only if those are this run and the store's own stream,
    so that nothing about other runs leaks. Otherwise only its digest is, covered by the bundle's signature."""

    number: int
    at: int
    digest: str
    n: int
    """How many events of the run it covers."""
    hash: str
    """The hash of the last of them."""
    sealed: SealedCheckpoint | None = None


Part: TypeAlias = DefinitionPart | ToolPart | EventPart | EvidencePart | ApprovalPart | ErasurePart | CheckpointPart
PARTS: Final[tuple[type[Part], ...]] = get_args(Part)
"""The kinds of parts, in the order in which a bundle contains them."""

_encode: Final = msgspec.json.Encoder(order="sorted").encode
_header: Final = msgspec.json.Decoder(BundleHeader)
_part: Final[msgspec.json.Decoder[Part]] = msgspec.json.Decoder(Part)


class Bundle(Struct, frozen=True):
    """A bundle as it was read: its format is valid, its content is not verified yet."""

    header: BundleHeader
    parts: tuple[Part, ...]

    def of(self, kind: type[Any]) -> list[Any]:
        """The parts of one kind."""
        return [part for part in self.parts if isinstance(part, kind)]


def broken(reason: str) -> IntegrityBroken:
    """The error that says why a bundle is invalid."""
    return IntegrityBroken(reason, hint=HINT)


def rest_of(parts: Iterable[Part]) -> bytes:
    """Everything after the header's line."""
    rest = b"".join(_encode(part) + b"\n" for part in parts)
    if len(rest) > BUNDLE_BYTES_MAX - HEADER_BYTES_MAX:
        raise Limited(f"the bundle would be larger than {BUNDLE_BYTES_MAX // 2**20} MiB", hint="export the run plainly")
    return rest


def digest_of(data: bytes) -> str:
    """The digest of bytes, as content hashes are written."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def signed_bytes(header: BundleHeader) -> bytes:
    """The exact bytes that the store's key signs: the header without the signature."""
    return _encode(replace(header, signature=""))


def bundle_bytes(header: BundleHeader, rest: bytes) -> bytes:
    """The whole file."""
    return _encode(header) + b"\n" + rest


def bundle_from(data: bytes) -> Bundle:
    """The bundle in a file; anything that handrail would not have written exactly so is refused."""
    if len(data) > BUNDLE_BYTES_MAX:
        raise broken(f"it is larger than {BUNDLE_BYTES_MAX // 2**20} MiB")
    line, newline, rest = data.partition(b"\n")
    if len(line) > HEADER_BYTES_MAX or not newline:
        raise broken("it is not a proof bundle: its first line is not a header")
    header = _decoded(_header, line, "its header")
    if header.format != BUNDLE_FORMAT:
        raise broken(f"its format {header.format[:40]!r} is not known to this handrail")
    if digest_of(rest) != header.digest:
        raise broken("its content does not match its header: it was changed or cut")
    return Bundle(header, tuple(_parts(rest)))


def record_of(run: str, part: EventPart) -> Record:
    """The stored record that an event part was made from."""
    try:
        salt, event_hash = bytes.fromhex(part.salt), bytes.fromhex(part.hash)
        erased = None if part.erased is None else bytes.fromhex(part.erased)
    except ValueError as error:
        raise broken(f"event {part.n}: a field is not valid hex") from error
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
    """A record as a bundle contains it."""
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
    """The evidence of checks, taken from the events."""
    return [
        EvidencePart(event=record.n, step=record.step or "", evidence=one)
        for record in records
        if record.kind in JUDGED
        for one in _listed(_body(record).get("evidence"))
    ]


def approval_parts(records: Iterable[Record]) -> list[ApprovalPart]:
    """What people were asked and answered, taken from the events."""
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
        channel=str(body["channel"]) if "channel" in body else UNSET,
    )


def _body(record: Record) -> Mapping[str, Any]:
    # From the raw JSON, not the event class: a copy must stay the same even if the class gets new fields later.
    body = msgspec.json.decode(record.body)
    return body if isinstance(body, dict) else {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _parts(rest: bytes) -> Iterable[Part]:
    if not rest.endswith(b"\n") or rest.count(b"\n") > PARTS_MAX:
        raise broken("it does not end with a line break, or has too many lines")
    last = 0
    for number, line in enumerate(rest[:-1].split(b"\n"), start=2):
        part = _decoded(_part, line, f"line {number}")
        place = PARTS.index(type(part))
        if place < last:
            raise broken(f"line {number}: the parts are out of order")
        last = place
        yield part


def _decoded(decoder: msgspec.json.Decoder[Any], line: bytes, name: str) -> Any:
    try:
        value = decoder.decode(line)
        is_ours = _encode(value) == line
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError) as error:
        raise broken(f"{name} can't be read: {error}") from error
    if not is_ours:
        raise broken(f"{name} is not in the form that handrail writes")
    return value
