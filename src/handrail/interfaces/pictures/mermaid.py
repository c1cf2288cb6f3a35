"""The Mermaid picture: a definition as a flowchart that Markdown hosts draw.

Pure. Node names are generated, and all text of the definition is in quoted labels. Characters that could end a label or
start markup, Markdown, mathematics or a directive become entities, so that a host only shows them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from handrail.domain.definition.model import Definition, Kind
from handrail.interfaces.pictures.caption import Sign, name_of, plain, subject_of
from handrail.interfaces.pictures.outline import Item, Outline, bundle_text, items_in, kinds_in, outlined, remarks_in

LABEL_LENGTH_MAX: Final = 80
GRID_COLUMNS: Final = 6
INDENT: Final = "  "
BREAK: Final = "<br/>"

SHAPES: Final[Mapping[Kind, tuple[str, str]]] = {
    Kind.PROMPT: ("(", ")"),
    Kind.TOOL: ("[", "]"),
    Kind.APPROVE: ("{{", "}}"),
    Kind.WORKFLOW: ("[[", "]]"),
    Kind.EACH: ("([", "])"),
    Kind.REPEAT: ("([", "])"),
}
BUNDLE: Final = "bundle"
LOOKS: Final[Mapping[str, str]] = {
    Kind.PROMPT.value: "fill:#f3e8ff,stroke:#7c3aed,color:#1f2328",
    Kind.TOOL.value: "fill:#e0f2fe,stroke:#0b6bcb,color:#1f2328",
    Kind.APPROVE.value: "fill:#fef3c7,stroke:#b45309,color:#1f2328",
    Kind.WORKFLOW.value: "fill:#fce7f3,stroke:#be185d,color:#1f2328",
    Kind.EACH.value: "fill:#f0fdf4,stroke:#15803d,color:#1f2328",
    Kind.REPEAT.value: "fill:#f0fdfa,stroke:#0f766e,color:#1f2328",
    BUNDLE: "fill:none,stroke-dasharray:4 4",
}
SKIPPED: Final = "skipped"
STATUS_LOOK: Final = "stroke-width:3px"
STATUS_LOOKS: Final[Mapping[str, str]] = {
    "completed": "stroke-width:3px,stroke:#15803d",
    "failed": "stroke-width:4px,stroke:#b91c1c",
    "compensation_failed": "stroke-width:4px,stroke:#b91c1c",
    "uncertain": "stroke-width:4px,stroke:#b45309",
    SKIPPED: "stroke-dasharray:3 3,stroke:#6b7280,color:#6b7280",
    "compensated": "stroke-dasharray:6 3,stroke:#6b7280",
}
MARKS: Final[Mapping[Sign, str]] = {
    Sign.WHEN: "◇ ",
    Sign.UNDO: "↶ ",
    Sign.DANGER: "⚠ ",
    Sign.CYCLE: "↺ ",
}

# All other characters become entities. An underscore stays between letters, where it is not markup.
UNSAFE: Final = re.compile(r"[^\w ,.:/'?!=()@~…·◇↶⚠↺-]|:(?! )|(?<![^\W_])_|_(?![^\W_])")
LIST_LIKE: Final = re.compile(r"^(\d+|)([.)-])")


def mermaid_text(definition: Definition, statuses: Mapping[str, str] | None = None) -> str:
    """The definition as a Mermaid flowchart from top to bottom; of a run, with the status of each step by its id."""
    outline = outlined(definition)
    skipped = [item.key for item in _own_items(outline) if item.step and (statuses or {}).get(item.step.id) == SKIPPED]
    lines = [
        "flowchart TD",
        f"{INDENT}accTitle: {_escaped(name_of(definition))}",
        *_items(outline, INDENT, skipped),
        *_edges(outline, INDENT),
        *_styles(outline),
        *_statuses(outline, statuses or {}),
    ]
    return "\n".join(lines) + "\n"


def _items(outline: Outline, indent: str, skipped: Collection[str]) -> Iterator[str]:
    for item in outline.items:
        if item.inside is not None:
            yield from _group(item, item.inside, indent, skipped)
        elif item.step is not None:
            yield f"{indent}{_name(item)}{_box(item.step.kind, _label(item, skipped))}"


def _group(item: Item, inside: Outline, indent: str, skipped: Collection[str]) -> Iterator[str]:
    """A frame. Its step is drawn as a box at the top: the title of a frame has room for one line only."""
    deeper = indent + INDENT
    yield f'{indent}subgraph {_name(item)}["{_escaped(bundle_text(item)) if item.is_bundle else " "}"]'
    yield f"{deeper}direction TB"
    yield from _items(inside, deeper, skipped)
    yield from _edges(inside, deeper)
    if item.step is not None:
        head = f"{_name(item)}h"
        first = [_name(inner) for inner, needs in zip(inside.items, inside.needs, strict=True) if not needs]
        yield f"{deeper}{head}{_box(item.step.kind, _label(item, skipped))} --> {' & '.join(first)}"
    else:
        yield from _grid(inside, deeper)
    yield f"{indent}end"


def _grid(inside: Outline, indent: str) -> Iterator[str]:
    """Invisible links that break the rows of a bundle into a grid."""
    strands = inside.strands
    for upper, lower in zip(strands, strands[GRID_COLUMNS:], strict=False):
        yield f"{indent}{_name(inside.items[upper[-1]])} ~~~ {_name(inside.items[lower[0]])}"


def _edges(outline: Outline, indent: str) -> Iterator[str]:
    names = [_name(item) for item in outline.items]
    for index, (needs, later) in enumerate(zip(outline.needs, outline.follows, strict=True)):
        # A meeting point has no box: Mermaid has the syntax `a & b --> c & d` for it.
        starts = [index] if outline.items[index].is_shown else needs
        ends = [names[other] for other in later if outline.items[other].is_shown]
        if ends:
            yield f"{indent}{' & '.join(map(names.__getitem__, starts))} --> {' & '.join(ends)}"
    for source, target in outline.back:
        yield f'{indent}{names[source]} -. "cycle" .-> {names[target]}'


def _styles(outline: Outline) -> Iterator[str]:
    members: dict[str, list[str]] = {kind.value: [] for kind in kinds_in(outline)}
    for item in items_in(outline):
        if item.step is not None:
            members[item.step.kind.value] += [_name(item), f"{_name(item)}h"] if item.inside else [_name(item)]
        elif item.is_bundle:
            members.setdefault(BUNDLE, []).append(_name(item))
    for look, names in members.items():
        yield f"{INDENT}classDef {look} {LOOKS[look]}"
        yield f"{INDENT}class {','.join(names)} {look}"


def _statuses(outline: Outline, statuses: Mapping[str, str]) -> Iterator[str]:
    """How far a run is: a class for each status, named after it."""
    members: dict[str, list[str]] = {}
    for item in _own_items(outline):
        status = statuses.get(item.step.id) if item.step is not None else None
        if status is not None:
            members.setdefault(status, []).append(f"{_name(item)}h" if item.inside else _name(item))
    for status, names in members.items():
        yield f"{INDENT}classDef {status} {STATUS_LOOKS.get(status, STATUS_LOOK)}"
        yield f"{INDENT}class {','.join(names)} {status}"


def _own_items(outline: Outline) -> Iterator[Item]:
    """The items of the definition's own list, also those in a bundle."""
    for item in outline.items:
        yield item
        if item.is_bundle and item.inside:
            yield from item.inside.items


def _box(kind: Kind, label: str) -> str:
    opening, closing = SHAPES[kind]
    return f'{opening}"{label}"{closing}'


def _name(item: Item) -> str:
    return f"s{item.key}"


def _label(item: Item, skipped: Collection[str]) -> str:
    """The kind and id, the title, and what is special; a skipped step says so, since its style is easy to miss."""
    if item.step is None:
        return _escaped(bundle_text(item))
    remarks = remarks_in(item)
    marked = [MARKS[remark.mark] + remark.text for remark in remarks if remark.mark in MARKS]
    others = " · ".join(remark.text for remark in remarks if remark.mark not in MARKS)
    was_skipped = SKIPPED if item.key in skipped else ""
    lines = [f"{item.step.kind.value}: {plain(item.step.id)}", was_skipped, subject_of(item.step), others, *marked]
    return BREAK.join(_escaped(line) for line in lines if line)


def _escaped(text: str) -> str:
    cut = text if len(text) <= LABEL_LENGTH_MAX else text[: LABEL_LENGTH_MAX - 1] + "…"
    spelled = UNSAFE.sub(lambda found: f"#{ord(found.group())};", cut)
    return LIST_LIKE.sub(lambda found: f"{found.group(1)}#{ord(found.group(2))};", spelled)
