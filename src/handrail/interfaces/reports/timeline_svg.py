"""The timeline of a run as one SVG: a row for each step, bars for work, waits and undo, and the critical path.

Pure. Shapes repeat what colour says: failed tries have a cross, waits are hatched, undo points back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from handrail.domain.history.spans import UNDOING, WORKING, SpanKind
from handrail.engine.reading.time_view import RunTimeline, SpanView, duration_words
from handrail.interfaces.reports.safe_text import html

ROWS_MAX: Final = 60
WIDTH: Final = 960
LEFT: Final = 240
ROW: Final = 22
BAR: Final = 12
TOP: Final = 26
NAME_MAX: Final = 34
WIDTH_MIN: Final = 2.0
HATCH: Final = (
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<path class="hatch" d="M0 0V6"/></pattern>'
)


def timeline_svg(timeline: RunTimeline) -> str:
    """The timeline as an SVG element; empty if nothing has started."""
    rows = _rows(timeline.spans)
    if not rows:
        return ""
    names = list(rows)[:ROWS_MAX]
    height = TOP + ROW * len(names) + 8
    critical = frozenset(one.step for one in timeline.critical)
    start, end = _ms(timeline.start), _ms(timeline.end or timeline.now)
    scale = (WIDTH - LEFT - 12) / max(1, end - start)
    label = f"Timeline of {len(names)} steps in {duration_words(max(0, end - start))}"
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    parts = [
        f'<svg class="timeline" role="img" aria-label="{html(label)}" {size}>',
        f"<defs>{HATCH}</defs>",
        *_axis(start, end, scale, height),
    ]
    for row, name in enumerate(names):
        y = TOP + row * ROW
        parts.append(f'<text class="step" x="0" y="{y + BAR}">{html(_short(name))}</text>')
        for span in rows[name]:
            parts += _bar(span, LEFT + (_ms(span.start) - start) * scale, y, max(WIDTH_MIN, span.ms * scale))
        if name in critical:
            parts.append(_path(rows[name], start, scale, y))
    return "".join([*parts, "</svg>"])


def unshown_rows(timeline: RunTimeline) -> int:
    """How many steps are not drawn."""
    return max(0, len(_rows(timeline.spans)) - ROWS_MAX)


def _rows(spans: Sequence[SpanView]) -> dict[str, list[SpanView]]:
    rows: dict[str, list[SpanView]] = {}
    for span in spans:
        if span.step:
            rows.setdefault(span.step, []).append(span)
    return rows


def _axis(start: int, end: int, scale: float, height: int) -> Iterator[str]:
    for quarter in range(5):
        took = (end - start) * quarter // 4
        x = LEFT + took * scale
        anchor = "end" if quarter == 4 else "start"
        yield f'<path class="grid" d="M{x:.1f} {TOP - 6}V{height}"/>'
        yield f'<text class="tick" x="{x:.1f}" y="12" text-anchor="{anchor}">{html(duration_words(took))}</text>'


def _bar(span: SpanView, x: float, y: int, width: float) -> Iterator[str]:
    words = f"{span.step}: {span.kind.value.replace('_', ' ')}, {duration_words(span.ms)}, entry {span.n}"
    look = _look(span.kind)
    area = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2"'
    yield f'<g><title>{html(words)}</title><rect class="{look}" {area}/>'
    if look == "wait":
        yield f'<rect {area} fill="url(#hatch)"/>'
    if span.kind in {SpanKind.FAILED, SpanKind.UNDO_FAILED, SpanKind.LOST}:
        at = x + width - 4
        yield f'<path class="cross" d="M{at - 3:.1f} {y + 3}l6 6m0 -6l-6 6"/>'
    if span.kind in UNDOING:
        yield f'<path class="arrow" d="M{x - 5:.1f} {y + BAR / 2}l6 -5v10z"/>'
    yield "</g>"


def _look(kind: SpanKind) -> str:
    if kind in {SpanKind.FAILED, SpanKind.UNDO_FAILED, SpanKind.LOST}:
        return "bad"
    if kind in WORKING:
        return "work"
    return "undo" if kind in UNDOING else "wait"


def _path(spans: Sequence[SpanView], start: int, scale: float, y: int) -> str:
    own = [span for span in spans if span.kind not in UNDOING]
    first, last = min(_ms(one.start) for one in own), max(_ms(one.start) + one.ms for one in own)
    at = y + BAR + 3
    return (
        f'<path class="critical" d="M{LEFT + (first - start) * scale:.1f} {at}H{LEFT + (last - start) * scale:.1f}"/>'
    )


def _short(name: str) -> str:
    return name if len(name) <= NAME_MAX else f"…{name[1 - NAME_MAX :]}"


def _ms(instant: str) -> int:
    return round(datetime.fromisoformat(instant).timestamp() * 1_000)
