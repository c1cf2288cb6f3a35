"""Turns events into records: redacted, encoded, salted and chained, ready to be appended.

Everything in a journal was written here. No I/O; time and randomness are passed in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from handrail.domain.journal.chain import SALT_BYTES, Head, Record, chained
from handrail.domain.journal.codec import FORMAT, decode_event, encode_body, kind_of
from handrail.domain.journal.event import Entry, Event
from handrail.domain.secrets.redaction import redact_body
from handrail.domain.secrets.scrubbing import NOTHING_KNOWN, SecretScrubber
from handrail.engine.known_secrets import NO_SECRETS, KnownSecrets
from handrail.engine.passed_in import Clock, Entropy


@dataclass(frozen=True)
class RecordWriter:
    """Writes the records that follow the end of a stream."""

    clock: Clock
    entropy: Entropy
    secrets: KnownSecrets = NO_SECRETS

    def write(
        self, head: Head, events: Sequence[Event], *, actor: str, known: SecretScrubber = NOTHING_KNOWN
    ) -> tuple[list[Record], list[Entry]]:
        """The records that follow `head`, and their entries; neither has a secret, nor one that `known` finds."""
        at = self.clock()
        stored = self.secrets.scrubber()
        # Even a name can hold a secret: agents choose theirs.
        actor = stored.text(actor)
        records: list[Record] = []
        entries: list[Entry] = []
        n, prev = head.n, head.hash
        for event in events:
            n += 1
            kind, kept, body = _kept(event, stored, known)
            step, attempt = getattr(kept, "step", None), getattr(kept, "attempt", None)
            # A new one for each event: with it, an erased value can't be found by hashing guesses.
            salt = self.entropy(SALT_BYTES)
            record = chained(prev, Record(head.stream, n, at, kind, actor, step, attempt, FORMAT, salt, body, b""))
            prev = record.hash
            records.append(record)
            entries.append(Entry(stream=head.stream, n=n, at=at, actor=actor, event=kept, hash=prev))
        return records, entries

    def kept(self, event: Event, known: SecretScrubber = NOTHING_KNOWN) -> Event:
        """An event as it would be stored, without secrets."""
        return _kept(event, self.secrets.scrubber(), known)[1]


def _kept(event: Event, stored: SecretScrubber, known: SecretScrubber) -> tuple[str, Event, bytes]:
    """What is stored of an event: its kind, the event without secrets, and its body."""
    kind, body = kind_of(event), encode_body(event)
    clean = redact_body(body, stored, known)
    if clean is body:
        return kind, event, body
    # The state in memory must come from what is stored, so that a replay gives the same state.
    return kind, decode_event(kind, FORMAT, clean), clean
