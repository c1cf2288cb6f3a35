"""Archived runs: what the journal says of runs whose events are in archive files, and what is left of them.

Pure values. The files are in archive_file.py; moving events is in engine/retention/. What the journal promises of
archived runs: docs/decisions/0020."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct, field

from handrail.domain.errors import RunArchived
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.event import Entry
from handrail.domain.journal.store_event import ArchivedRun, ArchivedRunsDeleted, RunsArchived, RunsUnarchived

ARCHIVES: Final = "archives"
"""The `stream` of a break in an archive file, and the folder in HANDRAIL_HOME where they are."""


class Tombstone(Struct, frozen=True):
    """What the store has of a run whose events are elsewhere."""

    stream: str
    n: int
    head: bytes
    archive: str
    """The archive file with its events; empty if they were deleted."""

    @property
    def end(self) -> Head:
        """The end of its stream."""
        return Head(self.stream, self.n, self.head)


def archived_refusal(run: str) -> RunArchived:
    """Why nothing can be added to a run whose events are in an archive."""
    return RunArchived(f"{run} is archived", hint=f"bring it back first: `handrail db unarchive {run}`")


class ArchivedRuns(Struct):
    """Which runs are archived, as the events of the store say."""

    runs: dict[str, ArchivedRun] = field(default_factory=dict)
    """Those whose events are not in the journal now."""
    files: dict[str, str] = field(default_factory=dict)
    """The archive file of each of them, unless they were deleted."""
    digests: dict[str, str] = field(default_factory=dict)
    """The digest of every archive file that was ever written."""

    def needed_by(self, runs: Collection[str]) -> dict[str, str]:
        """The digests of the archive files that have the events of these runs."""
        files = {self.files[run] for run in runs if run in self.files}
        return {archive: self.digests.get(archive, "") for archive in sorted(files)}


def archived_runs(entries: Iterable[Entry]) -> ArchivedRuns:
    """What the events of the store's own stream say about archived runs."""
    known = ArchivedRuns()
    for entry in entries:
        match entry.event:
            case RunsArchived(archive=archive, digest=digest, runs=runs):
                known.digests[archive] = digest
                known.runs |= {one.run: one for one in runs}
                known.files |= {one.run: archive for one in runs}
            case RunsUnarchived(runs=back):
                for run in back:
                    known.runs.pop(run, None)
                    known.files.pop(run, None)
            case ArchivedRunsDeleted(archive=archive, runs=gone, remains=remains, digest=digest):
                known.digests[remains] = digest
                known.files = {
                    run: remains if file == archive else file for run, file in known.files.items() if run not in gone
                }
            case _:
                pass
    return known


def hashes_digest(hashes: Iterable[bytes]) -> str:
    """The digest of the hashes of a stream's events, in their order."""
    digest = hashlib.sha256()
    for one in hashes:
        digest.update(one)
    return digest.hexdigest()


def archived_run(records: Iterable[Record]) -> ArchivedRun:
    """What an archiving notes of a run, from all its events."""
    kept = list(records)
    return ArchivedRun(kept[-1].stream, kept[-1].n, hashes_digest(record.hash for record in kept))
