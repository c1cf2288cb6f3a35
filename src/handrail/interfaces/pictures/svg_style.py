"""Style: the colours, fonts and small drawings of the SVG picture, for light and for dark.

Constants only. Colours are written out in both schemes instead of as CSS variables, which not every viewer supports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from handrail.domain.definition.model import Kind
from handrail.interfaces.pictures.caption import Sign

SANS: Final = 'ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"Noto Sans",sans-serif'
MONO: Final = 'ui-monospace,SFMono-Regular,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace'
# A page that embeds the picture passes on its text styles; these would change the width or the start of a line.
AS_MEASURED: Final = (
    "direction:ltr;text-anchor:start;letter-spacing:0;word-spacing:0;text-transform:none;"
    "text-rendering:geometricPrecision"
)

KINDS: Final[Mapping[Kind, tuple[str, str]]] = {
    Kind.PROMPT: ("#7c3aed", "#b794f6"),
    Kind.TOOL: ("#0b6bcb", "#5cb3ff"),
    Kind.APPROVE: ("#b45309", "#f5b942"),
    Kind.WORKFLOW: ("#be185d", "#f78fb3"),
    Kind.EACH: ("#15803d", "#56d364"),
    Kind.REPEAT: ("#0f766e", "#39d0c3"),
}
MARKS: Final[Mapping[Sign, tuple[str, str]]] = {
    Sign.WHEN: ("#8a6100", "#e3b341"),
    Sign.UNDO: ("#0b6bcb", "#5cb3ff"),
    Sign.DANGER: ("#cf222e", "#ff7b72"),
    Sign.CYCLE: ("#cf222e", "#ff7b72"),
}

# Each in a square of 28, drawn with lines.
ICONS: Final[Mapping[Kind, str]] = {
    Kind.PROMPT: '<path d="M9 7.5h10a2 2 0 0 1 2 2v6a2 2 0 0 1-2 2h-5l-4 3.5v-3.5H9a2 2 0 0 1-2-2v-6a2 2 0 0 1 2-2z"/>'
    '<path d="M11 11.2h6M11 14h4"/>',
    Kind.TOOL: '<path d="M14 6.2l6.8 3.9v7.8L14 21.8l-6.8-3.9v-7.8z"/><circle cx="14" cy="14" r="3"/>',
    Kind.APPROVE: '<circle cx="14" cy="10.2" r="3.4"/><path d="M7.4 21c.3-4 3-6 6.6-6s6.3 2 6.6 6z"/>',
    Kind.WORKFLOW: '<rect x="6.5" y="7" width="6.5" height="5" rx="1"/>'
    '<rect x="15" y="16" width="6.5" height="5" rx="1"/><path d="M9.8 12v6.5H15"/>',
    Kind.EACH: '<path d="M12 9h9M12 14h9M12 19h9"/><path d="M7.5 9h.01M7.5 14h.01M7.5 19h.01" stroke-width="2.6"/>',
    Kind.REPEAT: '<path d="M20.5 14a6.5 6.5 0 1 1-2-4.7"/><path d="M20.8 6.2v3.8h-3.8"/>',
}
# Each in a square of 11.
SIGNS: Final[Mapping[Sign, str]] = {
    Sign.WHEN: '<path d="M5.5 1l4.5 4.5-4.5 4.5L1 5.5z"/>',
    Sign.UNDO: '<path d="M1.5 4.2h5a2.8 2.8 0 0 1 0 5.6H4.5"/><path d="M4 1.7L1.5 4.2 4 6.7"/>',
    Sign.DANGER: '<path d="M5.5 1.2L10.3 9.8H.7z"/><path d="M5.5 4.4v2.4M5.5 8.3v.01"/>',
    Sign.CYCLE: '<path d="M9.5 5.5a4 4 0 1 1-1.3-3"/><path d="M9.7.8v2.4H7.3"/>',
}

SHAPE_CSS: Final = f"""
svg.handrail{{font:400 11px {SANS};{AS_MEASURED}}}
.handrail svg{{overflow:hidden}}
.handrail .name{{font-size:18px;font-weight:650}}
.handrail .title{{font-size:13.5px;font-weight:600}}
.handrail .kind{{font-weight:600}}
.handrail .id{{font-family:{MONO}}}
.handrail .card{{stroke-width:1.3;stroke-opacity:.6}}
.handrail .frame{{fill-opacity:.05;stroke-opacity:.5;stroke-width:1.3}}
.handrail .bundle{{fill:none;stroke-width:1.2;stroke-dasharray:4 4}}
.handrail .icon,.handrail .sign,.handrail .edge,.handrail .back{{fill:none;stroke-linecap:round;stroke-linejoin:round}}
.handrail .icon{{stroke-width:1.7}}
.handrail .sign{{stroke-width:1.3}}
.handrail .edge{{stroke-width:1.5}}
.handrail .back{{stroke-width:1.5;stroke-dasharray:5 4}}
"""


def style_sheet() -> str:
    """The style sheet, with a second set of colours for dark mode."""
    light = _colours(0, page="#ffffff", line="#d0d7de", card="#ffffff", ink="#1f2328", soft="#59636e", edge="#8b949e")
    dark = _colours(1, page="#0d1117", line="#30363d", card="#161b22", ink="#f0f6fc", soft="#9198a1", edge="#6e7681")
    return f"{SHAPE_CSS}{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n"


def _colours(scheme: int, *, page: str, line: str, card: str, ink: str, soft: str, edge: str) -> str:
    rules = [
        f".handrail .page{{fill:{page};stroke:{line}}}",
        f".handrail .card{{fill:{card}}}",
        f".handrail .name,.handrail .title{{fill:{ink}}}",
        f".handrail .soft,.handrail .id{{fill:{soft}}}",
        f".handrail .edge,.handrail .bundle{{stroke:{edge}}}",
        f".handrail .tip,.handrail .meeting{{fill:{edge}}}",
        f".handrail .icon{{stroke:{card}}}",
    ]
    for kind, colours in KINDS.items():
        where, colour = f".handrail .{kind.value}", colours[scheme]
        rules.append(f"{where} .tile,{where} .kind,{where} .frame{{fill:{colour}}}")
        rules.append(f"{where} .card,{where} .frame{{stroke:{colour}}}")
    for mark, colours in MARKS.items():
        rules.append(f".handrail .sign.{mark.value}{{stroke:{colours[scheme]}}}")
    danger = MARKS[Sign.CYCLE][scheme]
    rules.append(f".handrail .back{{stroke:{danger}}}.handrail .tip.alarm{{fill:{danger}}}")
    return "\n".join(rules) + "\n"
