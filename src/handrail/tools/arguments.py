"""Arguments: the JSON Schema of what a tool is called with, and what is wrong with a call, in words.

Draft 7, with patterns in linear time and off the network. Messages name the place of a bad value, never the value:
it may be a secret. What arguments mean beyond their shape, each tool judges itself."""

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
    """The schema of arguments that are exactly these."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


class ArgumentSchema:
    """A schema that is compiled once, when it is first needed."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self._fitting: Mapping[str, Any] | None = None

    def misfits(self, args: Mapping[str, Any]) -> list[str]:
        """What the schema has against the arguments; nothing if they fit."""
        if args is self._fitting:
            return []  # just looked at: whoever calls a tool asks first, and the tool makes sure
        try:
            msgspec.json.encode(args)  # too deep a value would end the validator's stack, and the process with it
        except (RecursionError, TypeError, ValueError) as error:
            return [f"the arguments are not plain JSON: {error}"]
        errors = islice(self._validator.iter_errors(dict(args)), MISFITS_MAX)
        found = list(islice((words for error in errors for words in misfit_words(error, self.schema)), MISFITS_MAX))
        self._fitting = None if found else args
        return found

    @cached_property
    def _validator(self) -> Validator:
        # Imported late: 25 ms that a command which calls no tool need not pay (measured).
        from jsonschema_rs import Draft7Validator, RegexOptions

        options = RegexOptions(size_limit=PATTERN_BYTES_MAX)
        return Draft7Validator(dict(self.schema), pattern_options=options, offline=True, mask=HIDDEN)


def misfit_words(error: ValidationError, schema: Mapping[str, Any]) -> Iterator[str]:
    """What a schema has against one place of the arguments, in words."""
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
