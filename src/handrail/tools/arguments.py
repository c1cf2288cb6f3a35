"""Arguments of tools: their JSON Schema, and messages about arguments that don't fit it.

Draft 7, with linear-time patterns and no network access. Messages name the location of a bad value, never the value: it
may be a secret. Each tool checks for itself what a schema can't express."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from handrail.domain.suggestion import did_you_mean

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

MISFITS_MAX: Final = 10
PATTERN_BYTES_MAX: Final = 1_000_000
HIDDEN: Final = "the value"


def closed(properties: Mapping[str, Any], *, required: Sequence[str] = ()) -> Mapping[str, Any]:
    """The schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


class ArgumentSchema:
    """The schema of a tool's arguments, compiled once when it is first needed."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self._fitting: Mapping[str, Any] | None = None

    def misfits(self, args: Mapping[str, Any]) -> list[str]:
        """Messages about arguments that don't fit; empty if they fit."""
        if args is self._fitting:
            return []  # checked just before: callers check before a call, and the tool checks again
        try:
            msgspec.json.encode(args)  # a value nested too deeply would overflow the validator's stack: a crash
        except (RecursionError, TypeError, ValueError) as error:
            return [f"the arguments are not plain JSON: {error}"]
        errors = islice(self._validator.iter_errors(dict(args)), MISFITS_MAX)
        found = list(islice((words for error in errors for words in misfit_words(error, self.schema)), MISFITS_MAX))
        self._fitting = None if found else args
        return found

    @cached_property
    def _validator(self) -> Validator:
        # Imported late: it takes 25 ms (measured), which commands that call no tool should not pay.
        from jsonschema_rs import Draft7Validator, RegexOptions

        options = RegexOptions(size_limit=PATTERN_BYTES_MAX)
        return Draft7Validator(dict(self.schema), pattern_options=options, offline=True, mask=HIDDEN)


def misfit_words(error: ValidationError, schema: Mapping[str, Any]) -> Iterator[str]:
    """Messages about one validation error."""
    place = ".".join(str(part) for part in error.instance_path)
    unexpected = getattr(error.kind, "unexpected", None)
    missing = getattr(error.kind, "property", None)
    if unexpected is not None:
        known = schema.get("properties", {}) if not place else {}
        for name in unexpected:
            yield f"`{_joined(place, name)}` is unknown; {did_you_mean(name, known) or 'leave it out'}"
    elif missing is not None:
        yield f"`{_joined(place, missing)}` is missing"
    else:
        yield f"`{place or 'arguments'}`: {error.message}"


def _joined(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name
