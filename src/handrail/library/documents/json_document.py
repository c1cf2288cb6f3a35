"""Reads JSON into a tree, with our own scanner: the json module gives no positions.

Strict JSON (RFC 8259), in linear time and without recursion. Common mistakes of people and models (comments, trailing
commas, single quotes, Python literals) are refused with a message that says how to fix them."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import Final, NoReturn

from handrail.domain.checks.finding import Position
from handrail.domain.json import Json
from handrail.library.documents.document_tree import EMPTY, Tree, grow

# Repetitions are possessive (*+): without them, a long string would use memory for backtracking.
_line_end = re.compile(r"\r\n|\n|\r")
_blank = re.compile(r"[ \t\n\r]*+")
_comment = re.compile(r"//[^\n\r]*+|/\*(?>(?:[^*]|\*(?!/))*)\*/")
_string = re.compile(r'"[^"\\\x00-\x1f]*+(?>(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*)"')
_number = re.compile(r"(-?(?:0|[1-9][0-9]*+))(?>(\.[0-9]++)?)(?>([eE][-+]?[0-9]++)?)(?![-+.\w])")
_word = re.compile(r"-?[A-Za-z]++")

_WORDS: Final[dict[str, Json]] = {
    "true": True,
    "false": False,
    "null": None,
    # Not JSON, but meant as numbers: the tree reports them as such.
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}

NO_COMMENTS: Final = ("JSON has no comments", "remove the comment, or write the document as YAML")

# A string up to where it is no longer JSON.
_VALID_START: Final = r'"(?>(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*)'

# What is there instead of a key or value, the message, and the fix; the first match wins.
# The position is that of the group `at`, or the start of the key or value.
_MISTAKES: Final = tuple(
    (re.compile(pattern), message, fix)
    for pattern, message, fix in (
        (r"[\]},:]", "a value is missing here", "write one, or remove what waits for it"),
        (r"True\b|False\b|None\b", "JSON knows true, false and null", "write it in small letters, and null for None"),
        (r"'", "a string needs double quotes", "write \"...\" instead of '...'"),
        (r"#|/\*", *NO_COMMENTS),
        (r"[-+.0-9]", "not a number that JSON knows", "write it like 12, -3 or 0.5, and a string in double quotes"),
        (_VALID_START + r"[\n\r]", "a string can't go on in the next line", "close the quote, or write \\n"),
        (_VALID_START + r"(?P<at>[\x00-\x1f])", "a control character in a string", "write it as \\t or \\u...."),
        (_VALID_START + r"(?P<at>\\)", "not an escape that JSON knows", "double the \\"),
        (r'"', "the quote is never closed", "close it"),
        (r"[A-Za-z_$]", "a string needs double quotes", 'write "..." around it'),
        (r"", "no value can start here", "remove it"),
    )
)


def read_json(text: str, *, name: str) -> Tree:
    """The tree of a JSON text, with all errors."""
    return grow(name, lambda tree: _Scanner(text, tree).read())


class _Scanner:
    """One pass over the characters; the tree has the open objects and lists."""

    def __init__(self, text: str, tree: Tree) -> None:
        self._text = text
        self._tree = tree
        self._at = 0
        self._line_starts = [0, *(found.end() for found in _line_end.finditer(text))]

    def read(self) -> None:
        self._value()
        while self._tree.growing:
            self._member()
        if self._next():
            self._tree.stop("the document ends before this", "keep one JSON value in each file", self._position())

    def _member(self) -> None:
        """One member of the innermost collection, or its end."""
        closing = "}" if self._tree.in_object else "]"
        if self._next() == closing:
            self._at += 1
            self._tree.close()
            return
        if self._tree.has_members:
            self._comma(closing)
        if self._tree.in_object:
            self._key()
        self._value()

    def _comma(self, closing: str) -> None:
        self._expect(",", f"`,` or `{closing}`")
        comma = self._position(self._at - 1)
        if self._next() == closing:
            self._tree.stop(f"a comma before `{closing}`", "remove the comma", comma)

    def _key(self) -> None:
        if self._next() != '"':
            self._refuse()
        at = self._position()
        self._tree.key(self._string(), at)
        self._expect(":", "`:`")

    def _value(self) -> None:
        first, at = self._next(), self._position()
        if first in ("{", "["):
            self._at += 1
            self._tree.open({} if first == "{" else [], at)
        elif first == '"':
            start = self._at
            value = self._string()
            unescaped = self._at - start == len(value) + 2
            self._tree.leaf(value, at, text=self._position(start + 1) if unescaped else None)
        else:
            self._tree.leaf(self._number_or_word(), at)

    def _string(self) -> str:
        token = self._take(_string)
        if token is None:
            self._refuse()
        value: str = json.loads(token[0]) if "\\" in token[0] else token[0][1:-1]
        return value

    def _number_or_word(self) -> Json:
        number = _number.match(self._text, self._at)
        if number is not None:
            self._at = number.end()
            whole = number[2] is None and number[3] is None
            return int(number[0][:40]) if whole else float(number[0])  # 40 digits suffice to be refused as too large
        word = _word.match(self._text, self._at)
        if word is None or word[0] not in _WORDS:
            self._refuse()
        self._at = word.end()
        return _WORDS[word[0]]

    def _expect(self, sign: str, name: str) -> None:
        found = self._next()
        if not found:
            self._unfinished()
        if found != sign:
            self._tree.stop(
                f"{name} is missing before this", "add it, or see whether a quote ends early", self._position()
            )
        self._at += 1

    def _next(self) -> str:
        """The next character that is not blank or comment; empty at the end."""
        self._take(_blank)
        while _comment.match(self._text, self._at):
            self._tree.flaw(*NO_COMMENTS, self._position())
            self._take(_comment)
            self._take(_blank)
        return self._text[self._at : self._at + 1]

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _refuse(self) -> NoReturn:
        if self._at >= len(self._text):
            self._unfinished()
        mistakes = ((pattern.match(self._text, self._at), message, fix) for pattern, message, fix in _MISTAKES)
        found, message, fix = next((found, message, fix) for found, message, fix in mistakes if found)
        self._tree.stop(message, fix, self._position(found.start("at") if "at" in found.re.groupindex else self._at))

    def _unfinished(self) -> NoReturn:
        if not self._tree.growing:
            self._tree.stop(*EMPTY, self._position())
        closing = "}" if self._tree.in_object else "]"
        message = f"the document ends inside what was opened on line {self._tree.opened_line}"
        self._tree.stop(message, f"add `{closing}`", self._position())

    def _position(self, index: int | None = None) -> Position:
        index = self._at if index is None else index
        line = bisect_right(self._line_starts, index)
        return self._tree.position(line, index - self._line_starts[line - 1] + 1)
