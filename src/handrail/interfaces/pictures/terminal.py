"""The terminal picture: a definition as lanes with a line for each step, loops as frames below their line.

Pure. caption.py removes control characters from a definition's text, so all escape codes are ours; there are none
without colour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct
from rich.cells import cell_len

from handrail.domain.definition.model import Definition, Kind
from handrail.interfaces.pictures.caption import (
    WHO,
    Sign,
    facts_of,
    name_of,
    plain,
    subject_of,
)
from handrail.interfaces.pictures.ink import Line, Piece, Tone, cut, fitted, padded, painted, width_of
from handrail.interfaces.pictures.lanes import DOWN, LEFT, OVER, RIGHT, UP, Cells, rows_of
from handrail.interfaces.pictures.outline import Item, Outline, bundle_text, kinds_in, levels, outlined, remarks_in

WIDTH_MIN: Final = 20
LANES_MAX: Final = 10
CELLS_FOR_A_LANE: Final = 5
"""Each lane must leave this many cells of a line for text."""
ID_COLUMN_MAX: Final = 20
KIND_COLUMN: Final = 10
FRAME_MIN: Final = 30
"""With less room, a loop's body is drawn without a frame."""


class _Glyphs(Struct, frozen=True, kw_only=True):
    """The characters of a drawing. `arms` is indexed by a set of arms: up 1, down 2, left 4, right 8."""

    arms: str
    kinds: Mapping[Kind, str]
    marks: Mapping[Sign, str]
    start: str
    bundle: str
    dot: str
    ellipsis: str
    unicode: bool


UNICODE: Final = _Glyphs(
    arms=" ╵╷│╴╯╮┤╶╰╭├─┴┬┼",
    kinds={
        Kind.PROMPT: "●",
        Kind.TOOL: "■",
        Kind.APPROVE: "▲",
        Kind.WORKFLOW: "▣",
        Kind.EACH: "≡",
        Kind.REPEAT: "↻",
    },
    marks={
        Sign.WHEN: "◇ ",
        Sign.AFTER: "",
        Sign.UNDO: "↶ ",
        Sign.DANGER: "⚠ ",
        Sign.CYCLE: "↺ ",
        Sign.PLAIN: "",
    },
    start="○",
    bundle="⋮",
    dot=" · ",
    ellipsis="…",
    unicode=True,
)
ASCII: Final = _Glyphs(
    arms=" |||-'.+-`.+-+++",
    kinds={
        Kind.PROMPT: "*",
        Kind.TOOL: "#",
        Kind.APPROVE: "?",
        Kind.WORKFLOW: "@",
        Kind.EACH: "=",
        Kind.REPEAT: "~",
    },
    marks={
        Sign.WHEN: "<> ",
        Sign.AFTER: "",
        Sign.UNDO: "<- ",
        Sign.DANGER: "!! ",
        Sign.CYCLE: "() ",
        Sign.PLAIN: "",
    },
    start="o",
    bundle=":",
    dot=", ",
    ellipsis="...",
    unicode=False,
)
LEGEND_KINDS: Final = (Kind.PROMPT, Kind.TOOL, Kind.APPROVE)
TONES: Final[Mapping[Sign, Tone]] = {
    Sign.WHEN: Tone.WHEN,
    Sign.UNDO: Tone.UNDO,
    Sign.DANGER: Tone.DANGER,
    Sign.CYCLE: Tone.DANGER,
}


def terminal_picture(definition: Definition, *, width: int = 80, unicode: bool = True, color: bool = False) -> str:
    """The definition as lines of at most `width` cells: a line for each step, parallel steps in lanes."""
    pen = _Pen(UNICODE if unicode else ASCII)
    room = max(width, WIDTH_MIN)
    outline = outlined(definition)
    lines = [*pen.header(definition), *pen.drawing(outline, room, stem=True), *pen.legend(outline, room)]
    return "\n".join(painted(fitted(line, width, pen.glyphs.ellipsis), color=color) for line in lines)


class _Pen(Struct, frozen=True):
    """Draws with one set of characters."""

    glyphs: _Glyphs

    def header(self, definition: Definition) -> list[Line]:
        """The name, and facts about the whole definition."""
        signature = " ".join(filter(None, (plain(definition.id), plain(definition.version))))
        stem = self.glyphs.arms[UP | DOWN] if definition.steps else " "
        return [
            [
                (f"{self.glyphs.start} ", Tone.QUIET),
                (self.encodable(name_of(definition)), Tone.NAME),
                (f"  {self.encodable(signature)}", Tone.QUIET),
            ],
            [(f"{stem} {self.encodable(self.glyphs.dot.join(facts_of(definition)))}", Tone.QUIET)],
        ]

    def drawing(self, outline: Outline, room: int, *, stem: bool = False) -> list[Line]:
        """The outline in lanes, or in waves if there would be too many lanes."""
        rows = rows_of(outline, columns_max=min(LANES_MAX, room // CELLS_FOR_A_LANE), stem=stem)
        if rows is None:
            return self.waves(outline, room)
        columns = max((len(row.cells) for row in rows), default=0)
        needs, names = outline.needs, self.id_column(outline.items)
        lines: list[Line] = []
        for row in rows:
            if row.item is None:
                lines.append(self.gutter(row.cells, columns))
                continue
            item = outline.items[row.item]
            head = self.gutter(row.cells, columns, (row.column, self.sign(item)))
            below = self.gutter(row.below, columns)
            # After a bundle the picture is clear; listing all its names would not help.
            named = len(item.needs) > 1 and not any(outline.items[need].is_bundle for need in needs[row.item])
            lines += self.entry(item, head, below, room - 2 * columns, names, named=named)
        return lines

    def waves(self, outline: Outline, room: int) -> list[Line]:
        """Everything that could start together as one list, wave after wave; each item names what it waits for."""
        level = levels(outline, meeting=0)
        lines: list[Line] = []
        for wave in range(max(level) + 1):
            items = [item for item, at in zip(outline.items, level, strict=True) if at == wave and item.is_shown]
            many = f"{self.glyphs.dot}{len(items)} in parallel" if len(items) > 1 else ""
            lines.append([(f"wave {wave + 1}{many}", Tone.QUIET)])
            lines += self.listed([[item] for item in items], room, named=True)
        return lines

    def listed(self, strands: Sequence[Sequence[Item]], room: int, *, named: bool = False) -> list[Line]:
        """Chains of items that run in parallel, each below its own bracket."""
        arms, names = self.glyphs.arms, self.id_column(chain.from_iterable(strands))
        lines: list[Line] = []
        for number, strand in enumerate(strands, 1):
            bracket = arms[UP | DOWN | RIGHT] if number < len(strands) else arms[UP | RIGHT]
            bar = arms[UP | DOWN] if number < len(strands) else " "
            for place, item in enumerate(strand):
                head: Line = [(f"{bar if place else bracket} ", Tone.QUIET), self.sign(item), (" ", Tone.TEXT)]
                stem = arms[UP | DOWN] if place + 1 < len(strand) else " "
                lines += self.entry(item, head, [(f"{bar} {stem} ", Tone.QUIET)], room - 4, names, named=named)
        return lines

    def entry(self, item: Item, head: Line, below: Line, room: int, names: int, *, named: bool) -> list[Line]:
        """The lines of one item: its text, remarks that do not fit beside it, and its inside."""
        words, remarks = self.words(item, names), self.remarks(item, named=named)
        beside: Line = [*words, ("   ", Tone.TEXT), *self.joined(remarks)]
        if remarks and width_of(beside) <= room:
            lines, left = [beside], []
        else:
            lines, left = [fitted(words, room, self.glyphs.ellipsis)], remarks
        indent = KIND_COLUMN if room > 2 * FRAME_MIN else 2
        lines += [[(" " * indent, Tone.TEXT), *line] for line in self.wrapped(left, room - indent)]
        if item.inside is not None:
            lines += self.frame(item, item.inside, room)
        return [[*(below if number else head), *line] for number, line in enumerate(lines)]

    def words(self, item: Item, names: int) -> Line:
        """The item's kind, id and title."""
        if item.step is None:
            return [("parallel".ljust(KIND_COLUMN), Tone.QUIET), (bundle_text(item), Tone.TEXT)]
        name = self.encodable(plain(item.step.id))
        gap = " " * (max(0, names - cell_len(name)) + 2)
        return [
            (item.step.kind.value.ljust(KIND_COLUMN), Tone(item.step.kind.value)),
            (name, Tone.NAME),
            (gap + self.encodable(subject_of(item.step)), Tone.TEXT),
        ]

    def remarks(self, item: Item, *, named: bool) -> Line:
        """What is special about the item, one piece each."""
        return [
            (self.glyphs.marks[remark.mark] + self.encodable(remark.text), TONES.get(remark.mark, Tone.QUIET))
            for remark in remarks_in(item, named=named)
        ]

    def joined(self, pieces: Line) -> Line:
        """The pieces with a dot between."""
        return [part for piece in pieces for part in ((self.glyphs.dot, Tone.QUIET), piece)][1:]

    def wrapped(self, pieces: Line, room: int) -> list[Line]:
        """The pieces on as many lines as they need."""
        lines: list[Line] = []
        for text, tone in pieces:
            piece = (cut(text, room, self.glyphs.ellipsis), tone)
            if not lines or width_of(self.joined([*lines[-1], piece])) > room:
                lines.append([])
            lines[-1].append(piece)
        return [self.joined(line) for line in lines]

    def frame(self, item: Item, inside: Outline, room: int) -> list[Line]:
        """What is inside a loop, an inlined workflow or a bundle."""
        framed = room >= FRAME_MIN
        inner = room - 4 if framed else room
        strands = [[inside.items[index] for index in strand] for strand in inside.strands]
        body = self.listed(strands, inner) if item.is_bundle else self.drawing(inside, inner)
        if not framed:
            return body
        arms, wide = self.glyphs.arms, max(map(width_of, body))
        side, edge = (arms[UP | DOWN], Tone.QUIET), arms[LEFT | RIGHT] * (wide + 2)
        return [
            [(arms[DOWN | RIGHT] + edge + arms[DOWN | LEFT], Tone.QUIET)],
            *([side, (" ", Tone.TEXT), *padded(line, wide), (" ", Tone.TEXT), side] for line in body),
            [(arms[UP | RIGHT] + edge + arms[UP | LEFT], Tone.QUIET)],
        ]

    def gutter(self, cells: Cells, columns: int, sign: tuple[int, Piece] | None = None) -> Line:
        """The lanes of one line, with an item's sign in its column."""
        line: Line = []
        for column in range(columns):
            arms = cells[column] if column < len(cells) else 0
            shown = self.glyphs.arms[UP | DOWN if arms & OVER else arms]
            line.append(sign[1] if sign and sign[0] == column else (shown, Tone.QUIET))
            line.append((self.glyphs.arms[LEFT | RIGHT] if arms & RIGHT else " ", Tone.QUIET))
        return line

    def sign(self, item: Item) -> Piece:
        """The sign of the item's kind."""
        if item.step is None:
            return self.glyphs.bundle, Tone.QUIET
        return self.glyphs.kinds[item.step.kind], Tone(item.step.kind.value)

    def legend(self, outline: Outline, room: int) -> list[Line]:
        """Who does the steps with each sign."""
        kinds = [kind for kind in kinds_in(outline) if kind in LEGEND_KINDS]
        pieces: Line = [(f"{self.glyphs.kinds[kind]} {kind.value}: {WHO[kind]}", Tone(kind.value)) for kind in kinds]
        return [[], *self.wrapped(pieces, room)] if pieces else []

    def id_column(self, items: Iterable[Item]) -> int:
        """The width of the column of ids: that of the longest, not counting very long ones."""
        widths = [cell_len(self.encodable(plain(item.step.id))) for item in items if item.step]
        return max((width for width in widths if width <= ID_COLUMN_MAX), default=0)

    def encodable(self, text: str) -> str:
        """The text in the characters that may be printed: all, or only ASCII."""
        return text if self.glyphs.unicode else text.encode("ascii", "replace").decode("ascii")
