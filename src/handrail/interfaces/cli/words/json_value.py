"""Values that a person types on the command line: JSON as an argument, in a file (`@file`), or on stdin (`-`)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any, Final

import msgspec

from handrail.domain.errors import Invalid, NotFound
from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.interfaces.cli.words.excerpt import printable
from handrail.library.documents.document import read_document

FILE_MARK: Final = "@"
STDIN: Final = "-"
FILE_BYTES_MAX: Final = 50_000_000
YAML_SUFFIXES: Final = (".yaml", ".yml")


def json_value(text: str, what: str) -> Any:
    """The value that was typed for `what`; Invalid if it is not JSON, NotFound if its file can't be read."""
    if text == STDIN:
        return _decoded(sys.stdin.buffer.read(), what)
    if not text.startswith(FILE_MARK):
        return _decoded(text.encode("utf-8", "surrogateescape"), what)
    name = text.removeprefix(FILE_MARK)
    content = file_content(name, what)
    return read_document(content, name=name).value if name.endswith(YAML_SUFFIXES) else _decoded(content, what)


def json_object(text: str, what: str) -> Mapping[str, Any]:
    """The same, for values by name."""
    value = json_value(text, what)
    if not isinstance(value, dict):
        raise Invalid(f"{what} is not an object", hint="""write values by name: '{"name": "value"}'""")
    return value


def form_of(schema: Any) -> str:
    """An example for a shell that has the types of a schema, to fill in; `JSON` if the schema does not say them."""
    if not isinstance(schema, Mapping) or not (_TELLING & schema.keys()):
        return "JSON"
    return printable(quote(msgspec.json.encode(_example(schema)).decode()))


def _example(schema: Any, depth: int = 0) -> Any:
    """A value of the right type: what the schema names itself, or else a plain one."""
    if not isinstance(schema, Mapping):
        return PLACE
    named = [schema[key] for key in ("const", "default") if key in schema]
    named += [one for key in ("examples", "enum") for one in _listed(schema.get(key))]
    return named[0] if named else _of_type(schema, depth)


def _listed(value: Any) -> list[Any]:
    """The items of a list; none if it is none: the schema may come from a server."""
    return list(value) if isinstance(value, list | tuple) else []


def _of_type(schema: Mapping[str, Any], depth: int) -> Any:
    kind, fields, items = schema.get("type"), schema.get("properties"), schema.get("items")
    kind = next(iter(_listed(kind)), kind)
    if isinstance(fields, Mapping) and depth < EXAMPLE_DEPTH_MAX:
        return {name: _example(one, depth + 1) for name, one in list(fields.items())[:EXAMPLE_FIELDS_MAX]}
    if kind == "array" and items is not None and depth < EXAMPLE_DEPTH_MAX:
        return [_example(items, depth + 1)]
    return _PLAIN.get(str(kind), PLACE)


PLACE: Final = "..."
EXAMPLE_DEPTH_MAX: Final = 4
EXAMPLE_FIELDS_MAX: Final = 20
_TELLING: Final = frozenset({"type", "properties", "enum", "const"})
_PLAIN: Final[Mapping[str, Any]] = {
    "string": PLACE,
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "null": None,
    "array": [],
    "object": {},
}


def file_content(name: str, what: str) -> bytes:
    """The bytes of a file; NotFound if it can't be read."""
    try:
        return read_plain(Path(name), bytes_max=FILE_BYTES_MAX)
    except (OSError, ValueError, NotPlain) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise NotFound(f"{what} can't be read from {name!r}: {reason}", hint="give a JSON or YAML file") from error


def _decoded(content: bytes, what: str) -> Any:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        hint = f"""write it as JSON: {what} '{{"id": 7}}', @file.json, or - for stdin"""
        raise Invalid(f"{what} is not JSON: {error}", hint=hint) from error
