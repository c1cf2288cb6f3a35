"""What a JSON Schema has against a value, in our words: what is wrong, and how to fix it.

Knows JSON Schema, but nothing of workflows; what is special about those is said in structure_words.py."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from jsonschema_rs import ValidationError, ValidationErrorKind
from msgspec import Struct

from handrail.domain.check import Flaw, Path, Severity
from handrail.domain.json import Json
from handrail.domain.suggestion import did_you_mean
from handrail.library.document_tree import shown

TYPE_WORDS: Final = {
    "string": "a text",
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
SPOKEN_TRUTH: Final = frozenset({"yes", "no", "on", "off", "true", "false", "y", "n"})

Kind = ValidationErrorKind


class Clash(Struct, frozen=True):
    """One error of the validator: a value, and the part of a schema that it does not fit."""

    kind: Any
    path: Path
    value: Any
    part: Mapping[str, Any]
    """The object of the schema that holds the keyword."""
    spot: Path
    """Where the keyword stands in the schema."""
    in_schema: bool
    """Whether the value belongs to a JSON Schema that an author wrote, and clashes with the schema of schemas."""

    def flaw(self, rule: str, message: str, fix: str = "") -> Flaw:
        """What is wrong with the value."""
        return Flaw(rule=rule, severity=Severity.CRITICAL, path=self.path, message=message, fix=fix)

    def key_flaw(self, key: str, rule: str, message: str, fix: str = "") -> Flaw:
        """What is wrong with a key of the value."""
        path = (*self.path, key)
        return Flaw(rule=rule, severity=Severity.CRITICAL, path=path, message=message, fix=fix, on_key=True)


def clash_of(error: ValidationError, root: Json, schema: Json) -> Clash:
    """An error with the place that it speaks of, in the root value and in the schema."""
    path = true_path(root, error.instance_path)
    if error.absolute_keyword_location is not None:
        return Clash(error.kind, path, error.instance, {}, tuple(error.schema_path), in_schema=True)
    spot = true_path(schema, error.schema_path)
    return Clash(error.kind, path, error.instance, _part(schema, spot), spot, in_schema=False)


def plain_words(clash: Clash) -> Iterator[Flaw]:
    """What is wrong, in words that fit any schema."""
    words = _WORDS.get(type(clash.kind), _anything)
    yield from words(clash)


def without_noise(flaws: Iterable[Flaw]) -> list[Flaw]:
    """One flaw for one fault: a value of the wrong type has no other flaw, and none is reported twice."""
    kept = {(flaw.path, flaw.rule, flaw.message): flaw for flaw in flaws}
    mistyped = {flaw.path for flaw in kept.values() if flaw.rule == "type"}
    return [flaw for flaw in kept.values() if flaw.rule == "type" or flaw.path not in mistyped]


def true_path(root: Json, parts: Sequence[str | int]) -> Path:
    """The path with keys as keys: the validator takes `1`, `01` and `+1` for numbers even where they are keys."""
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
    """The innermost object on the way to a keyword."""
    found: Mapping[str, Any] = {}
    for step in spot:
        found = schema if isinstance(schema, Mapping) else found
        schema = _below(schema, step)
    return found


def described(value: Json) -> str:
    """A value as a message shows it."""
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
    """How a value may be written, by the schema's own examples."""
    examples = [item if isinstance(item, str) else json.dumps(item) for item in part.get("examples", ())[:EXAMPLES_MAX]]
    return f"write it like {any_of(examples)}" if examples else ""


def advice(part: Mapping[str, Any]) -> str:
    """What the schema itself says about the value: by examples, or in its description."""
    description = part.get("description")
    meant = f"meant is: {shown(description, most=ADVICE_MAX)}" if isinstance(description, str) else ""
    return example_of(part) or meant or "write it as the schema says"


def alternatives(part: Mapping[str, Any], keyword: str) -> list[str]:
    """The keys of which one is wanted; none, if the alternatives are of another sort."""
    options = [option for option in part.get(keyword, ()) if isinstance(option, dict) and "not" not in option]
    wanted = [option["required"] for option in options if set(option) == {"required"}]
    return [keys[0] for keys in wanted if len(keys) == 1] if len(wanted) == len(options) else []


def _type(clash: Clash) -> Iterator[Flaw]:
    expected = list(clash.kind.types)
    known = [words for name, words in TYPE_WORDS.items() if name in expected]
    words = any_of(", ".join(known).split(", "))
    fix = _type_fix(expected, clash) or ("write `key: value` pairs" if expected == ["object"] else f"write {words}")
    yield clash.flaw("type", f"{words} is expected here, not {described(clash.value)}", fix)


def _type_fix(expected: Sequence[str], clash: Clash) -> str:
    value = clash.value
    match value:
        case None:
            return "write a value, or remove the key"
        case bool() | int() | float() if "string" in expected:
            return f'put it in quotes: "{json.dumps(value)}"'
        case str() if "boolean" in expected and value.lower() in SPOKEN_TRUTH:
            return "write true or false, without quotes"
        case str() if {"integer", "number"} & set(expected) and _is_number(value):
            return "remove the quotes"
        case str() | int() | float() if "array" in expected and not isinstance(value, bool):
            return f"make it a list: [{shown(str(value))}]"
        case _:
            return example_of(clash.part)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _enum(clash: Clash) -> Iterator[Flaw]:
    options = [option if isinstance(option, str) else json.dumps(option) for option in clash.kind.options]
    known = f"choose {any_of(options[:20])}"
    near = did_you_mean(clash.value, options) if isinstance(clash.value, str) else ""
    fix = f"{near} {known}" if near.startswith("did") else known
    yield clash.flaw("choice", f"{described(clash.value)} is not a choice here", fix)


def _required(clash: Clash) -> Iterator[Flaw]:
    key = clash.kind.property
    own = clash.part.get("properties", {}).get(key, {})
    example = example_of(own) if isinstance(own, dict) else ""
    yield clash.flaw("missing_key", f"`{shown(key)}` is missing", f"add `{shown(key)}`{example and '; ' + example}")


def _unknown(clash: Clash) -> Iterator[Flaw]:
    known = list(clash.part.get("properties", {}))
    for key in clash.kind.unexpected:
        yield clash.key_flaw(key, "unknown_key", f"`{shown(key)}` is not a key here", did_you_mean(key, known))


def _range(clash: Clash) -> Iterator[Flaw]:
    limits = {clash.kind.name: clash.kind.limit, **clash.part}
    wanted = " and ".join(f"{words} {limits[key]}" for key, words in LIMIT_WORDS.items() if key in limits)
    yield clash.flaw("range", f"{described(clash.value)} is out of range", f"write a number of {wanted}")


def _too_short(clash: Clash) -> Iterator[Flaw]:
    subject, unit = _measured(clash.value)
    message = f"{subject} has {len(clash.value)} {unit}" if clash.value else f"{subject} is empty"
    yield clash.flaw("length", message, f"at least {clash.kind.limit} wanted")


def _too_long(clash: Clash) -> Iterator[Flaw]:
    subject, unit = _measured(clash.value)
    yield clash.flaw(
        "length", f"{subject} has {len(clash.value):,} {unit}", f"at most {clash.kind.limit:,} are allowed"
    )


def _measured(value: Json) -> tuple[str, str]:
    match value:
        case str():
            return "the text", "characters"
        case Mapping():
            return "the object", "keys"
        case _:
            return "the list", "items"


def _unique(clash: Clash) -> Iterator[Flaw]:
    counts = Counter(json.dumps(item, sort_keys=True) for item in clash.value)
    form, _ = counts.most_common(1)[0]
    yield clash.flaw("duplicate", f"`{shown(form)}` appears twice", "remove one of the two")


def _name(clash: Clash) -> Iterator[Flaw]:
    key = str(clash.kind.error.instance)
    yield clash.key_flaw(key, "name", f"`{shown(key)}` is not a name that is allowed here", advice(clash.part))


def _one_of_none(clash: Clash) -> Iterator[Flaw]:
    keys = alternatives(clash.part, "oneOf")
    if keys:
        yield clash.flaw("missing_key", f"exactly one of {any_of(keys)} is expected here", "add one of them")
    else:
        yield from _no_form(clash)


def _one_of_many(clash: Clash) -> Iterator[Flaw]:
    given = [key for key in alternatives(clash.part, "oneOf") if isinstance(clash.value, dict) and key in clash.value]
    if given:
        both = " and ".join(f"`{key}`" for key in given)
        yield clash.flaw("unknown_key", f"{both} can't be used together", "keep one of them")
    else:
        yield clash.flaw(
            "form", f"{described(clash.value)} fits more than one of the allowed forms", "make it fit one only"
        )


def _any_of_none(clash: Clash) -> Iterator[Flaw]:
    keys = alternatives(clash.part, "anyOf")
    if keys:
        yield clash.flaw("missing_key", f"{any_of([f'`{key}`' for key in keys])} is missing", "add one of them")
    else:
        yield from _no_form(clash)


def _no_form(clash: Clash) -> Iterator[Flaw]:
    """Tells what stands against the nearest form: the one with the least against it."""
    nearest: list[ValidationError] = min((branch for branch in clash.kind.context if branch), key=len, default=[])
    against = (Clash(error.kind, clash.path, error.instance, {}, (), clash.in_schema) for error in nearest)
    reason = next((flaw.message for inner in against for flaw in plain_words(inner)), "")
    message = f"{described(clash.value)} fits none of the allowed forms"
    yield clash.flaw("form", message, reason and f"of the nearest: {reason}")


def _anything(clash: Clash) -> Iterator[Flaw]:
    rule, message, fix = _TEMPLATES.get(
        type(clash.kind), ("form", "{described} does not fit `{kind.name}`", "{advice}")
    )
    words = {"described": described(clash.value), "kind": clash.kind, "advice": advice(clash.part)}
    yield clash.flaw(rule, message.format(**words), fix.format(**words))


# Rule, message and fix, where no more than the error itself needs to be known.
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

_WORDS: Final[Mapping[type, Callable[[Clash], Iterator[Flaw]]]] = {
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
