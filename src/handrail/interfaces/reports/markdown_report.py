"""The Markdown report: short enough for a comment on a pull request, with what a reviewer asks first.

Pure. Every text of the run is escaped in safe_text.py: it makes no link and no mention and refers to no issue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from handrail.domain.history.story import StoryKind
from handrail.domain.history.story_words import actor_name
from handrail.domain.plural import plural
from handrail.engine.reading.step_view import StepView
from handrail.engine.reading.time_view import duration_words
from handrail.interfaces.reports.content import ReportContent, known_by, state_word, tries_of
from handrail.interfaces.reports.safe_text import markdown

STEPS_MAX: Final = 40
LINES_MAX: Final = 60
SHOWN: Final = frozenset(StoryKind) - {StoryKind.ROUTINE}


def markdown_report(seen: ReportContent) -> str:
    """The report as Markdown."""
    return "\n".join(_lines(seen)) + "\n"


def _lines(seen: ReportContent) -> Iterator[str]:
    status = seen.status
    yield f"## {markdown(seen.name)}: {state_word(status.status.value)}"
    yield ""
    if status.goal:
        yield f"{markdown(status.goal)}\n"
    took = duration_words(seen.timeline.took_ms)
    yield f"`{status.run}` · {markdown(status.workflow)} · started {status.started} · took {took}"
    yield ""
    if seen.story.why:
        yield " ".join(
            f"{markdown(one.text)} ({_entry(one.n)})" if one.n else markdown(one.text) for one in seen.story.why
        )
        yield ""
    for one in status.exceptions:
        kind, who = one.kind.value.replace("_", " "), f"{markdown(one.step)} by {markdown(one.by)}"
        yield f"- **{kind}**: {who}: {markdown(one.reason)}"
    yield from _steps(status.steps)
    yield from _happened(seen)
    yield from _verified(seen)


def _entry(n: int) -> str:
    return f"entry {n}"


def _steps(steps: Sequence[StepView]) -> Iterator[str]:
    if not steps:
        return
    yield "| step | state | by | tries | worked | known by |"
    yield "|---|---|---|---|---|---|"
    for step in steps[:STEPS_MAX]:
        yield f"| {' | '.join(markdown(cell) for cell in _cells(step))} |"
    if len(steps) > STEPS_MAX:
        yield f"\nand {plural(len(steps) - STEPS_MAX, 'more step')}"
    yield ""


def _cells(step: StepView) -> tuple[object, ...]:
    worked = duration_words(step.worked_ms) if step.worked_ms else ""
    by = actor_name(step.by) if step.by else ""
    return (step.title, state_word(step.status.value), by, tries_of(step) or "", worked, known_by(step))


def _happened(seen: ReportContent) -> Iterator[str]:
    lines = [line for line in seen.story.lines if line.kind in SHOWN]
    yield "<details><summary>What happened</summary>\n"
    if len(lines) > LINES_MAX:
        yield f"The first {len(lines) - LINES_MAX} are left out.\n"
    for line in lines[-LINES_MAX:]:
        words = f": *{markdown(line.words)}*" if line.words.strip() else ""
        yield f"- {line.at} {markdown(line.text)} ({_entry(line.first)}){words}"
    yield "\n</details>\n"


def _verified(seen: ReportContent) -> Iterator[str]:
    found = seen.verified
    if found.ok:
        entries = plural(found.events, "entry", "entries")
        yield f"Journal intact: {entries}, {found.signed_events} signed. Receipt `{seen.status.receipt}`."
    else:
        bad = found.first_bad
        yield f"**The journal was changed**: {markdown(f'{bad.stream} {bad.n}: {bad.reason}' if bad else '')}"
