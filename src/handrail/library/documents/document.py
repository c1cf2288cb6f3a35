"""Documents: YAML or JSON as data, with the position of every value in the text.

yaml_document.py and json_document.py read the two syntaxes; structure.py checks whether the data is a workflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field

from handrail.domain.checks.finding import Finding, Flaw, Path, Position, Severity, place
from handrail.domain.errors import Invalid
from handrail.domain.json import Json
from handrail.library.documents.document_tree import (
    DEPTH_MAX,
    DOCUMENT_BYTES_MAX,
    FINDINGS_MAX,
    NODES_MAX,
    WHERE_MAX,
    Tree,
    ValuePosition,
    grow,
    shown,
)
from handrail.library.documents.json_document import read_json
from handrail.library.documents.yaml_document import read_yaml

__all__ = [
    "DEPTH_MAX",
    "DOCUMENT_BYTES_MAX",
    "FINDINGS_MAX",
    "NODES_MAX",
    "Document",
    "ValuePosition",
    "document_of",
    "finding_of",
    "read_document",
]

BOM: Final = "\ufeff"
UTF_16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")

SPLIT_IT: Final = "split it into several workflows"


class Document(Struct, frozen=True):
    """Data with positions; data that came without text has none."""

    name: str
    value: Json
    positions: Mapping[Path, ValuePosition] = field(default_factory=dict)
    twice: tuple[tuple[Path, str], ...] = ()
    """Keys that are given twice, if that is allowed: the last value counts."""

    def at(self, path: Path) -> Position | None:
        """The position of the value at a path, or of the nearest one around it."""
        nearest = self._nearest(path)
        return nearest.value if nearest else None

    def at_key(self, path: Path) -> Position | None:
        """The position of a value's key; for a list item, of the item, as it has no key."""
        nearest = self._nearest(path)
        return (nearest.key or nearest.value) if nearest else None

    def inside(self, path: Path, line: int, column: int) -> Position | None:
        """The position of a line and column in a string; the start of the string, if it is folded or escaped."""
        own = self.positions.get(path)
        if own is None or own.text is None:
            return self.at(path)
        return Position(own.text.file, own.text.line + line - 1, own.text.column + column - 1)

    def _nearest(self, path: Path) -> ValuePosition | None:
        for length in range(len(path), -1, -1):
            if path[:length] in self.positions:
                return self.positions[path[:length]]
        return None


def read_document(text: str | bytes, *, name: str, allows_twice: Callable[[Json], bool] | None = None) -> Document:
    """The document in a YAML or JSON text; raises Invalid with all errors in it.

    `allows_twice` says for which data a key may be given twice: there are formats whose own reader takes the last."""
    tree = _read(_decoded(text, name), name)
    is_only_twice = bool(tree.twice) and len(tree.findings) == len(tree.twice)
    if allows_twice is not None and is_only_twice and allows_twice(tree.value):
        return Document(name, tree.value, {**tree.positions, **tree.later}, tuple(tree.twice))
    return _document(tree, name)


def document_of(value: Json, *, name: str) -> Document:
    """A document of data that came without text; it has the same limits as one that was read."""
    return _document(grow(name, lambda tree: _feed(tree, value)), name)


def finding_of(flaw: Flaw, document: Document) -> Finding:
    """A flaw with its position in the document's text."""
    if flaw.on_key:
        at = document.at_key(flaw.path)
    elif (flaw.line, flaw.column) == (1, 1):
        at = document.at(flaw.path)
    else:
        at = document.inside(flaw.path, flaw.line, flaw.column)
    where = shown(place(flaw.path), most=WHERE_MAX)
    return Finding(rule=flaw.rule, severity=flaw.severity, where=where, message=flaw.message, fix=flaw.fix, at=at)


def _document(tree: Tree, name: str) -> Document:
    if tree.findings:
        raise Invalid(f"{name} can't be read: {tree.findings[0].message}", findings=tree.findings)
    return Document(name, tree.value, tree.positions)


def _read(text: str, name: str) -> Tree:
    """Read JSON or YAML: a string that starts with a brace may be either, so JSON is tried first."""
    if name.endswith(".json"):
        return read_json(text, name=name)
    if text.lstrip(" \t\r\n")[:1] not in ("{", "["):
        return read_yaml(text, name=name)
    tree = read_json(text, name=name)
    if not tree.misread:
        return tree
    other = read_yaml(text, name=name)
    # If it is neither, report the errors of the syntax that the file name suggests.
    return other if not other.findings or name.endswith((".yaml", ".yml")) else tree


def _decoded(text: str | bytes, name: str) -> str:
    """The characters of a string that is not too large; a byte order mark is dropped."""
    if len(text) > DOCUMENT_BYTES_MAX:
        raise _refusal(name, f"the document is larger than {DOCUMENT_BYTES_MAX:,} bytes", SPLIT_IT, rule="size")
    if isinstance(text, str):  # as bytes, so that lone surrogates are reported as in a file
        return _decoded(text.encode("utf-8", "surrogatepass"), name)
    try:
        return text.decode("utf-8").removeprefix(BOM)
    except UnicodeDecodeError as error:
        lines = (text[: error.start].decode("utf-8") + "x").splitlines()
        what = "UTF-16" if text.startswith(UTF_16_MARKS) else f"not UTF-8 (byte 0x{text[error.start]:02x})"
        at = Position(name, len(lines), len(lines[-1]))
        raise _refusal(name, f"the text is {what}", "save it as UTF-8", at=at) from None


def _refusal(name: str, message: str, fix: str, *, rule: str = "syntax", at: Position | None = None) -> Invalid:
    finding = Finding(
        rule=rule,
        severity=Severity.CRITICAL,
        where=place(()),
        message=message,
        fix=fix,
        at=at or Position(name, 1, 1),
    )
    return Invalid(f"{name} can't be read: {message}", findings=(finding,))


def _feed(tree: Tree, value: Json) -> None:
    """Feed data into a tree. Recursion is safe: the tree limits the depth."""
    match value:
        case Mapping():
            tree.open({}, None)
            for key, item in value.items():
                tree.key(_text_key(tree, key), None)
                _feed(tree, item)
            tree.close()
        case list() | tuple():
            tree.open([], None)
            for item in value:
                _feed(tree, item)
            tree.close()
        case str() | bool() | int() | float() | None:
            tree.leaf(value, None)
        case _:
            tree.stop(
                f"{type(value).__name__} is not JSON", "give objects, lists, strings, numbers, true, false, null", None
            )


def _text_key(tree: Tree, key: object) -> str:
    if not isinstance(key, str):
        tree.flaw(f"the key {shown(repr(key))} is not a string", "make it a string", None)
    return str(key)
