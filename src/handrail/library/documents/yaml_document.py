"""Reads YAML into a tree, from the parser's events, with the core schema of YAML 1.2.

Refuses tags beyond the core ones, merge keys, keys that are not strings, and several documents in one text. It uses
events, not the library's composed nodes: composing recurses, and a deep document would crash the process.
yaml_syntax.py has the messages for the parser's errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import yaml

from handrail.domain.checks.finding import Position
from handrail.domain.json import Json
from handrail.library.documents.document_tree import EMPTY, Tree, grow, shown
from handrail.library.documents.yaml_syntax import complaint_of

# The C parser is far faster; on a platform without it, the pure Python one reads nearly the same.
_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# U+0085, U+2028 and U+2029 end a line in YAML 1.1 but not in 1.2, nor in editors: lines would be counted differently.
_unfit = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")

_core = re.compile(
    r"""(?P<null> ~ | null | Null | NULL | )
      | (?P<true> true | True | TRUE) | (?P<false> false | False | FALSE)
      | (?P<int> [-+]? (?: 0 | [1-9][0-9]*)) | (?P<octal> 0o[0-7]+) | (?P<hex> 0x[0-9a-fA-F]+)
      | (?P<float> [-+]? (?: \.[0-9]+ | (?: 0 | [1-9][0-9]*) (?: \.[0-9]*)? ) (?: [eE][-+]?[0-9]+)? )
      | (?P<none> [-+]?\. (?: inf | Inf | INF) | \. (?: nan | NaN | NAN))""",
    re.VERBOSE,
)
_READ: Final[Mapping[str, Callable[[str], Json]]] = {
    "null": lambda _: None,
    "true": lambda _: True,
    "false": lambda _: False,
    "int": lambda text: int(
        text[:40]
    ),  # enough digits to be refused as too large; int() raises for thousands of digits
    "octal": lambda text: int(text[2:], 8),
    "hex": lambda text: int(text[2:], 16),
    "float": float,
    "none": lambda _: float("nan"),
}

CORE_TAG: Final = "tag:yaml.org,2002:"
_SCALAR_TAGS: Final[Mapping[str, tuple[type, ...]]] = {
    f"{CORE_TAG}null": (type(None),),
    f"{CORE_TAG}bool": (bool,),
    f"{CORE_TAG}int": (int,),
    f"{CORE_TAG}float": (int, float),
}


def read_yaml(text: str, *, name: str) -> Tree:
    """The tree of a YAML text, with all errors."""
    return grow(name, lambda tree: _YamlReader(text, tree).read())


def reads_as_text(word: str) -> bool:
    """Whether YAML reads an unquoted word as a string, and not as a number, boolean or null."""
    return _core.fullmatch(word) is None


def _core_value(word: str) -> Json:
    found = _core.fullmatch(word)
    return _READ[str(found.lastgroup)](word) if found else word


class _YamlReader:
    """One pass over the parser's events."""

    def __init__(self, text: str, tree: Tree) -> None:
        self._text = text
        self._tree = tree
        self._documents = 0
        self._reached = tree.position(1, 1)

    def read(self) -> None:
        handlers: dict[type, Callable[[Any], None]] = {
            yaml.DocumentStartEvent: self._document,
            yaml.MappingStartEvent: self._mapping,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceStartEvent: self._sequence,
            yaml.SequenceEndEvent: self._end,
            yaml.ScalarEvent: self._scalar,
            yaml.AliasEvent: self._alias,
        }
        self._check_characters()
        try:
            for event in yaml.parse(self._text, Loader=_Loader):
                handler = handlers.get(type(event))
                if handler is not None:
                    self._reached = self._position(event.start_mark)
                    handler(event)
        except yaml.MarkedYAMLError as error:
            found = complaint_of(error, self._text, self._tree)
            self._tree.stop(found.message, found.fix, found.at)
        except (yaml.YAMLError, ValueError, OverflowError):
            # The parsers do not check a few escapes that are no characters.
            self._tree.stop("an escape names no character", "write the character itself", self._reached)
        if not self._documents:
            self._tree.stop(*EMPTY, self._reached)

    def _check_characters(self) -> None:
        unfit = _unfit.search(self._text)
        if unfit is None:
            return
        lines = (self._text[: unfit.start()] + "x").splitlines()
        code = f"{ord(unfit[0]):04x}"
        fix = f'write "\\u{code}", in double quotes' if unfit[0] != "\0" else "save it as UTF-8"
        self._tree.stop(
            f"U+{code.upper()} is not allowed in YAML", fix, self._tree.position(len(lines), len(lines[-1]))
        )

    def _document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            self._tree.stop("a second document starts here", "keep one workflow in each file", self._reached)

    def _mapping(self, event: Any) -> None:
        self._check_tag(event, "map")
        self._tree.open({}, self._reached, anchor=event.anchor)

    def _sequence(self, event: Any) -> None:
        self._check_tag(event, "seq")
        self._tree.open([], self._reached, anchor=event.anchor)

    def _end(self, event: Any) -> None:
        self._tree.close()

    def _alias(self, event: Any) -> None:
        if self._tree.wants_key:
            self._tree.key(f"*{event.anchor}", self._reached)
            self._tree.flaw("an alias can't be a key", "write the key out", self._reached)
        else:
            self._tree.repeat(event.anchor, self._reached)

    def _scalar(self, event: Any) -> None:
        if self._tree.wants_key:
            self._key(event)
        elif not self._tree.growing and not event.value and not event.style:
            self._tree.stop(*EMPTY, self._reached)
        else:
            value = self._value(event)
            text = self._text_position(event) if isinstance(value, str) else None
            self._tree.leaf(value, self._reached, text=text, anchor=event.anchor)

    def _key(self, event: Any) -> None:
        key: str = event.value
        self._tree.key(key, self._reached)
        if event.anchor is not None:
            self._tree.flaw("a key can't have an anchor", "put it on the value", self._reached)
        if not isinstance(self._value(event), str):
            self._tree.flaw(
                f"the key `{shown(key)}` is not a string", f"put it in quotes: '{shown(key)}'", self._reached
            )
        elif key == "<<" and not event.style:
            fix = "write the keys out; a whole workflow can be inherited with `extends`"
            self._tree.flaw("merge keys (`<<`) are not read", fix, self._reached)

    def _value(self, event: Any) -> Json:
        """The value of a scalar: a string if quoted, else by the core schema or its tag."""
        text: str = event.value
        if event.tag is None:
            return text if event.style else _core_value(text)
        if event.tag not in _SCALAR_TAGS:
            self._check_tag(event, "str")
            return text
        value = _core_value(text)
        if type(value) not in _SCALAR_TAGS[event.tag]:
            tag = event.tag.removeprefix(CORE_TAG)
            self._tree.flaw(f"`{shown(text)}` is not `!!{tag}`", "remove the tag", self._reached)
        return value

    def _check_tag(self, event: Any, fitting: str) -> None:
        """Refuse collections as keys, and all tags except the fitting core tag: tags could create objects."""
        if self._tree.wants_key and not isinstance(event, yaml.ScalarEvent):
            index = event.start_mark.index
            template = self._text[index - 1 : index + 1] == "{{"
            fix = "quote a string that starts with {{: '{{ ... }}'" if template else "a key is a string"
            self._tree.stop("an object or list can't be a key", fix, self._reached)
        if event.tag is not None and event.tag != CORE_TAG + fitting:
            tag = event.tag.replace(CORE_TAG, "!!")
            self._tree.flaw(
                f"the tag `{shown(tag)}` is not read", "remove it; quote a string that starts with !", self._reached
            )

    def _position(self, mark: Any) -> Position:
        return self._tree.position(mark.line + 1, mark.column + 1)

    def _text_position(self, event: Any) -> Position | None:
        """Where the characters of a string start, if they are in the document exactly as in the value."""
        value: str = event.value
        start, end = event.start_mark, event.end_mark
        if event.style == "|":
            return self._block_position(value, start, self._text[start.index : end.index].splitlines())
        quote = 1 if event.style else 0
        first = end.index - quote - len(value)
        if start.line == end.line and self._text.startswith(value, first):
            return self._tree.position(end.line + 1, end.column - quote - len(value) + 1)
        return None

    def _block_position(self, value: str, start: Any, source: list[str]) -> Position | None:
        # The first line that is not empty shows how far the block is indented.
        for number, line in enumerate(value.split("\n"), 1):
            if line and number < len(source) and "|" in source[0] and source[number].endswith(line):
                return self._tree.position(start.line + 2, len(source[number]) - len(line) + 1)
            if line:
                break
        return None
