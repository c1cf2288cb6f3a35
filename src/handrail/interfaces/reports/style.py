"""Style: the colours and fonts of the HTML report, for light and for dark. Constants only."""

from __future__ import annotations

from typing import Final

from handrail.interfaces.pictures.svg_style import MONO, SANS

LOOKS: Final = {
    "completed": "ok",
    "intact": "ok",
    "failed": "bad",
    "changed": "bad",
    "compensation_failed": "bad",
    "uncertain": "bad",
    "running": "run",
    "ready": "run",
    "waiting": "wait",
    "paused": "wait",
    "compensating": "undo",
    "compensated": "undo",
}


def state_look(word: str) -> str:
    """The look of a state."""
    return LOOKS.get(word, "off")


_LIGHT: Final = (
    "--bg:#fff;--sunken:#f4f4f2;--line:#e7e7e4;--text:#1a1a18;--soft:#50504b;"
    "--ok:#17753f;--run:#1d5bd0;--wait:#8a5600;--bad:#bd232a;--undo:#6640c4;--off:#63635d"
)
_DARK: Final = (
    "--bg:#161618;--sunken:#1b1b1e;--line:#38383e;--text:#ececee;--soft:#ababb4;"
    "--ok:#52c48b;--run:#7faaff;--wait:#ebb04b;--bad:#ff8080;--undo:#b59dfb;--off:#9a9aa4"
)
STYLE: Final = f"""
:root{{color-scheme:light dark;{_LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}
body{{margin:0;background:var(--bg);color:var(--text);font:14px/1.5 {SANS}}}
main{{max-width:1080px;margin:0 auto;padding:24px}}
h1{{font-size:22px;margin:0 0 8px}}h2{{font-size:16px;margin:32px 0 8px;border-bottom:1px solid var(--line)}}
h3{{font-size:14px;margin:16px 0 4px}}p{{margin:4px 0}}
code,pre{{font:12px/1.5 {MONO}}}code{{overflow-wrap:anywhere}}
pre{{background:var(--sunken);padding:8px;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere}}
dl{{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px;margin:12px 0}}
dt,.meta,time,.n{{color:var(--soft)}}dd{{margin:0;overflow-wrap:anywhere}}time,.n,.meta{{font-size:12px}}
table{{border-collapse:collapse;width:100%}}
th,td{{text-align:left;vertical-align:top;padding:4px 8px;border-bottom:1px solid var(--line);overflow-wrap:break-word}}
th:first-child,td:first-child{{white-space:nowrap}}
th{{font-weight:500;color:var(--soft);font-size:12px}}
.wide{{overflow-x:auto}}
.state{{font-weight:600}}.state.ok{{color:var(--ok)}}.state.bad{{color:var(--bad)}}.state.run{{color:var(--run)}}
.state.wait{{color:var(--wait)}}.state.undo{{color:var(--undo)}}.state.off{{color:var(--off)}}
.story{{list-style:none;padding:0}}.story li{{border-left:3px solid var(--line);padding:2px 12px;margin:8px 0}}
.story .approval,.story .decision,.story .action{{border-color:var(--ok)}}
.story .failure,.story .refused{{border-color:var(--bad)}}
.story .undo{{border-left-style:dashed;border-color:var(--undo)}}.story .control{{border-color:var(--wait)}}
blockquote{{margin:4px 0;padding:4px 12px;background:var(--sunken);white-space:pre-wrap;overflow-wrap:anywhere}}
.fact{{font-size:12px;color:var(--soft);margin-right:16px}}
.exception,.finding{{color:var(--bad);white-space:pre-wrap}}.goal{{color:var(--soft);white-space:pre-wrap}}
.timeline .step,.timeline .tick{{font:11px {MONO};fill:var(--soft)}}
.timeline .grid{{stroke:var(--line)}}.timeline .hatch{{stroke:var(--wait);stroke-width:2}}
.timeline .work{{fill:var(--run)}}.timeline .bad{{fill:var(--bad)}}.timeline .undo,.timeline .arrow{{fill:var(--undo)}}
.timeline .wait{{fill:none;stroke:var(--wait)}}.timeline .cross{{stroke:var(--bg);stroke-width:1.5;fill:none}}
.timeline .critical{{stroke:var(--text);stroke-width:2;fill:none}}
@media print{{section{{break-inside:avoid-page}}details{{display:none}}}}
"""
