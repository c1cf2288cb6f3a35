"""Paths: `steps.notes.output["file"][0]` as keys, the shape at their end, and reading them from values.

Pure. A path is literal in the source, so the paths that an expression reads are known before it is evaluated."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from itertools import islice
from keyword import iskeyword
from typing import Any, Final, NamedTuple, TypeAlias, cast

from handrail.domain.checks.finding import Path
from handrail.domain.json import Json
from handrail.domain.language.expression_value import ExpressionRefused, Frame, kind, spoken, spoken_shape
from handrail.domain.language.shape import ANY, Shape

NAMES_SHOWN_MAX: Final = 12
NAMES_COMPARED_MAX: Final = 200
NAME_LENGTH_SHOWN_MAX: Final = 60

Read: TypeAlias = Callable[[Frame], Json]


class WrittenPath(NamedTuple):
    """A path in a source: its keys, and the column of each."""

    keys: Path
    columns: tuple[int, ...]


def written_path(node: ast.expr, strings: Mapping[int, str]) -> WrittenPath:
    """The path that a node describes."""
    keys: list[tuple[str | int, int]] = []
    while not isinstance(node, ast.Name):
        key, column, node = _last_key(node, strings)
        keys.append((key, column))
    keys.append((node.id, node.col_offset))
    return WrittenPath(tuple(key for key, _ in reversed(keys)), tuple(column for _, column in reversed(keys)))


def path_shape(path: WrittenPath, scope: Mapping[str, Shape]) -> Shape:
    """The shape of the value at the end of a path; unknown names are refused."""
    root = str(path.keys[0])
    if root not in scope or root.startswith("_"):
        raise ExpressionRefused(name_reason("there is no name", root, scope), path.columns[0])
    shape = scope[root]
    for depth, (key, column) in enumerate(zip(path.keys[1:], path.columns[1:], strict=True), 1):
        shape = _step_shape(shape, key, before=path.keys[:depth], column=column)
    return shape


def path_reader(path: WrittenPath) -> Read:
    """Reads the value at the end of a path; a missing key is refused."""
    keys = path.keys

    def read(frame: Frame) -> Json:
        value: Any = frame.values
        try:
            for key in keys:
                value = value[key]
        except (KeyError, TypeError):
            raise _missing(path, frame) from None
        return cast("Json", value)

    def read_carefully(frame: Frame) -> Json:
        followed, value = _walk(frame.values, keys)
        if followed < len(keys):
            raise _missing(path, frame)
        return cast("Json", value)

    # Python also indexes strings: a path with an index needs a check of each value's type.
    return read_carefully if any(isinstance(key, int) for key in keys) else read


def tolerant_reader(path: WrittenPath) -> Read:
    """Reads the value at the end of a path, or null if the path does not exist."""
    keys = path.keys

    def read(frame: Frame) -> Json:
        followed, value = _walk(frame.values, keys)
        return value if followed == len(keys) else None

    return read


def path_text(path: Iterable[str | int]) -> str:
    """A path as an author writes it, in a form that can be appended to another: `.headers["X-Id"][0]`."""
    return "".join(_key_text(key) for key in path)


def name_reason(what: str, name: str, known: Iterable[str]) -> str:
    """The message for an unknown name: which names are known, and which may be meant."""
    names = [each[:NAME_LENGTH_SHOWN_MAX] for each in islice(known, NAMES_COMPARED_MAX)]
    shown = ", ".join(names[:NAMES_SHOWN_MAX]) + (", ..." if len(names) > NAMES_SHOWN_MAX else "")
    near = get_close_matches(name[:NAME_LENGTH_SHOWN_MAX], names, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"{what} '{name[:NAME_LENGTH_SHOWN_MAX]}' (known: {shown or 'none'}){meant}"


def _last_key(node: ast.expr, strings: Mapping[int, str]) -> tuple[str | int, int, ast.expr]:
    """The last key of a path, its column, and the path before it."""
    match node:
        case ast.Attribute(value=before, attr=name):
            column = (node.end_col_offset or 0) - len(name)
            if name.startswith("_"):
                raise ExpressionRefused(f'write a field with a leading _ in quotes: x["{name}"]', column)
            return name, column, before
        case ast.Subscript(value=before, slice=ast.Constant(value=str()) as index):
            return strings[index.col_offset], index.col_offset, before
        case ast.Subscript(value=before, slice=ast.Constant(value=int() as number) as index) if type(number) is int:
            return number, index.col_offset, before
        case ast.Subscript(slice=index):
            raise ExpressionRefused(
                'an index must be a literal, counted from the start: x[0], x["name"]', index.col_offset
            )
        case _:
            raise ExpressionRefused("a path to a field or item must start with a name", node.col_offset)


def _step_shape(shape: Shape, key: str | int, *, before: Path, column: int) -> Shape:
    if not shape.admits("object" if isinstance(key, str) else "array"):
        raise ExpressionRefused(f"{_text(before)} is {spoken_shape(shape)}: it has no {_key_spoken(key)}", column)
    if isinstance(key, int):
        return shape.items or ANY
    if key not in shape.fields and not shape.is_open:
        raise ExpressionRefused(name_reason(f"{_text(before)} has no field", key, shape.fields), column)
    return shape.fields.get(key, ANY)


def _walk(values: Mapping[str, Json], path: Path) -> tuple[int, Any]:
    """How many keys of the path exist, and the value at the last of them."""
    value: Any = values
    for followed, key in enumerate(path):
        if not _has(value, key):
            return followed, value
        value = value[key]
    return len(path), value


def _has(value: Any, key: str | int) -> bool:
    if isinstance(key, str):
        return kind(value) == "object" and key in value
    return kind(value) == "array" and key < len(value)


def _missing(path: WrittenPath, frame: Frame) -> ExpressionRefused:
    followed, value = _walk(frame.values, path.keys)
    before, key = path.keys[:followed], path.keys[followed]
    return ExpressionRefused(_missing_reason(_text(before), key, value), path.columns[followed])


def _missing_reason(before: str, key: str | int, value: Any) -> str:
    """Why a key does not exist in the value before it."""
    what = kind(value)
    if not before:
        return name_reason("there is no value yet for", str(key), value)
    if what == "null":
        return f"{before} is null: it has no {_key_spoken(key)}; use default(...) or exists(...)"
    if isinstance(key, str) and what == "object":
        return name_reason(f"{before} has no field", key, value)
    if isinstance(key, int) and what == "array":
        return f"{before} has {len(value)} items: there is no [{key}] (counted from 0)"
    return f"{before} is {spoken(what)}: it has no {_key_spoken(key)}"


def _text(path: Path) -> str:
    return path_text(path).removeprefix(".")


def _key_text(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    is_name = key.isidentifier() and key.isascii() and not iskeyword(key)
    return f".{key}" if is_name else f'["{key}"]'


def _key_spoken(key: str | int) -> str:
    return f"field '{key}'" if isinstance(key, str) else f"item [{key}]"
