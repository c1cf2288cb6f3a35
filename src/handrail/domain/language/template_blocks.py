"""The blocks of a template: turns its pieces into a function that writes them to a page.

Pure. template_text.py splits the text into pieces. Output length, loop rounds and work are counted and limited while
rendering. Columns count from 1 over the whole text; template.py converts them to lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from keyword import kwlist
from typing import Final, NamedTuple, TypeAlias, cast

from handrail.domain.checks.finding import Path
from handrail.domain.json import Json
from handrail.domain.language.expression import Expression, Scope, condition, piped_expression
from handrail.domain.language.expression_path import Read, name_reason
from handrail.domain.language.expression_term import shown
from handrail.domain.language.expression_value import ExpressionRefused, Frame, kind, spoken, spoken_shape
from handrail.domain.language.shape import ANY, BOOLEAN, NUMBER, Shape, object_shape
from handrail.domain.language.template_filters import FILTERS, text_of
from handrail.domain.language.template_text import Part, Tag

OUTPUT_LENGTH_MAX: Final = 200_000
ROUNDS_MAX: Final = 100_000
BLOCKS_NESTED_MAX: Final = 20
LOOPS_NESTED_MAX: Final = 3
TAG_WORK: Final = 5  # the cost of a tag besides its expression, in units of work

_BLOCK: Final = re.compile(r"\s*+([A-Za-z]*+)\s*+")
_LOOP: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*+)\s++in\s++(?=\S)")
_WORDS: Final = ("if", "elif", "else", "endif", "for", "endfor", "raw", "endraw")
_LOOP_SHAPE: Final = object_shape(
    {"index": NUMBER, "index0": NUMBER, "first": BOOLEAN, "last": BOOLEAN, "length": NUMBER}
)
_RESERVED: Final = frozenset({"loop", "true", "false", "null", *kwlist})


class Page:
    """One rendering: the values and loop names, the text so far, and how much may be added."""

    __slots__ = ("frame", "length_left", "parts", "rounds_left", "values")

    def __init__(self, values: Mapping[str, Json]) -> None:
        # A copy: loops put their own names beside the run's values while they draw.
        self.values = dict(values)
        self.frame = Frame(self.values)
        self.parts: list[str] = []
        self.length_left = OUTPUT_LENGTH_MAX
        self.rounds_left = ROUNDS_MAX

    def write(self, text: str, column: int) -> None:
        """Add to the text, up to the limit."""
        # Counted over the whole page: a loop could write a short text a million times.
        self.length_left -= len(text)
        if self.length_left < 0:
            raise ExpressionRefused(f"the text is longer than {OUTPUT_LENGTH_MAX:,} characters here", column)
        self.parts.append(text)

    def count_round(self, column: int) -> None:
        """Count one round of a loop."""
        self.rounds_left -= 1
        if self.rounds_left < 0:
            raise ExpressionRefused(f"the loops take more than {ROUNDS_MAX:,} rounds", column)

    def taken(self) -> str:
        """The text so far; the page is then empty."""
        text = "".join(self.parts)
        self.parts.clear()
        return text


Draw: TypeAlias = Callable[[Page], Json]
Piece: TypeAlias = Callable[[Page], None]


class Block(NamedTuple):
    """A block tag: its word, what follows the word, and where that starts (from 0)."""

    word: str
    rest: str
    offset: int
    column: int


class PlacedExpression(NamedTuple):
    """An expression inside a template, which reports columns of the template."""

    shape: Shape
    read: Read
    text: str
    column: int


class Builder:
    """Builds one template, and collects the paths it reads and the loops it is in."""

    def __init__(self, tags: Sequence[Tag], scope: Scope) -> None:
        self.tags = iter(tags)
        self.scope = dict(scope)
        self.paths: dict[Path, None] = {}
        self.loop_names: list[str] = []
        self.depth = 0

    def value(self, tag: Tag) -> tuple[Shape, Draw]:
        """The value of an output tag that is the whole template, and its shape."""
        value = self._placed(_output_expression, tag.text, tag.offset)
        return value.shape, lambda page: value.read(page.frame)

    def text(self) -> Draw:
        """The text of all the pieces."""
        pieces, _ = self._pieces(None)

        def draw(page: Page) -> Json:
            for piece in pieces:
                piece(page)
            return page.taken()

        return draw

    def _pieces(self, opening: Block | None, *endings: str) -> tuple[list[Piece], Block]:
        """What comes up to the block tag that ends it, and that tag."""
        pieces: list[Piece] = []
        for tag in self.tags:
            if tag.part is Part.TEXT:
                pieces.append(_plain(tag))
            elif tag.part is Part.OUTPUT:
                pieces.append(self._output(tag))
            else:
                block = _block(tag)
                if block.word in endings:
                    return pieces, block
                pieces.append(self._nested(block))
        if opening:
            raise ExpressionRefused(f"{{% {opening.word} %}} is never closed", opening.column)
        return pieces, Block("", "", 0, 0)

    def _output(self, tag: Tag) -> Piece:
        value = self._placed(_output_expression, tag.text, tag.offset)
        if value.shape.types == {"null"}:
            raise ExpressionRefused(f"{value.text} is always null", value.column)

        def draw(page: Page) -> None:
            content = value.read(page.frame)
            try:
                text = text_of(content)
            except ExpressionRefused as refused:
                raise ExpressionRefused(f"{value.text} {refused.reason}", value.column) from None
            page.write(text, value.column)

        return draw

    def _nested(self, block: Block) -> Piece:
        self.depth += 1
        if self.depth > BLOCKS_NESTED_MAX:
            raise ExpressionRefused(f"more than {BLOCKS_NESTED_MAX} blocks are nested", block.column)
        if block.word == "if":
            piece = self._choice(block)
        elif block.word == "for":
            piece = self._loop(block)
        elif block.word in _WORDS:
            raise ExpressionRefused(f"{{% {block.word} %}} does not belong to an open block", block.column)
        else:
            raise ExpressionRefused(name_reason("there is no tag", block.word, _WORDS), block.column)
        self.depth -= 1
        return piece

    def _choice(self, opening: Block) -> Piece:
        branches: list[tuple[Read, list[Piece]]] = []
        block = opening
        while block.word != "endif":
            is_last = block.word == "else"
            test = _otherwise if is_last else self._placed(condition, block.rest, block.offset).read
            pieces, block = self._pieces(opening, "endif", *(() if is_last else ("elif", "else")))
            branches.append((test, pieces))

        def draw(page: Page) -> None:
            for test, pieces in branches:
                if test(page.frame):
                    for piece in pieces:
                        piece(page)
                    return

        return draw

    def _loop(self, opening: Block) -> Piece:
        name, items = self._loop_head(opening)
        outside = self.scope
        self.scope = {**outside, name: items.shape.items or ANY, "loop": _LOOP_SHAPE}
        self.loop_names.append(name)
        body, ending = self._pieces(opening, "else", "endfor")
        self.loop_names.pop()
        self.scope = outside
        instead = self._pieces(opening, "endfor")[0] if ending.word == "else" else []

        def draw(page: Page) -> None:
            rounds = _list_of(items, page)
            outer = page.values.get("loop")
            for index, item in enumerate(rounds):
                page.count_round(opening.column)
                page.values[name] = item
                page.values["loop"] = _loop_value(index, len(rounds))
                for piece in body:
                    piece(page)
            page.values["loop"] = outer
            for piece in () if rounds else instead:
                piece(page)

        return draw

    def _loop_head(self, block: Block) -> tuple[str, PlacedExpression]:
        """The item name of a loop and the list it iterates over."""
        found = _LOOP.match(block.rest)
        if found is None:
            raise ExpressionRefused("write {% for name in list %}", block.column)
        if len(self.loop_names) == LOOPS_NESTED_MAX:
            raise ExpressionRefused(f"more than {LOOPS_NESTED_MAX} loops are nested", block.column)
        self._check_loop_name(found[1], block.offset + 1)
        items = self._placed(_plain_expression, block.rest[found.end() :], block.offset + found.end())
        if not items.shape.admits("array"):
            raise ExpressionRefused(f"for needs a list, but {items.text} is {spoken_shape(items.shape)}", items.column)
        return found[1], items

    def _check_loop_name(self, name: str, column: int) -> None:
        if name.startswith("_") or name in _RESERVED:
            raise ExpressionRefused(f"'{name}' can't be the name of a loop's item", column)
        own = {"loop"} if self.loop_names else set()  # an inner loop has a `loop` of its own
        if taken := {name, "loop"} & self.scope.keys() - own:
            raise ExpressionRefused(f"the name '{min(taken)}' is taken; choose another", column)

    def _placed(self, compiled: Callable[[str, Scope], Expression], text: str, offset: int) -> PlacedExpression:
        try:
            expression = compiled(text, self.scope)
        except ExpressionRefused as refused:
            raise ExpressionRefused(refused.reason, offset + max(1, refused.column)) from None
        own = {*self.loop_names, "loop"} if self.loop_names else set()
        self.paths.update((path, None) for path in expression.paths if path[0] not in own)
        column = offset + len(text) - len(text.lstrip()) + 1
        return PlacedExpression(expression.shape, _placed_read(expression, offset), shown(text.strip()), column)


def _output_expression(text: str, scope: Scope) -> Expression:
    return piped_expression(text, scope, FILTERS)


def _plain_expression(text: str, scope: Scope) -> Expression:
    return piped_expression(text, scope, {})


def _placed_read(expression: Expression, offset: int) -> Read:
    read, work = expression.read, expression.size + TAG_WORK

    def placed(frame: Frame) -> Json:
        try:
            frame.spend(work)
            return read(frame)
        except ExpressionRefused as refused:
            raise ExpressionRefused(refused.reason, offset + max(1, refused.column)) from None

    return placed


def _list_of(items: PlacedExpression, page: Page) -> Sequence[Json]:
    value = items.read(page.frame)
    if kind(value) != "array":
        raise ExpressionRefused(f"for needs a list, but {items.text} is {spoken(kind(value))}", items.column)
    return cast("Sequence[Json]", value)


def _plain(tag: Tag) -> Piece:
    return lambda page: page.write(tag.text, tag.offset + 1)


def _block(tag: Tag) -> Block:
    found = cast("re.Match[str]", _BLOCK.match(tag.text))
    word, rest = found[1], tag.text[found.end() :]
    column = tag.offset + found.start(1) + 1
    if word in ("else", "endif", "endfor") and rest:
        advice = "write {% elif condition %}" if word == "else" else f"write {{% {word} %}}"
        raise ExpressionRefused(f"nothing can follow '{word}'; {advice}", column)
    return Block(word, rest, tag.offset + found.end(), column)


def _otherwise(_: Frame) -> Json:
    return True


def _loop_value(index: int, length: int) -> Json:
    return {
        "index": index + 1,
        "index0": index,
        "first": index == 0,
        "last": index == length - 1,
        "length": length,
    }
