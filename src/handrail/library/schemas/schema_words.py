"""Messages for values that do not fit a JSON Schema: what is wrong, and how to fix it.

Knows nothing about workflows; structure_words.py has the messages that are special to them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from jsonschema_rs import ValidationError, ValidationErrorKind
from msgspec import Struct

from handrail.domain.checks.finding import Flaw, Path, Severity
from handrail.domain.json import Json
from handrail.domain.suggestion import did_you_mean
from handrail.library.documents.document import FINDINGS_MAX
from handrail.library.documents.document_tree import shown

TYPE_WORDS: Final = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true, false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
LIMIT_WORDS: Final = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}
KEY_DIGITS_MAX: Final = 20
ADVICE_MAX: Final = 200
EXAMPLES_MAX: Final = 5
BOOLEAN_WORDS: Final = frozenset({"yes", "no", "on", "off", "true", "false", "y", "n"})

Kind = ValidationErrorKind


class Mismatch(Struct, frozen=True):
    """One error of the validator: a value, and the part of a schema that it does not fit."""

    kind: Any
    path: Path
    value: Any
    part: Mapping[str, Any]
    """The object of the schema with the keyword."""
    spot: Path
    """The path of the keyword in the schema."""
    in_schema: bool
    """Whether the value is part of a JSON Schema that an author wrote, and does not fit the meta-schema."""

    def flaw(self, rule: str, message: str, fix: str = "") -> Flaw:
        """What is wrong with the value."""
        return Flaw(rule=rule, severity=Severity.CRITICAL, path=self.path, message=message, fix=fix)

    def key_flaw(self, key: str, rule: str, message: str, fix: str = "") -> Flaw:
        """What is wrong with a key of the value."""
        path = (*self.path, key)
        return Flaw(rule=rule, severity=Severity.CRITICAL, path=path, message=message, fix=fix, on_key=True)


def mismatch_of(error: ValidationError, root: Json, schema: Json) -> Mismatch:
    """A validator's error with its paths in the value and in the schema."""
    path = true_path(root, error.instance_path)
    if error.absolute_keyword_location is not None:
        return Mismatch(error.kind, path, error.instance, {}, tuple(error.schema_path), in_schema=True)
    spot = true_path(schema, error.schema_path)
    return Mismatch(error.kind, path, error.instance, _part(schema, spot), spot, in_schema=False)


def general_flaws(mismatch: Mismatch) -> Iterator[Flaw]:
    """The flaws of a mismatch, with messages for any schema."""
    words = _WORDS.get(type(mismatch.kind), _anything)
    yield from words(mismatch)


def without_noise(flaws: Iterable[Flaw]) -> list[Flaw]:
    """One flaw per error: a value of the wrong type has no other flaw, and none is reported twice."""
    kept = {(flaw.path, flaw.rule, flaw.message): flaw for flaw in flaws}
    mistyped = {flaw.path for flaw in kept.values() if flaw.rule == "type"}
    return [flaw for flaw in kept.values() if flaw.rule == "type" or flaw.path not in mistyped]


def true_path(root: Json, parts: Sequence[str | int]) -> Path:
    """The path with the real keys: the validator reports keys like `1`, `01` and `+1` as numbers."""
    path: list[str | int] = []
    for part in parts:
        path.append(_true_key(root, part) if isinstance(root, Mapping) and isinstance(part, int) else part)
        root = _below(root, path[-1])
    return tuple(path)


def _true_key(held: Mapping[str, Json], number: int) -> str:
    digits = (key for key in held if len(key) <= KEY_DIGITS_MAX and key.lstrip("+").isdecimal())
    return next((key for key in digits if int(key) == number), str(number))


def _below(value: Json, part: str | int) -> Json:
    if isinstance(value, Mapping) and isinstance(part, str):
        return value.get(part)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        item: Json = value[part]
        return item
    return None


def _part(schema: Json, spot: Path) -> Mapping[str, Any]:
    """The innermost object on the path to a keyword."""
    found: Mapping[str, Any] = {}
    for step in spot:
        found = schema if isinstance(schema, Mapping) else found
        schema = _below(schema, step)
    return found


def described(value: Json) -> str:
    """A value in a message."""
    match value:
        case None:
            return "nothing"
        case str():
            return f"the text `{shown(value)}`"
        case bool():
            return f"`{json.dumps(value)}`"
        case int() | float():
            return f"the number {value}"
        case Mapping():
            return "an object"
        case _:
            return "a list"


def any_of(words: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)


def example_of(part: Mapping[str, Any]) -> str:
    """How to write a value, from the examples in the schema."""
    examples = [item if isinstance(item, str) else json.dumps(item) for item in part.get("examples", ())[:EXAMPLES_MAX]]
    return f"write it like {any_of(examples)}" if examples else ""


def advice(part: Mapping[str, Any]) -> str:
    """What the schema says about the value: its examples, or its description."""
    description = part.get("description")
    meant = f"expected: {shown(description, most=ADVICE_MAX)}" if isinstance(description, str) else ""
    return example_of(part) or meant or "write it as the schema says"


def alternatives(part: Mapping[str, Any], keyword: str) -> list[str]:
    """The keys of which one is required; empty if the alternatives are something else."""
    options = [option for option in part.get(keyword, ()) if isinstance(option, dict) and "not" not in option]
    wanted = [option["required"] for option in options if set(option) == {"required"}]
    return [keys[0] for keys in wanted if len(keys) == 1] if len(wanted) == len(options) else []


def _type(mismatch: Mismatch) -> Iterator[Flaw]:
    expected = list(mismatch.kind.types)
    known = [words for name, words in TYPE_WORDS.items() if name in expected]
    words = any_of(", ".join(known).split(", "))
    fix = _type_fix(expected, mismatch) or ("write `key: value` pairs" if expected == ["object"] else f"write {words}")
    yield mismatch.flaw("type", f"{words} is expected here, not {described(mismatch.value)}", fix)


def _type_fix(expected: Sequence[str], mismatch: Mismatch) -> str:
    value = mismatch.value
    match value:
        case None:
            return "write a value, or remove the key"
        case bool() | int() | float() if "string" in expected:
            return f'put it in quotes: "{json.dumps(value)}"'
        case str() if "boolean" in expected and value.lower() in BOOLEAN_WORDS:
            return "write true or false, without quotes"
        case str() if {"integer", "number"} & set(expected) and _is_number(value):
            return "remove the quotes"
        case str() | int() | float() if "array" in expected and not isinstance(value, bool):
            return f"make it a list: [{shown(str(value))}]"
        case _:
            return example_of(mismatch.part)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _enum(mismatch: Mismatch) -> Iterator[Flaw]:
    options = [option if isinstance(option, str) else json.dumps(option) for option in mismatch.kind.options]
    known = f"choose {any_of(options[:20])}"
    near = did_you_mean(mismatch.value, options) if isinstance(mismatch.value, str) else ""
    fix = f"{near} {known}" if near.startswith("did") else known
    yield mismatch.flaw("choice", f"{described(mismatch.value)} is not a choice here", fix)


def _required(mismatch: Mismatch) -> Iterator[Flaw]:
    key = mismatch.kind.property
    own = mismatch.part.get("properties", {}).get(key, {})
    example = example_of(own) if isinstance(own, dict) else ""
    yield mismatch.flaw("missing_key", f"`{shown(key)}` is missing", f"add `{shown(key)}`{example and '; ' + example}")


def _unknown(mismatch: Mismatch) -> Iterator[Flaw]:
    known = list(mismatch.part.get("properties", {}))
    for key in mismatch.kind.unexpected[: FINDINGS_MAX + 1]:
        yield mismatch.key_flaw(key, "unknown_key", f"`{shown(key)}` is not a key here", did_you_mean(key, known))


def _range(mismatch: Mismatch) -> Iterator[Flaw]:
    limits = {mismatch.kind.name: mismatch.kind.limit, **mismatch.part}
    wanted = " and ".join(f"{words} {limits[key]}" for key, words in LIMIT_WORDS.items() if key in limits)
    yield mismatch.flaw("range", f"{described(mismatch.value)} is out of range", f"write a number of {wanted}")


def _too_short(mismatch: Mismatch) -> Iterator[Flaw]:
    subject, unit = _measured(mismatch.value)
    message = f"{subject} has {len(mismatch.value)} {unit}" if mismatch.value else f"{subject} is empty"
    yield mismatch.flaw("length", message, f"at least {mismatch.kind.limit} wanted")


def _too_long(mismatch: Mismatch) -> Iterator[Flaw]:
    subject, unit = _measured(mismatch.value)
    yield mismatch.flaw(
        "length", f"{subject} has {len(mismatch.value):,} {unit}", f"at most {mismatch.kind.limit:,} are allowed"
    )


def _measured(value: Json) -> tuple[str, str]:
    match value:
        case str():
            return "the text", "characters"
        case Mapping():
            return "the object", "keys"
        case _:
            return "the list", "items"


def _unique(mismatch: Mismatch) -> Iterator[Flaw]:
    counts = Counter(json.dumps(item, sort_keys=True) for item in mismatch.value)
    form, _ = counts.most_common(1)[0]
    yield mismatch.flaw("duplicate", f"`{shown(form)}` appears twice", "remove one of the two")


def _name(mismatch: Mismatch) -> Iterator[Flaw]:
    key = str(mismatch.kind.error.instance)
    yield mismatch.key_flaw(key, "name", f"`{shown(key)}` is not a name that is allowed here", advice(mismatch.part))


def _one_of_none(mismatch: Mismatch) -> Iterator[Flaw]:
    keys = alternatives(mismatch.part, "oneOf")
    if keys:
        yield mismatch.flaw("missing_key", f"exactly one of {any_of(keys)} is expected here", "add one of them")
    else:
        yield from _no_form(mismatch)


def _one_of_many(mismatch: Mismatch) -> Iterator[Flaw]:
    given = [
        key
        for key in alternatives(mismatch.part, "oneOf")
        if isinstance(mismatch.value, dict) and key in mismatch.value
    ]
    if given:
        both = " and ".join(f"`{key}`" for key in given)
        yield mismatch.flaw("unknown_key", f"{both} can't be used together", "keep one of them")
    else:
        yield mismatch.flaw(
            "form", f"{described(mismatch.value)} fits more than one of the allowed forms", "make it fit one only"
        )


def _any_of_none(mismatch: Mismatch) -> Iterator[Flaw]:
    keys = alternatives(mismatch.part, "anyOf")
    if keys:
        yield mismatch.flaw("missing_key", f"{any_of([f'`{key}`' for key in keys])} is missing", "add one of them")
    else:
        yield from _no_form(mismatch)


def _no_form(mismatch: Mismatch) -> Iterator[Flaw]:
    """Report the first error of the nearest form: the one with the fewest errors."""
    nearest: list[ValidationError] = min((branch for branch in mismatch.kind.context if branch), key=len, default=[])
    against = (Mismatch(error.kind, mismatch.path, error.instance, {}, (), mismatch.in_schema) for error in nearest)
    reason = next((flaw.message for inner in against for flaw in general_flaws(inner)), "")
    message = f"{described(mismatch.value)} fits none of the allowed forms"
    yield mismatch.flaw("form", message, reason and f"for the nearest form: {reason}")


def _anything(mismatch: Mismatch) -> Iterator[Flaw]:
    rule, message, fix = _TEMPLATES.get(
        type(mismatch.kind), ("form", "{described} does not fit `{kind.name}`", "{advice}")
    )
    words = {"described": described(mismatch.value), "kind": mismatch.kind, "advice": advice(mismatch.part)}
    yield mismatch.flaw(rule, message.format(**words), fix.format(**words))


# Rule, message and fix, where the error itself has all the information.
_TEMPLATES: Final[Mapping[type, tuple[str, str, str]]] = {
    Kind.Constant: ("choice", "{described} is not the one value that is allowed here", "write {kind.expected_value}"),
    Kind.MultipleOf: ("range", "{described} is not a multiple of {kind.multiple_of}", "write a multiple of it"),
    Kind.Pattern: ("pattern", "{described} does not fit the pattern `{kind.pattern}`", "{advice}"),
    Kind.Format: ("format", "{described} is not of the format `{kind.format}`", "write it as the format says"),
    Kind.AdditionalItems: ("length", "the list has too many items", "at most {kind.limit} are allowed"),
    Kind.Contains: ("form", "the list has no item of the one form that is needed", "add one"),
    Kind.Not: ("form", "{described} is not allowed here", "write another value"),
    Kind.FalseSchema: ("form", "{described} is not allowed here", "remove it"),
}

_WORDS: Final[Mapping[type, Callable[[Mismatch], Iterator[Flaw]]]] = {
    Kind.Type: _type,
    Kind.Enum: _enum,
    Kind.Required: _required,
    Kind.AdditionalProperties: _unknown,
    Kind.Minimum: _range,
    Kind.Maximum: _range,
    Kind.ExclusiveMinimum: _range,
    Kind.ExclusiveMaximum: _range,
    Kind.MinLength: _too_short,
    Kind.MinItems: _too_short,
    Kind.MinProperties: _too_short,
    Kind.MaxLength: _too_long,
    Kind.MaxItems: _too_long,
    Kind.MaxProperties: _too_long,
    Kind.UniqueItems: _unique,
    Kind.PropertyNames: _name,
    Kind.OneOfNotValid: _one_of_none,
    Kind.OneOfMultipleValid: _one_of_many,
    Kind.AnyOf: _any_of_none,
}
