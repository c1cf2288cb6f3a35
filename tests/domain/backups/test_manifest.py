"""Manifests are read only in the form in which they are written; moments are events or instants."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from handrail.domain.backups.manifest import (
    BackupPart,
    JournalCounts,
    Manifest,
    PartContent,
    SignedManifest,
    StoreKind,
    differences,
    heads_digest,
    manifest_from,
    signed_bytes,
)
from handrail.domain.backups.moment import AtEvent, AtInstant, moment_from
from handrail.domain.errors import IntegrityBroken, Invalid
from handrail.domain.journal.chain import Head

PART = BackupPart(
    content=PartContent.JOURNAL, name="journal.db.gz", bytes=1, sha256="a", content_bytes=2, content_sha256="b"
)
COUNTS = JournalCounts(events=3, streams=2, definitions=1, heads="c", latest=4)
MANIFEST = Manifest(
    id="20260102T030405Z-0a1b2c3d",
    store="store_a",
    kind=StoreKind.SQLITE,
    schema=4,
    handrail="0.1.0",
    at=5,
    journal=COUNTS,
    checkpoints=1,
    parts=(PART,),
)
SIGNED = SignedManifest(manifest=MANIFEST, key="00", signature="11")


def test_a_manifest_is_read_as_it_was_written() -> None:
    assert manifest_from(signed_bytes(SIGNED)) == SIGNED
    assert MANIFEST.part(PartContent.JOURNAL) == PART
    assert MANIFEST.part(PartContent.KEYS) is None


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (replace(MANIFEST, format=2), "format 2"),
        (replace(MANIFEST, parts=()), "each file once"),
        (replace(MANIFEST, parts=(PART, PART)), "each file once"),
        (replace(MANIFEST, parts=(replace(PART, name="../journal.db.gz"),)), "each file once"),
        (replace(MANIFEST, parts=(replace(PART, name="/etc/passwd"),)), "each file once"),
    ],
)
def test_a_manifest_that_handrail_would_not_write_is_refused(manifest: Manifest, reason: str) -> None:
    with pytest.raises(IntegrityBroken, match=reason):
        manifest_from(signed_bytes(replace(SIGNED, manifest=manifest)))


def test_another_form_of_the_same_values_is_refused() -> None:
    for content in (b"", b"{}", signed_bytes(SIGNED) + b"\n", signed_bytes(SIGNED).replace(b":", b": ", 1)):
        with pytest.raises(IntegrityBroken):
            manifest_from(content)


def test_the_digest_of_ends_sees_each_of_their_values_and_not_their_order() -> None:
    one, two = Head("run_a", 1, b"1" * 32), Head("run_b", 2, b"2" * 32)
    whole = heads_digest([one, two])
    assert heads_digest([two, one]) == whole
    others = ([one], [one, Head("run_c", 2, two.hash)], [one, Head("run_b", 3, two.hash)], [one, Head("run_b", 2)])
    assert whole not in {heads_digest(other) for other in others}


def test_every_difference_to_the_manifest_is_named() -> None:
    assert differences(COUNTS, COUNTS) == []
    for name in JournalCounts.__struct_fields__:
        changed = replace(COUNTS, **{name: "x" if name == "heads" else 99})
        (reason,) = differences(COUNTS, changed)
        assert f"the manifest has {name}" in reason


def test_a_moment_is_an_event_or_an_instant() -> None:
    assert moment_from("run_7k3m9q2x:14") == AtEvent("run_7k3m9q2x", 14)
    assert moment_from("plan/prj_a/ship#2") == AtEvent("plan/prj_a/ship", 2)
    assert moment_from("1970-01-01T00:00:01.5Z") == AtInstant(1_500)
    assert moment_from("1970-01-01T01:00:01+01:00") == AtInstant(1_000)
    for wrong in ("", "yesterday", "run_a", "run_a:0", "run_a:-1", "2026-01-01T00:00:00", "14"):
        with pytest.raises(Invalid):
            moment_from(wrong)
