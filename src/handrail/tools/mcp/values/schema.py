"""Schemas of MCP servers: checks the arguments of a call, although a schema may be any draft, or malicious.

A few lines of references to references can keep a validator busy forever. So the steps of a validator are first counted
with the same arguments, up to a limit. Nothing is fetched; patterns may use lookaround, with a backtracking limit. The
messages for single errors are in arguments.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec

from handrail.tools.arguments import HIDDEN, MISFITS_MAX, PATTERN_BYTES_MAX, misfit_words

if TYPE_CHECKING:
    from jsonschema_rs import Validator

SCHEMA_BYTES_MAX: Final = 500_000
SCHEMA_DEPTH_MAX: Final = 255
"""The validator does not accept more; how deep the encoder goes depends on the version of Python."""
PATTERNS_MAX: Final = 100
BACKTRACK_MAX: Final = 10_000
STEPS_MAX: Final = 100_000
WALK_DEPTH_MAX: Final = 1_000
STEPS_EXPLAINED_MAX: Final = 2_000
"""Beyond this many steps the location of an error is left out: finding it takes a thousand times as long."""

TOGETHER: Final = ("allOf", "anyOf", "oneOf")
ALONE: Final = ("not", "if", "then", "else")


class ServerSchema:
    """The schema of one tool's arguments, checked and compiled when it is first needed."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self._targets: dict[str, Any] = {}

    def misfits(self, args: Mapping[str, Any]) -> list[str]:
        """Errors in the arguments, or in the schema itself; empty if the arguments fit."""
        try:
            plain = msgspec.json.decode(msgspec.json.encode(args))
        except (RecursionError, TypeError, ValueError) as error:
            return [f"the arguments are not plain JSON: {error}"]
        validator = self._validator
        if isinstance(validator, str):
            return [f"the server's schema for this tool can't be used: {validator}"]
        steps = self._steps(plain)
        if steps >= STEPS_MAX:
            return ["the server's schema for this tool can't be used: checking these arguments takes too long"]
        return [] if validator.is_valid(plain) else self._explained(validator, plain, steps)

    def _explained(self, validator: Validator, args: Any, steps: int) -> list[str]:
        """Messages about arguments that don't fit, with locations."""
        if steps > STEPS_EXPLAINED_MAX:
            return ["the arguments do not fit the tool's schema"]
        errors = validator.iter_errors(args)
        return list(islice((words for error in errors for words in misfit_words(error, self.schema)), MISFITS_MAX))

    @cached_property
    def _validator(self) -> Validator | str:
        """The validator, or why there is none."""
        # Imported late: it takes 25 ms (measured), which commands that call no tool should not pay.
        from jsonschema_rs import FancyRegexOptions, ReferencingError, validator_for

        if flaw := _flaw(self.schema):
            return flaw
        options = FancyRegexOptions(backtrack_limit=BACKTRACK_MAX, size_limit=PATTERN_BYTES_MAX)
        try:
            return validator_for(dict(self.schema), pattern_options=options, offline=True, mask=HIDDEN)
        except (ValueError, ReferencingError) as error:
            return str(error).partition("\n")[0][:200]

    def _steps(self, value: Any) -> int:
        """How many pairs of a schema and a value a validator may have to check, up to the limit."""
        steps, waiting = 0, [iter([(self.schema, value)])]
        while waiting and steps < STEPS_MAX:
            pair = next(waiting[-1], None)
            if pair is None:
                waiting.pop()
                continue
            steps += 1
            if isinstance(pair[0], Mapping):
                if len(waiting) >= WALK_DEPTH_MAX:
                    return STEPS_MAX  # it refers to itself endlessly
                waiting.append(self._next(*pair))
        return steps

    def _next(self, schema: Mapping[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
        if isinstance(reference := schema.get("$ref"), str):
            yield self._target(reference), value
        for part in _beside(schema):
            yield part, value
            if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:
                yield part, value  # evaluated a second time, to find what was evaluated
        if isinstance(value, dict):
            yield from _inside_object(schema, value)
        elif isinstance(value, list):
            yield from _inside_list(schema, value)

    def _target(self, reference: str) -> Any:
        if reference not in self._targets:  # bounded by the number of references in the schema
            self._targets[reference] = _resolved(self.schema, reference)
        return self._targets[reference]


def _flaw(schema: Mapping[str, Any]) -> str:
    """Why a schema is not compiled; empty if it can be."""
    if _is_deeper_than(schema, SCHEMA_DEPTH_MAX):
        return f"it is nested deeper than {SCHEMA_DEPTH_MAX} levels"
    try:
        if len(msgspec.json.encode(schema)) > SCHEMA_BYTES_MAX:
            return "it is too large"
    except (TypeError, ValueError):
        return "it is not plain JSON"
    parts = list(_parts(schema))
    if not all(map(_stays, parts)):
        return "it has a reference that leads outside of it"
    ids = ("$id", "id") if "draft-04" in str(schema.get("$schema")) else ("$id",)
    if any(isinstance(part.get(name), str) for name in ids for part in parts[1:]):
        return "a part of it has an id of its own"  # references inside of it would resolve differently
    return "it has too many patterns" if sum(map(_patterns, parts)) > PATTERNS_MAX else ""


def _is_deeper_than(value: Any, depth: int) -> bool:
    """Whether lists and objects are nested deeper than that; found without recursion."""
    level = [value]
    for _ in range(depth):
        inner = (part.values() if isinstance(part, Mapping) else part for part in level)
        level = [part for parts in inner for part in parts if isinstance(part, Mapping | list)]
    return bool(level)


def _stays(part: Mapping[str, Any]) -> bool:
    """Whether a part's reference, if it has one, stays in the same schema; `$ref` may also be an argument's name."""
    reference = part.get("$ref", "#")
    if "$dynamicRef" in part or "$recursiveRef" in part:
        return False
    return isinstance(reference, dict) or reference == "#" or (isinstance(reference, str) and reference[:2] == "#/")


def _patterns(part: Mapping[str, Any]) -> int:
    return ("pattern" in part) + len(_keyed(part, "patternProperties"))


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every object inside a schema, whether it is a schema or not."""
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _beside(schema: Mapping[str, Any]) -> Iterator[Any]:
    """The subschemas that apply to the same value."""
    for word in TOGETHER:
        yield from _listed(schema.get(word))
    for word in ALONE:
        if word in schema:
            yield schema[word]
    for word in ("dependentSchemas", "dependencies"):
        yield from _keyed(schema, word).values()


def _inside_object(schema: Mapping[str, Any], value: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    named = _keyed(schema, "properties")
    yield from ((named[key], item) for key, item in value.items() if key in named)
    wide = [schema[word] for word in ("additionalProperties", "unevaluatedProperties") if word in schema]
    for part in (*_keyed(schema, "patternProperties").values(), *wide):
        yield from ((part, item) for item in value.values())
    if "propertyNames" in schema:
        yield from ((schema["propertyNames"], key) for key in value)


def _keyed(schema: Mapping[str, Any], word: str) -> Mapping[str, Any]:
    held = schema.get(word)
    return held if isinstance(held, dict) else {}


def _inside_list(schema: Mapping[str, Any], value: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    for word in ("prefixItems", "items"):
        yield from zip(_listed(schema.get(word)), value, strict=False)
    for word in ("items", "additionalItems", "unevaluatedItems", "contains"):
        if isinstance(part := schema.get(word), dict):
            yield from ((part, item) for item in value)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _resolved(schema: Any, reference: str) -> Any:
    """The part that a reference leads to; None if it leads nowhere, which compiling has already reported."""
    part = schema
    for word in unquote(reference).split("/")[1:]:
        key = word.replace("~1", "/").replace("~0", "~")
        if isinstance(part, Mapping):
            part = part.get(key)
        elif isinstance(part, list) and key.isdecimal() and len(key) < 10 and int(key) < len(part):
            part = part[int(key)]
        else:
            return None
    return part
