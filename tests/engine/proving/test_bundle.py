"""Proof bundles: one run in one file, checked without a store, and refused when any byte of it has changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec.structs import replace

from engine.bundling import (
    BEGUN,
    CARD,
    EVENTS,
    GREEN,
    PLAN,
    RED,
    RUN,
    account,
    bundle_in,
    bundle_of,
    opened,
    parts_in,
    sealed_again,
    signed,
    store_with,
    why,
)
from engine.history import KEY, OTHER_KEY, RUN_A, RUN_B, fill, notary_of
from handrail.domain.errors import IntegrityBroken, Invalid, Limited, NotFound
from handrail.domain.journal import proof_bundle as bundles
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.event import (
    RunPaused,
)
from handrail.domain.journal.projection import Change
from handrail.domain.journal.proof_bundle import (
    ApprovalPart,
    CheckpointPart,
    DefinitionPart,
    ErasurePart,
    EventPart,
    EvidencePart,
    Part,
    ToolPart,
    approval_parts,
    bundle_bytes,
    bundle_from,
    digest_of,
    event_part,
    evidence_parts,
    record_of,
    rest_of,
    signed_bytes,
)
from handrail.domain.json import canonical_bytes, digest
from handrail.domain.run.status import RunStatus
from handrail.engine.proving import bundle_writer as bundling
from handrail.engine.proving.bundle_check import check_bundle
from handrail.engine.proving.bundle_writer import make_bundle
from handrail.engine.proving.erasure import erase_payload
from handrail.engine.proving.signature import fingerprint, holds
from handrail.engine.proving.trusted_key import trusted
from handrail.storage.checkpoint_log import CheckpointFile
from handrail.storage.memory import MemoryStore
from support import record_writer, seeded_entropy, ticking_clock


async def test_a_bundle_shows_the_evidence_of_what_was_refused_and_of_what_passed(tmp_path: Path) -> None:
    parts = bundle_from(await bundle_of(tmp_path)).of(EvidencePart)
    assert [(part.event, part.step, part.evidence) for part in parts] == [(5, "code", RED), (6, "code", GREEN)]


async def test_no_byte_of_a_bundle_can_change_unseen(tmp_path: Path) -> None:
    data = await bundle_of(tmp_path, ("person:ada", BEGUN), *EVENTS[5:9])
    for place in range(len(data)):
        for flip in (0x01, 0x20, 0x80):  # 0x20 turns a letter's case: hex would still be read as the same
            changed = bytearray(data)
            changed[place] ^= flip
            with pytest.raises(IntegrityBroken):
                check_bundle(bytes(changed))


async def test_a_bundle_that_is_cut_longer_or_out_of_order_is_refused(tmp_path: Path) -> None:
    data = await bundle_of(tmp_path)
    lines = data.splitlines(keepends=True)
    swapped = [*lines[:4], lines[5], lines[4], *lines[6:]]
    for changed in (
        b"",
        data[: len(data) // 2],
        data[:-1],
        b"".join(lines[:-1]),
        lines[0],
        data + b"\n",
        data + b" ",
        data + lines[-1],
        b"\n" + data,
        b" " + data,
        data.replace(b"\n", b"\r\n"),
        b"".join(swapped),
        b"".join([*lines[:5], *lines[6:]]),
    ):
        assert why(changed)


async def test_who_can_sign_still_can_not_take_out_move_or_change_an_event(tmp_path: Path) -> None:
    header, parts = opened(await bundle_of(tmp_path))
    place = next(k for k, part in enumerate(parts) if isinstance(part, EventPart)) + 2
    event = parts[place]
    assert isinstance(event, EventPart)

    def shown(*instead: Part) -> str:
        return why(signed(header, [*parts[:place], *instead, *parts[place + 1 :]]))

    assert "event 3 is missing" in shown()
    assert "its hash does not match" in shown(replace(event, actor="eve"))
    assert "link to the previous event is wrong" in shown(replace(event, prev="00"))
    assert "hex" in shown(replace(event, salt="zz"))
    assert "out of order" in why(signed(header, [*parts[1:], parts[0]]))
    assert "is not the one named in its header" in why(signed(replace(header, n=4), parts))
    assert "not of a run" in why(signed(replace(header, run="plan/x"), parts))
    eventless = [part for part in parts if not isinstance(part, EventPart)]
    assert "not of a run" in why(signed(header, eventless))


async def test_texts_evidence_and_approvals_must_be_those_that_the_events_name(tmp_path: Path) -> None:
    header, parts = opened(await bundle_of(tmp_path))

    def shown(kind: type[Part], *instead: Part) -> str:
        others = [part for part in parts if not isinstance(part, kind)]
        place = next(k for k, part in enumerate(parts) if isinstance(part, kind))
        return why(signed(header, [*others[:place], *instead, *others[place:]]))

    text = canonical_bytes(PLAN).decode()
    other = DefinitionPart(hash=digest(CARD), text=canonical_bytes(CARD).decode())
    assert "the one definition" in shown(DefinitionPart)
    assert "the one definition" in shown(DefinitionPart, other)
    assert "the text of" in shown(DefinitionPart, DefinitionPart(hash=digest(PLAN), text=text + " "))
    assert "exactly the tools" in shown(ToolPart)
    assert "the text of" in shown(ToolPart, ToolPart(name="git.tag", hash=digest(CARD), text="{}"))
    assert "the evidence" in shown(EvidencePart)
    assert "the evidence" in shown(EvidencePart, EvidencePart(event=5, step="code", evidence=GREEN))
    assert "the approvals" in shown(ApprovalPart)


async def test_another_key_is_found_by_the_right_fingerprint(tmp_path: Path) -> None:
    header, parts = opened(await bundle_of(tmp_path))
    forged = signed(header, [part for part in parts if not isinstance(part, CheckpointPart)], OTHER_KEY)
    assert account(forged).key == fingerprint(OTHER_KEY.public), "by itself it holds: it is only somebody else's word"
    with pytest.raises(IntegrityBroken, match="another key than the one you trust"):
        check_bundle(forged, trusted=fingerprint(KEY.public))
    assert "the signature of checkpoint 1 is invalid" in why(signed(header, parts, OTHER_KEY))
    assert check_bundle(await bundle_of(tmp_path / "two"), trusted=fingerprint(KEY.public)).fingerprint


async def test_a_signature_or_key_in_another_writing_does_not_count() -> None:
    made = KEY.sign(b"words").hex()
    assert holds(KEY.public, b"words", made)
    assert not holds(KEY.public, b"words", made.upper())
    assert not holds(KEY.public, b"other words", made)
    assert not holds("not hex", b"words", made)
    assert not holds("00", b"words", made)


async def test_a_checkpoint_of_this_run_alone_is_in_the_bundle_and_must_fit(tmp_path: Path) -> None:
    data = await bundle_of(tmp_path)
    assert account(data).has_checkpoint_itself
    header, parts = opened(data)
    last = parts[-1]
    assert isinstance(last, CheckpointPart)
    assert last.sealed is not None
    told = last.sealed.checkpoint
    heads = tuple((stream, n, "00" if stream == RUN else end) for stream, n, end in told.heads)
    unknowing = sealed_again(last, replace(told, heads=heads))
    for wrong, reason in (
        (replace(last, hash="00"), "has a different event 9"),
        (replace(last, n=10), "has a different event 10"),
        (replace(last, at=1), "does not match its description"),
        (replace(last, sealed=replace(last.sealed, signature="!")), "the signature of checkpoint 1 is invalid"),
        (unknowing, "does not cover event 9"),
    ):
        assert reason in why(signed(header, [*parts[:-1], wrong]))
    assert "more than one checkpoint" in why(signed(header, [*parts, last]))


async def test_a_checkpoint_that_names_others_is_shown_by_its_digest_alone(tmp_path: Path) -> None:
    store = MemoryStore()
    await fill(store)
    data, proven = await bundle_in(store, tmp_path, RUN_A)
    checkpoint = proven.checkpoint
    assert checkpoint is not None
    assert (checkpoint.n, checkpoint.sealed, checkpoint.number) == (4, None, 1)
    assert not account(data).has_checkpoint_itself
    assert RUN_B.encode() not in data
    assert b"plan/" not in data


async def test_a_run_that_no_checkpoint_knows_yet_is_vouched_for_by_the_signature(tmp_path: Path) -> None:
    store = await store_with(*EVENTS)
    data, proven = await make_bundle(store, CheckpointFile(tmp_path), RUN, signer=KEY, clock=ticking_clock())
    assert proven.checkpoint is None
    assert (account(data).sealed, account(data).checkpoint) == (0, 0)


async def test_a_checkpoint_of_the_runs_beginning_counts_as_far_as_it_goes(tmp_path: Path) -> None:
    store = await store_with(*EVENTS[:3])
    await notary_of(store, tmp_path).seal()
    end = (await store.read(RUN))[-1]
    records, _ = record_writer(1).write(Head(RUN, end.n, end.hash), [RunPaused(reason="tea")], actor="person:ada")
    await store.append(records, Change())
    data, _ = await make_bundle(store, CheckpointFile(tmp_path), RUN, signer=KEY, clock=ticking_clock())
    told = account(data)
    assert (told.events, told.sealed, told.status, told.has_ended) == (4, 3, RunStatus.PAUSED, False)


async def test_a_checkpoint_of_events_that_came_while_bundling_is_left_out(tmp_path: Path) -> None:
    before, after = await store_with(*EVENTS[:3]), await store_with(*EVENTS)
    for store in (before, after):
        await notary_of(store, tmp_path).seal()
    _, proven = await make_bundle(before, CheckpointFile(tmp_path), RUN, signer=KEY, clock=ticking_clock())
    assert proven.checkpoint is not None
    assert (proven.checkpoint.number, proven.checkpoint.n) == (1, 3)


async def test_a_checkpoint_that_another_key_signed_vouches_for_nothing(tmp_path: Path) -> None:
    store = await store_with(*EVENTS)
    await notary_of(store, tmp_path, key=OTHER_KEY).seal()
    with pytest.raises(IntegrityBroken, match="checkpoint 1: it is signed by another key"):
        await make_bundle(store, CheckpointFile(tmp_path), RUN, signer=KEY, clock=ticking_clock())


async def test_an_erased_event_still_proves_its_place_and_is_named(tmp_path: Path) -> None:
    store = await store_with(*EVENTS)
    await erase_payload(
        store, store, RUN, 9, reason="a name", actor="person:ada", clock=ticking_clock(), entropy=seeded_entropy(9)
    )
    data, _ = await bundle_in(store, tmp_path)
    told = account(data)
    assert told.erased == (9,)
    assert b"looks right" not in data
    assert told.approvals[-1].words == "[erased]"
    header, parts = opened(data)
    (note,) = (part for part in parts if isinstance(part, ErasurePart))
    assert (note.reason, note.actor) == ("a name", "person:ada")
    without = [part for part in parts if part is not note]
    assert "no payload_erased event says so" in why(signed(header, without))
    twice = [*parts[: parts.index(note)], note, *parts[parts.index(note) :]]
    assert "repeated" in why(signed(header, twice))


async def test_a_run_that_does_not_hold_gets_no_bundle(tmp_path: Path) -> None:
    log = CheckpointFile(tmp_path)
    for run, error in (("plan/x", Invalid), ("run_nowhere", NotFound)):
        with pytest.raises(error):
            await make_bundle(await store_with(), log, run, signer=KEY, clock=ticking_clock())
    without_texts = await store_with(*EVENTS, texts=(PLAN,))
    headless = await store_with(*EVENTS[1:])
    damaged = Damaged()
    await fill(damaged)
    for store, run, reason in (
        (without_texts, RUN, "is not in the store"),
        (headless, RUN, "does not start a run"),
        (damaged, RUN_A, "can't be proven: event 3 of run_aaaaaaaa: its hash does not match"),
    ):
        with pytest.raises(IntegrityBroken, match=reason):
            await make_bundle(store, log, run, signer=KEY, clock=ticking_clock())


async def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await store_with(*EVENTS)
    data, _ = await bundle_in(store, tmp_path)
    monkeypatch.setattr(bundling, "EVENTS_MAX", 8)
    with pytest.raises(Limited, match="more than 8 events"):
        await bundle_in(store, tmp_path)
    monkeypatch.setattr(bundles, "BUNDLE_BYTES_MAX", len(data) - 1)
    assert "larger than" in why(data)
    with pytest.raises(Limited, match="larger than"):
        rest_of(parts_in(data))
    monkeypatch.setattr(bundles, "BUNDLE_BYTES_MAX", len(data))
    monkeypatch.setattr(bundles, "PARTS_MAX", 3)
    assert "too many lines" in why(data)
    monkeypatch.setattr(bundles, "HEADER_BYTES_MAX", 10)
    assert "its first line is not a header" in why(data)


async def test_what_handrail_would_not_have_written_is_refused_even_when_it_is_signed(tmp_path: Path) -> None:
    header, parts = opened(await bundle_of(tmp_path))
    for rest, reason in (
        (b'{"part": "tool"}\n', "can't be read"),
        (b'{"part":"other"}\n', "can't be read"),
        (rest_of(parts).replace(b'{"hash":', b'{ "hash":', 1), "is not in the form that handrail writes"),
        (b"[" * 100_000 + b"\n", "can't be read"),
        (b"\xff\n", "can't be read"),
        (rest_of(parts)[:-1], "does not end with a line break"),
        (b"", "does not end with a line break"),
    ):
        told = replace(header, digest=digest_of(rest))
        assert reason in why(bundle_bytes(replace(told, signature=KEY.sign(signed_bytes(told)).hex()), rest))
    assert "its format 'handrail-proof-9' is not known" in why(
        signed(replace(header, format="handrail-proof-9"), parts)
    )


async def test_a_trusted_key_is_a_fingerprint_or_a_file(tmp_path: Path) -> None:
    mine = fingerprint(KEY.public)
    assert trusted(mine) == trusted(mine.removeprefix("sha256:").upper()) == mine
    other = generate_private_key(SECP256R1()).public_key()
    file = tmp_path / "other.pub"
    file.write_bytes(other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(Invalid, match="another kind"):
        trusted(str(file))
    file.write_text("nothing")
    with pytest.raises(Invalid, match="contains no public key"):
        trusted(str(file))
    with pytest.raises(NotFound, match="no key file"):
        trusted(str(tmp_path / "missing"))


async def test_evidence_that_is_no_list_is_shown_as_none() -> None:
    record = Record(RUN, 1, 0, "step_completed", "a", "x", None, 1, b"", b'{"evidence":3}', b"")
    assert evidence_parts([record, replace(record, body=b"[]")]) == []
    (asked,) = approval_parts([replace(record, kind="approval_expired", step=None, body=b'{"step":"x"}')])
    assert (asked.digest, asked.words, asked.step) == ("", "", "")
    again = event_part(record, b"")
    assert record_of(RUN, again) == record


class Damaged(MemoryStore):
    """A store in which somebody has changed an event."""

    async def read(self, stream: str, *, after: int = 0, limit: int = 100_000) -> list[Record]:
        found = await super().read(stream, after=after, limit=limit)
        return [replace(record, actor="eve") if (record.stream, record.n) == (RUN_A, 3) else record for record in found]
