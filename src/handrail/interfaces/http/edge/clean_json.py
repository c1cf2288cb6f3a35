"""Answers as JSON without secrets: also those that a check has found, or an event has from before they were stored.

What was journaled since then has none anyway. Exports and proof bundles are sent as they are stored: if they were
changed, they would prove nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.engine.known_secrets import KnownSecrets


def clean_json(value: Any, secrets: KnownSecrets) -> bytes:
    """A value as JSON without the secrets that are known now."""
    content = msgspec.json.encode(value)
    scrubber = secrets.scrubber()
    # A search over the text is fast; only where something may be found is the value itself looked through.
    if not scrubber or not scrubber.may_find(content.decode("latin-1")):
        return content
    return msgspec.json.encode(scrubber.value(msgspec.to_builtins(value)))
