"""Journals written by any release fold to their recorded state for ever (invariant 7)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from golden.make import HERE, state_of
from handrail.domain.journal.chain import Head, Record, first_break
from handrail.domain.journal.codec import FORMAT, KINDS, entry_of

JOURNALS = sorted(HERE.rglob("format-*.jsonl"))


def read(journal: Path) -> list[Record]:
    return [msgspec.json.decode(line, type=Record) for line in journal.read_bytes().splitlines()]


@pytest.mark.parametrize("journal", JOURNALS, ids=lambda journal: journal.stem)
def test_a_golden_journal_folds_to_its_recorded_state(journal: Path) -> None:
    recorded = msgspec.json.decode(journal.with_suffix(".state.json").read_bytes())
    assert msgspec.json.decode(msgspec.json.encode(state_of(read(journal)))) == recorded


@pytest.mark.parametrize("journal", JOURNALS, ids=lambda journal: journal.stem)
def test_the_chain_of_a_golden_journal_holds(journal: Path) -> None:
    records = read(journal)
    for stream in {record.stream for record in records}:
        assert first_break(Head(stream), [record for record in records if record.stream == stream])[1] is None


def test_the_golden_journals_know_every_kind_of_event_and_fill_in_every_field() -> None:
    events = [entry_of(record).event for journal in JOURNALS for record in read(journal)]
    assert {record.kind for journal in JOURNALS for record in read(journal)} == set(KINDS)
    for kind, event_type in KINDS.items():
        written = [event for event in events if isinstance(event, event_type)]
        for name in event_type.__struct_fields__:
            defaults = dict(
                zip(reversed(event_type.__struct_fields__), reversed(event_type.__struct_defaults__), strict=False)
            )
            assert any(getattr(event, name) != defaults.get(name, object()) for event in written), f"{kind}.{name}"


def test_the_present_format_has_its_golden_journal() -> None:
    assert HERE / f"format-{FORMAT}.jsonl" in JOURNALS
