"""The tree that a reader builds from a document: values, their positions, and errors.

All readers (YAML, JSON, plain data) build the same tree, so that limits, numbers and duplicate keys are the same. The
readers check the syntax."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

from msgspec import Struct

from handrail.domain.checks.finding import Finding, Path, Position, Severity, place
from handrail.domain.json import EXACT_INTEGER_MAX, Json

DOCUMENT_BYTES_MAX: Final = 1_000_000
DEPTH_MAX: Final = 60
NODES_MAX: Final = 200_000
FINDINGS_MAX: Final = 200
SHOWN_MAX: Final = 60
WHERE_MAX: Final = 300

QUOTE_IT: Final = "put it in quotes if it is a string"
EMPTY: Final = ("the document is empty", "write at least a name and steps")

_lone_surrogate = re.compile("[\ud800-\udfff]")


class ValuePosition(Struct, frozen=True, gc=False):
    """The position of a value and of its key.

    `text` is where the characters of a string start, if they are in the document exactly as in the value."""

    key: Position | None
    value: Position
    text: Position | None = None


class _Unreadable(Exception):
    """Reading can't continue; the finding in the tree says why."""


class _Branch(Struct, gc=False):
    """An open object or list, with the size of the tree before it."""

    path: Path
    held: dict[str, Json] | list[Json]
    position: Position | None
    anchor: str | None
    nodes_before: int
    chars_before: int
    height: int = 1
    has_key: bool = False
    key: str = ""
    key_position: Position | None = None


class _Anchored(Struct, frozen=True, gc=False):
    """A finished value that aliases may repeat; its nodes are a slice of the tree's paths."""

    path: Path
    value: Json
    nodes: slice
    chars: int
    height: int


class Tree:
    """A document under construction; it is usable if `findings` is empty at the end."""

    def __init__(self, name: str) -> None:
        self.value: Json = None
        self.positions: dict[Path, ValuePosition] = {}
        self.later: dict[Path, ValuePosition] = {}
        """The positions of values whose key was given before."""
        self.findings: list[Finding] = []
        self.twice: list[tuple[Path, str]] = []
        """Keys that are given twice, and what is wrong with them; the last value is kept."""
        self.misread = False
        """Whether reading ended early because of a syntax error: the text may be of another syntax."""
        self._name = name
        self._open: list[_Branch] = []
        self._paths: list[Path] = []
        self._chars = 0
        self._anchors: dict[str, _Anchored | None] = {}

    # Questions of readers.

    @property
    def growing(self) -> bool:
        """Whether an object or list is open."""
        return bool(self._open)

    @property
    def in_object(self) -> bool:
        """Whether the innermost open collection is an object."""
        return bool(self._open) and isinstance(self._open[-1].held, dict)

    @property
    def wants_key(self) -> bool:
        """Whether a key must come next."""
        return self.in_object and not self._open[-1].has_key

    @property
    def has_members(self) -> bool:
        """Whether the innermost open collection has a member."""
        return bool(self._open[-1].held)

    @property
    def opened_line(self) -> int:
        """The line on which the innermost open collection starts."""
        position = self._open[-1].position
        return position.line if position else 1

    def position(self, line: int, column: int) -> Position:
        """A position in this document's text."""
        return Position(self._name, line, column)

    # What readers report.

    def key(self, key: str, position: Position | None) -> None:
        """The key of the next value."""
        branch = self._open[-1]
        branch.has_key, branch.key, branch.key_position = True, key, position
        self._weigh(key, position)
        if key in branch.held:
            first = self.positions.get((*branch.path, key))
            where = f": first on line {first.key.line}" if first and first.key else ""
            message = f"`{shown(key)}` is given twice{where}"
            self.twice.append(((*branch.path, key), message))
            self.flaw(message, "keep one of the two", position)

    def leaf(
        self, value: Json, position: Position | None, *, text: Position | None = None, anchor: str | None = None
    ) -> None:
        """A string, number, boolean or null."""
        path, nodes, chars = self._here(), len(self._paths), self._chars
        value = self._exact(value, position)
        self._put(path, value, position, text)
        if anchor is not None:
            self._anchors[anchor] = _Anchored(path, value, slice(nodes, nodes + 1), self._chars - chars, 0)

    def open(self, held: dict[str, Json] | list[Json], position: Position | None, *, anchor: str | None = None) -> None:
        """The start of an object or list."""
        path, nodes = self._here(), len(self._paths)
        if len(self._open) >= DEPTH_MAX:
            self._too_deep(position)
        self._put(path, held, position)
        self._open.append(_Branch(path, held, position, anchor, nodes, self._chars))
        if anchor is not None:
            self._anchors[anchor] = None

    def close(self) -> None:
        """The end of the innermost open object or list."""
        branch = self._open.pop()
        self._raise_height(branch.height)
        if branch.anchor is not None:
            nodes, chars = slice(branch.nodes_before, len(self._paths)), self._chars - branch.chars_before
            self._anchors[branch.anchor] = _Anchored(branch.path, branch.held, nodes, chars, branch.height)

    def repeat(self, anchor: str, position: Position) -> None:
        """A copy of a value that was anchored earlier."""
        if anchor not in self._anchors:
            self.stop(f"`*{anchor}` has no anchor `&{anchor}` before it", "quote a string that starts with *", position)
        original = self._anchors[anchor]
        if original is None:
            self.stop(f"`*{anchor}` contains itself", "write the value out", position)
        path = self._here()
        if len(path) + original.height > DEPTH_MAX:
            self._too_deep(position)
        if len(self._paths) + original.nodes.stop - original.nodes.start > NODES_MAX:
            self._too_large(f"more than {NODES_MAX:,} values once its aliases are written out", position)
        self._add_chars(original.chars, position)
        inner = self._paths[original.nodes][1:]
        self._put(path, original.value, position)
        self._raise_height(original.height)
        for old in inner:  # an error inside must be fixed where the value is written
            new = (*path, *old[len(original.path) :])
            self._paths.append(new)
            self.positions[new] = self.positions[old]

    def flaw(self, message: str, fix: str, position: Position | None) -> None:
        """An error after which reading can continue."""
        self._note("syntax", message, fix, position)
        if len(self.findings) >= FINDINGS_MAX:
            self.stop("no more errors are listed", "fix these first", position, rule="size")

    def stop(self, message: str, fix: str, position: Position | None, *, rule: str = "syntax") -> NoReturn:
        """An error that ends reading."""
        self._note(rule, message, fix, position)
        self.misread = rule == "syntax"
        raise _Unreadable

    def _note(self, rule: str, message: str, fix: str, position: Position | None) -> None:
        where = shown(place(self._here()), most=WHERE_MAX)
        finding = Finding(rule=rule, severity=Severity.CRITICAL, where=where, message=message, fix=fix, at=position)
        self.findings.append(finding)

    def _here(self) -> Path:
        """The path of the value that comes next; of the object, where a key comes next."""
        if not self._open:
            return ()
        branch = self._open[-1]
        if isinstance(branch.held, list):
            return (*branch.path, len(branch.held))
        return (*branch.path, branch.key) if branch.has_key else branch.path

    def _put(self, path: Path, value: Json, position: Position | None, text: Position | None = None) -> None:
        if len(self._paths) >= NODES_MAX:
            self._too_large(f"more than {NODES_MAX:,} values", position)
        key_position = self._attach(value)
        self._paths.append(path)
        if position is not None:
            places = self.later if path in self.positions else self.positions  # a duplicate key names the first
            places[path] = ValuePosition(key_position, position, text)

    def _attach(self, value: Json) -> Position | None:
        """Add the value to the innermost open collection; returns the position of its key."""
        if not self._open:
            self.value = value
            return None
        branch = self._open[-1]
        if isinstance(branch.held, list):
            branch.held.append(value)
            return None
        branch.held[branch.key] = value
        branch.has_key = False
        return branch.key_position

    def _exact(self, value: Json, position: Position | None) -> Json:
        """The value, with whole floats as integers (as in the canonical form); other numbers than JSON's are flaws."""
        match value:
            case str():
                self._weigh(value, position)
            case bool() | None:
                pass
            case int() if abs(value) > EXACT_INTEGER_MAX:
                self.flaw(f"a number beyond {EXACT_INTEGER_MAX} is too large to be exact", QUOTE_IT, position)
            case float() if not math.isfinite(value):
                self.flaw("JSON has no such number", QUOTE_IT, position)
            case float() if value.is_integer() and abs(value) <= EXACT_INTEGER_MAX:
                return int(value)
        return value

    def _raise_height(self, child_height: int) -> None:
        if self._open:
            self._open[-1].height = max(self._open[-1].height, child_height + 1)

    def _weigh(self, text: str, position: Position | None) -> None:
        self._add_chars(len(text), position)
        if not text.isascii() and _lone_surrogate.search(text):
            self.flaw("half a surrogate pair is not a character", "write the character itself", position)

    def _add_chars(self, chars: int, position: Position | None) -> None:
        # An alias repeats a long string in a few characters, so the limit is for the expanded document.
        self._chars += chars
        if self._chars > DOCUMENT_BYTES_MAX:
            self._too_large(f"more than {DOCUMENT_BYTES_MAX:,} characters once its aliases are written out", position)

    def _too_deep(self, position: Position | None) -> NoReturn:
        self.stop(f"more than {DEPTH_MAX} levels deep", "nest less", position, rule="size")

    def _too_large(self, what: str, position: Position | None) -> NoReturn:
        self.stop(f"the document has {what}", "split it into several workflows", position, rule="size")


def grow(name: str, read: Callable[[Tree], None]) -> Tree:
    """The tree that a reader has built, up to the end or to the error that stopped it."""
    tree = Tree(name)
    with suppress(_Unreadable):
        read(tree)
    return tree


def shown(text: str, *, most: int = SHOWN_MAX) -> str:
    """A string for a message: short, and on one line."""
    short = text if len(text) <= most else f"{text[: most - 1]}…"
    return short.replace("\n", "\\n").replace("\r", "\\r")
