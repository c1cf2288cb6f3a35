"""The scribe: what is kept is what was written, without secrets, chained."""

from __future__ import annotations

from dataclasses import replace

from handrail.domain.instant import instant_text
from handrail.domain.journal.chain import Head, first_break
from handrail.domain.journal.codec import FORMAT, entry_of
from handrail.domain.journal.event import AttemptStarted, DecisionRecorded, Event, RunPaused
from handrail.domain.secrets.scrubbing import SecretScrubber
from handrail.engine.clock import ID_ALPHABET, new_id, system_clock, system_entropy
from handrail.engine.known_secrets import KnownSecrets
from support import START, record_writer, seeded_entropy

HEAD = Head("run_a")


def test_records_carry_the_header_and_follow_each_other() -> None:
    events: list[Event] = [AttemptStarted(step="tag", attempt=2), RunPaused(reason="lunch")]
    records, entries = record_writer().write(HEAD, events, actor="handrail")
    assert [(record.n, record.kind, record.step, record.attempt) for record in records] == [
        (1, "attempt_started", "tag", 2),
        (2, "run_paused", None, None),
    ]
    assert {record.at for record in records} == {START}
    assert {record.format for record in records} == {FORMAT}
    assert first_break(HEAD, records) == (Head("run_a", 2, records[1].hash), None)
    assert [entry_of(record) for record in records] == entries


def test_every_record_has_its_own_salt() -> None:
    records, _ = record_writer().write(HEAD, [RunPaused(reason="x")] * 3, actor="a")
    assert len({record.salt for record in records}) == 3


def test_secrets_are_neither_in_the_record_nor_in_the_entry() -> None:
    said = DecisionRecorded(decision="use ghp_" + "a1B2" * 9, reason="the word is swordfish")
    records, entries = record_writer().write(HEAD, [said], actor="a", known=SecretScrubber({"swordfish": ""}))
    assert b"ghp_" not in records[0].body
    assert b"swordfish" not in records[0].body
    assert entries == [entry_of(records[0])]


def test_stored_secrets_are_neither_in_the_record_nor_in_the_entry_nor_in_the_actor() -> None:
    secrets = KnownSecrets(given={"swordfish": "${secret:FISH}"})
    writer = replace(record_writer(), secrets=secrets)
    said = DecisionRecorded(decision="c3dvcmRmaXNo", reason="the word is swordfish")
    records, entries = writer.write(HEAD, [said], actor="agent:swordfish")
    assert entries == [entry_of(records[0])]
    assert entries[0].event == DecisionRecorded(decision="[redacted]", reason="the word is [redacted]")
    assert records[0].actor == "agent:[redacted]"
    assert writer.kept(said) == entries[0].event


def test_ids_are_short_and_can_not_be_mistaken() -> None:
    ids = {new_id("run_", seeded_entropy(seed)) for seed in range(500)}
    assert len(ids) == 500
    assert all(len(one) == 12 and set(one.removeprefix("run_")) <= set(ID_ALPHABET) for one in ids)
    assert not set("01ilo") & set(ID_ALPHABET)


def test_instants_are_shown_in_utc() -> None:
    assert instant_text(0) == "1970-01-01T00:00:00Z"
    assert instant_text(1_763_230_000_250) == "2025-11-15T18:06:40.250Z"
    assert abs(system_clock() - START) < 10**12
    assert len(system_entropy(16)) == 16
