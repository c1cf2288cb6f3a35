"""The HTML report: one file with everything, without scripts, that makes no request.

Pure. Light and dark follow the system. Every text of the run is escaped in safe_text.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from handrail.domain.history.story_words import actor_name
from handrail.domain.plural import plural
from handrail.engine.reading.check_view import JudgedCheck, JudgedOutput
from handrail.engine.reading.step_view import StepView
from handrail.engine.reading.story_view import StoryLine
from handrail.engine.reading.time_view import duration_words
from handrail.interfaces.pictures.svg import svg_text
from handrail.interfaces.reports.content import ReportContent, known_by, state_word, tries_of
from handrail.interfaces.reports.safe_text import html, html_value
from handrail.interfaces.reports.style import STYLE, state_look
from handrail.interfaces.reports.timeline_svg import timeline_svg, unshown_rows

# Nothing may be loaded, whatever a string of the run says: escaping is the first guard, this is the second.
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
STEPS_MAX: Final = 2_000
LINES_MAX: Final = 2_000


def html_report(seen: ReportContent) -> str:
    """The report as one HTML document."""
    status = seen.status
    title = f"{seen.name}: {state_word(status.status.value)}"
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{html(POLICY)}">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{html(title)}</title><style>{STYLE}</style></head><body><main>",
        *_head(seen),
        *_section("Why", _why(seen)),
        *_section("Story", _story(seen.story.lines, seen.story.left_out)),
        *_section("Decisions and approvals", _decisions(seen.decisions)),
        *_section("Steps", _steps(status.steps)),
        *_section("Timeline", _timeline(seen)),
        *_section("Evidence", _evidence(seen.evidence)),
        *_section("Graph", [f'<div class="wide">{svg_text(seen.definition)}</div>']),
        *_section("Verification", _verification(seen)),
        "</main></body></html>\n",
    ]
    return "\n".join(parts)


def _section(name: str, body: Iterable[str]) -> Iterator[str]:
    lines = [line for line in body if line]
    if lines:
        yield f"<section><h2>{html(name)}</h2>"
        yield from lines
        yield "</section>"


def _head(seen: ReportContent) -> Iterator[str]:
    status = seen.status
    yield f"<header><h1>{html(seen.name)}</h1><p>{_state(status.status.value)} {html(_progress(seen))}</p>"
    if status.goal:
        yield f"<p class=goal>{html(status.goal)}</p>"
    facts = (
        ("run", status.run),
        ("workflow", status.workflow),
        ("started", status.started),
        ("ended", status.ended),
        ("took", duration_words(seen.timeline.took_ms)),
        ("reason", status.reason),
        ("not undone", ", ".join(status.not_compensated)),
        ("definition", seen.definition_hash),
        ("receipt", status.receipt),
    )
    rows = (f"<dt>{name}</dt><dd>{html(value)}</dd>" for name, value in facts if value)
    yield f"<dl>{''.join(rows)}</dl>"
    for one in status.exceptions:
        words = f"{one.kind.value.replace('_', ' ')}: {one.step} by {one.by}"
        yield f"<p class=exception>{html(words)}: {html(one.reason)}</p>"
    yield "</header>"


def _progress(seen: ReportContent) -> str:
    progress = seen.status.progress
    if progress.undone is not None:
        left = f", {plural(progress.undone.not_undone, 'effect')} not undone" if progress.undone.not_undone else ""
        return f"{progress.undone.done} of {plural(progress.undone.of, 'step')} undone{left}"
    return f"{progress.done} of {plural(progress.total, 'step')} over"


def _why(seen: ReportContent) -> Iterator[str]:
    for one in seen.story.why:
        yield f"<p>{html(one.text)}{_entry(one.n)}</p>"


def _entry(first: int, last: int = 0) -> str:
    if not first:
        return ""
    return f" <span class=n>#{first}{f'-{last}' if last > first else ''}</span>"


def _story(lines: Sequence[StoryLine], left_out: int) -> Iterator[str]:
    if left_out or len(lines) > LINES_MAX:
        yield f"<p class=meta>The first {left_out + max(0, len(lines) - LINES_MAX):,} lines are left out.</p>"
    yield "<ol class=story>"
    for line in lines[-LINES_MAX:]:
        yield f'<li class="{html(line.kind.value)}">{_line(line)}</li>'
    yield "</ol>"


def _line(line: StoryLine) -> str:
    words = f"<blockquote>{html(line.words)}</blockquote>" if line.words else ""
    facts = "".join(
        f"<span class=fact>{html(name)}: <code>{html(value)}</code></span>" for name, value in line.facts.items()
    )
    when = f"<time>{html(line.at)}</time>"
    return f"<p>{html(line.text)}{_entry(line.first, line.last)} {when}</p>{words}{facts}"


def _decisions(lines: Sequence[StoryLine]) -> Iterator[str]:
    if not lines:
        return
    yield "<table><thead><tr><th>entry</th><th>who</th><th>what</th><th>words</th></tr></thead><tbody>"
    for line in lines[:LINES_MAX]:
        digest = line.facts.get("digest", "")
        bound = f"<br><code>{html(digest)}</code>" if digest else ""
        cells = (f"#{line.first}", html(actor_name(line.actor)), f"{html(line.text)}{bound}", html(line.words))
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    yield "</tbody></table>"


def _steps(steps: Sequence[StepView]) -> Iterator[str]:
    heads = ("step", "state", "by", "tries", "worked", "waited", "undo took", "known by", "note")
    yield f"<div class=wide><table><thead><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr></thead><tbody>"
    for step in steps[:STEPS_MAX]:
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in _cells(step))}</tr>"
    yield "</tbody></table></div>"
    if len(steps) > STEPS_MAX:
        yield f"<p class=meta>And {len(steps) - STEPS_MAX:,} more.</p>"


def _cells(step: StepView) -> tuple[str, ...]:
    return (
        f"{html(step.title)}<br><code>{html(step.id)}</code>",
        _state(step.status.value),
        html(actor_name(step.by) if step.by else ""),
        str(tries_of(step) or ""),
        *(duration_words(took) if took else "" for took in (step.worked_ms, step.waited_ms, step.undone_ms)),
        html(known_by(step)),
        html(step.message, 500),
    )


def _timeline(seen: ReportContent) -> Iterator[str]:
    drawn = timeline_svg(seen.timeline)
    if not drawn:
        return
    yield f"<div class=wide>{drawn}</div>"
    more = unshown_rows(seen.timeline)
    left_out = f" {plural(more, 'more step')} not drawn." if more else ""
    yield f"<p class=meta>{html(seen.timeline.says)}{left_out} Crosses: failed. Hatched: waiting. Arrows: undo.</p>"


def _evidence(found: Sequence[tuple[str, JudgedOutput]]) -> Iterator[str]:
    for step, output in found[:STEPS_MAX]:
        verdict = f"{output.proof.value if output.proof else 'accepted'}" if output.accepted else "refused"
        yield f"<h3>{html(step)}: {html(verdict)}{_entry(output.n)}</h3>"
        for check in output.checks:
            yield _check(check)
        for finding in output.findings:
            yield f"<p class=finding>{html(finding.get('message', ''))}</p>"


def _check(check: JudgedCheck) -> str:
    looked = "looked at the world" if check.looks_at == "world" else "looked only at the words"
    verdict = "passed" if check.passed else "failed"
    findings = "".join(f"<p class=finding>{html(one.get('message', ''))}</p>" for one in check.findings)
    detail = f"<details><summary>evidence</summary><pre>{html_value(check.evidence)}</pre></details>"
    return f"<p><strong>{html(check.rule)}</strong> {verdict}; it {looked}.</p>{findings}{detail}"


def _verification(seen: ReportContent) -> Iterator[str]:
    found = seen.verified
    if found.ok:
        entries = plural(found.events, "entry", "entries")
        signed = f"{found.signed_events:,} are signed"
        yield f"<p>{_state('intact')} All {entries} are as they were written; {signed}.</p>"
    else:
        bad = found.first_bad
        words = f"{bad.stream} {bad.n}: {bad.reason}" if bad is not None else "the journal was changed"
        yield f"<p>{_state('changed')} The journal was changed: {html(words)}</p>"
    for note in found.notes:
        yield f"<p class=meta>{html(note)}</p>"
    command = f"handrail journal verify {seen.status.run} --receipt {seen.status.receipt}"
    yield f"<p class=meta>Made {html(seen.made)} by handrail. This page is a copy, and proves nothing by itself: "
    yield f"<code>{html(command)}</code> checks it.</p>"


def _state(word: str) -> str:
    return f'<span class="state {state_look(word)}">{html(state_word(word))}</span>'
