"""Values that a person types on the command line: JSON as an argument, in a file (`@file`), or on stdin (`-`)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any, Final

import msgspec

from handrail.domain.errors import Invalid, NotFound
from handrail.interfaces.cli.words.excerpt import printable
from handrail.library.documents.document import read_document

FILE_MARK: Final = "@"
STDIN: Final = "-"
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
    """A form for a shell: the JSON object of a schema, with types in place of values; `JSON` if it has no fields."""
    fields = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(fields, Mapping) or not fields:
        return "JSON"
    form = {name: one.get("type", "...") if isinstance(one, Mapping) else "..." for name, one in fields.items()}
    return printable(quote(msgspec.json.encode(form).decode()))


def file_content(name: str, what: str) -> bytes:
    """The bytes of a file; NotFound if it can't be read."""
    try:
        return Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise NotFound(f"{what} can't be read from {name!r}: {reason}", hint="give a JSON or YAML file") from error


def _decoded(content: bytes, what: str) -> Any:
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        hint = f"""write it as JSON: {what} '{{"id": 7}}', @file.json, or - for stdin"""
        raise Invalid(f"{what} is not JSON: {error}", hint=hint) from error
