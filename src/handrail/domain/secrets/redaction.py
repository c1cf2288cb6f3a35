"""Redaction: removes secrets from a body before it reaches the journal.

Pure. A secret is recognised by its key or its shape (both in secret_forms.py), or by its value (scrubbing.py), because
it is stored, or an input was marked as secret. Most bodies need only a cheap scan; only a suspicious one is decoded and
rewritten."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from handrail.domain.errors import Limited
from handrail.domain.secrets.scrubbing import NOTHING_KNOWN, REDACTED, SecretScrubber
from handrail.domain.secrets.secret_encodings import KNOWN_LENGTH_MIN
from handrail.domain.secrets.secret_forms import AWS_ID, AWS_SECRET, forms_in, looks_secret, names_secret

__all__ = ["REDACTED", "looks_secret", "marked_inputs", "redact_body", "redact_inputs"]

FORM_LENGTH_MIN: Final = 8
DEPTH_MAX: Final = 300
PASSES_MAX: Final = 10
STRUCTURE: Final = frozenset(
    {
        *("step", "steps", "not_compensated", "definition", "workflow", "digest", "residue", "stream", "store", "by"),
        *("about", "action", "category", "effect", "fork", "how", "mode", "outcome", "proof"),
    }
)
"""Top-level fields of an event's body that replay needs; they contain no user content: words of a closed set, hashes,
and names in a definition, which is refused if it holds a secret."""
CONTENT: Final = frozenset({"capture", "content", "output", "schema", "values"})
"""Top-level fields that may be any value, also a number. Numbers in other fields are the event's own."""
EXACT: Final = frozenset({"evidence", "findings"})
"""Top-level fields whose numbers have a meaning of their own, like those of the event itself."""

_REFERENCE: Final = re.compile(r"(?:[A-Za-z]{1,20} )?\$\{(?:env|secret):[^}]{1,200}\}")

# The cheap scan: each pattern starts with a literal character, then checks what is beside it.
_hides_letters: Final = re.compile(r"\\[u/]").search
_at_capital: Final = re.compile(r"A(?:KIA|SIA|Iza)").search
# From here on in lower case. Six letters of a name are enough, and avoid false alarms for `version` or `user_id`.
_NAME: Final = (
    "(?:ssword|passwd|phrase|sscode|secret|ecrets|.token|ential|ntials|cookie|ookies|zation|ession|ion.id|sionid"
    "|..[iestgnr]key|.[iestgnr_-][^a-z]key)"
)
_at_colon: Final = re.compile(
    r""":(?<=[^a-cf-kmo-ru-xz]":|.[^"]:)"""  # rules out most names: no name of a secret ends with these letters
    rf"""(?:(?<={_NAME}":)|(?<=[^"]:)(?:(?<={_NAME}:)|(?<={_NAME}[ ']:)|(?<=\s:))|(?<=[^a-z]":))"""
).search
_at_equals: Final = re.compile(rf"""=(?:(?<={_NAME}=)|(?<={_NAME}[ "']=)|(?<={_NAME}\\"=))""").search
_at_score: Final = re.compile(r"_(?:(?<=(?:gh[pousr]|pat|npm)_)|(?<=k_(?:live|test)_))").search
# A line break is written `\n` in a body: its `n` before `sk-` is not a letter of a word.
_at_dash: Final = re.compile(r"-(?:(?<=(?:pat|ypi|ox.|---)-)|(?<=sk-)(?:(?<![a-z0-9]sk-)|(?<=\\[bfnrt]sk-)))").search

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


def redact_body(body: bytes, *scrubbers: SecretScrubber) -> bytes:
    """The body without secrets, those that the scrubbers know included; the same object if it has none."""
    # Never fails, and keeps one character for one byte: it is only searched for signs, never stored.
    text = body.decode("latin-1")
    if _shows_sign(text) or _shows_name(text.lower()):
        return _rewrite(body, scrubbers)
    for scrubber in scrubbers:
        if scrubber is not NOTHING_KNOWN and scrubber.may_find(text):
            return _rewrite(body, scrubbers)
    return body


def marked_inputs(schemas: Mapping[str, Any]) -> frozenset[str]:
    """The inputs whose schema marks them as secret."""
    return frozenset(name for name, schema in schemas.items() if isinstance(schema, Mapping) and _is_marked(schema))


def redact_inputs(inputs: Mapping[str, Any], schemas: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The inputs without the values of secret ones, and those values, longest first, to remove them elsewhere."""
    marked = marked_inputs(schemas)
    kept = {name: _kept(value) if name in marked else value for name, value in inputs.items()}
    known = {text for name in marked & inputs.keys() for text in _literals(inputs[name])}
    return kept, tuple(sorted(known, key=lambda text: (-len(text), text)))


def _shows_sign(text: str) -> bool:
    """Whether a string may contain a secret with a known prefix; may be wrong only towards yes, like the next."""
    return (
        ("\\" in text and _hides_letters(text) is not None)
        or ("A" in text and _at_capital(text) is not None)
        or ("J" in text and "eyJ" in text)
    )


def _shows_name(text: str) -> bool:
    """Whether a string in lower case may contain a secret that is recognised by what precedes it."""
    return (
        _at_colon(text) is not None
        or _at_score(text) is not None
        or _at_dash(text) is not None
        or "bearer" in text
        or ("=" in text and _at_equals(text) is not None)
        or ("@" in text and "://" in text)
    )


def _rewrite(body: bytes, scrubbers: Sequence[SecretScrubber]) -> bytes:
    data = _decode(body)
    scrub = _Scrub(scrubbers, has_aws_id=AWS_ID.pattern.search(_encode(data).decode()) is not None)
    is_event = isinstance(data, dict)
    # A secret in a field that replay needs would break the run: such fields are filled by handrail alone.
    clean = {key: scrub.field(key, item) for key, item in data.items()} if is_event else scrub.value(data)
    return body if clean == data else _encode(clean)


class _Scrub:
    """Rewrites values without the secrets in them."""

    def __init__(self, scrubbers: Sequence[SecretScrubber], *, has_aws_id: bool) -> None:
        self.scrubbers = scrubbers
        self.has_aws_id = has_aws_id

    def field(self, name: str, value: Any) -> Any:
        if name in STRUCTURE or (type(value) in (int, float) and name not in CONTENT):
            return value
        return self.value(value, hides=names_secret(name), is_exact=name in EXACT)

    def value(self, value: Any, *, hides: bool = False, is_exact: bool = False, depth: int = 1) -> Any:
        if depth > DEPTH_MAX:
            raise Limited(f"a value is nested deeper than {DEPTH_MAX} levels")
        match value:
            case str():
                return REDACTED if hides and not _is_open(value) else self.text(value)
            case list():
                return [self.value(item, hides=hides, is_exact=is_exact, depth=depth + 1) for item in value]
            case dict():
                return self._object(value, hides=hides, is_exact=is_exact, depth=depth)
            case bool() | None:
                return value
            case _:
                return value if is_exact else self.number(value)

    def number(self, number: float) -> Any:
        """A number, or the mark if its digits are a known secret."""
        return next((mark for one in self.scrubbers if (mark := one.number(number)) is not number), number)

    def text(self, text: str) -> str:
        for _ in range(PASSES_MAX):
            clean = self._once(text)
            if clean == text:
                return text
            text = clean
        return REDACTED  # each removal uncovered another secret: such a string was crafted, so keep nothing

    def _object(self, value: dict[str, Any], *, hides: bool, is_exact: bool, depth: int) -> dict[str, Any]:
        clean: dict[str, Any] = {}
        for key, item in value.items():
            name = unique = self.text(key)
            while unique in clean:  # two secrets used as keys become the same mark: number them
                unique = f"{name} ({len(clean)})"
            is_hidden = hides or names_secret(key)
            clean[unique] = self.value(item, hides=is_hidden, is_exact=is_exact, depth=depth + 1)
        return clean

    def _once(self, text: str) -> str:
        for scrubber in self.scrubbers:
            text = scrubber.text(text)
        # Most strings show no sign, and the dozens of patterns are only tried on those that do.
        if len(text) >= FORM_LENGTH_MIN and (_shows_sign(text) or _shows_name(text.lower())):
            for form in forms_in(text):
                text = form.pattern.sub(form.mark, text)
        return AWS_SECRET.pattern.sub(AWS_SECRET.mark, text) if self.has_aws_id else text


def _is_open(text: str) -> bool:
    """Whether a string under a secret's key may be shown: it is empty, or only a reference to a secret."""
    return not text or _REFERENCE.fullmatch(text) is not None


def _is_marked(schema: Mapping[str, Any]) -> bool:
    return schema.get("secret") is True or schema.get("writeOnly") is True or schema.get("format") == "password"


def _kept(value: Any) -> Any:
    """A secret input as it is stored."""
    return value if value is None or (isinstance(value, str) and _is_open(value)) else REDACTED


def _literals(value: Any) -> Iterator[str]:
    """The texts in a value that are long enough to be recognised elsewhere."""
    match value:
        case str():
            yield from [value] if len(value) >= KNOWN_LENGTH_MIN and not _is_open(value) else []
        case bool() | None:
            return
        case int() | float():
            yield from _literals(str(value))
        case Mapping():
            yield from _each(value.values())
        case _:
            yield from _each(value)


def _each(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        yield from _literals(value)
