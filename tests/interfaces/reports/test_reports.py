"""Reports of a run in which every text is hostile: it stays text, in one file that asks nobody for anything."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec.structs import replace

from engine.guided_runs import Led, guide_of
from engine.stage import ADA, Stage, puppet
from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Category, Effect
from handrail.domain.journal.chain import Break
from handrail.domain.run.command import RecordDecision
from handrail.domain.run.legal_controls import Action
from handrail.engine.proving.audit import AuditResult
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.reading.run_view import Detail
from handrail.engine.tool import ToolCall, ToolFailed
from handrail.interfaces.reports.content import ReportContent
from handrail.interfaces.reports.html_report import html_report
from handrail.interfaces.reports.markdown_report import markdown_report
from handrail.interfaces.reports.safe_text import markdown
from virtual_time import in_virtual_time

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>\"'></title></style></svg>]]><!-- --> {{ 7 }} ${secret:A}\n"
    "# head\n| a | b |\n[x](javascript:alert(1)) ![i](http://evil.test/i.png) https://evil.test www.evil.test @all #1\n"
    "\x00\x07\x1b[31m\u202egnp.exe\u2066\ufeff\x85 "
)
ALLOWED = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "header",
        "section",
        "h1",
        "h2",
        "h3",
        "p",
        "dl",
        "dt",
        "dd",
    ),
    *(
        "span",
        "ol",
        "li",
        "time",
        "blockquote",
        "code",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "div",
        "br",
        "pre",
    ),
    *("strong", "details", "summary"),
    *("svg", "desc", "defs", "marker", "pattern", "path", "rect", "g", "text", "tspan", "circle"),
}


class Seen(HTMLParser):
    """All tags, attributes and texts of a document."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


async def refuse(_call: ToolCall) -> Any:
    raise ToolFailed(Category.PERMISSION, f"403 from evil.test: {HOSTILE}")


async def content_of(climb: Led) -> ReportContent:
    reader = RunReader(climb.stage.store, climb.stage.clock)
    run = await reader.run(climb.run)
    definition = await reader.definition(run)
    return ReportContent(
        status=await reader.status(climb.run, detail=Detail.FULL),
        name=definition.name or definition.id,
        definition=definition,
        definition_hash=run.definition,
        story=await reader.story(climb.run),
        timeline=await reader.timeline(climb.run),
        evidence=await reader.evidence(climb.run),
        verified=AuditResult(ok=True, events=20, streams=1, checkpoints=1, signed_events=20, notes=(HOSTILE,)),
        made="2026-11-15T18:04:11Z",
    )


def hostile_run() -> ReportContent:
    shape = {"id": "hostile", "name": HOSTILE, "version": "1.0.0", "description": HOSTILE}
    steps = [
        {"id": "make", "title": HOSTILE, "tool": "x.do", "undo": {"tool": "x.undo"}},
        {"id": "tell", "title": HOSTILE, "prompt": HOSTILE, "checks": [{"rule": "equals", "value": "right"}]},
        {"id": "go", "title": HOSTILE, "approve": HOSTILE},
        {"id": "bad", "title": HOSTILE, "tool": "http.request", "args": {"url": HOSTILE}},
    ]

    async def scene() -> ReportContent:
        puppets = [puppet("http.request", refuse), puppet("x.do", effect=Effect.COMPENSATABLE)]
        stage = Stage(*puppets)
        await stage.open()
        run = await stage.start(definition_from({**shape, "steps": steps}), goal=HOSTILE)
        climb = Led(stage, guide_of(stage), run.id)
        await climb.now()
        await climb.submit("tell", HOSTILE)
        await climb.submit("tell", "right")
        await climb.now()
        await climb.stage.control.act(climb.run, Action.APPROVE, actor=ADA, reason=HOSTILE)
        await climb.now()
        note = RecordDecision(decision=HOSTILE, reason=HOSTILE, alternatives=(HOSTILE,))
        await climb.stage.worker.dispatch.grant(climb.run, note, actor=f"agent:{HOSTILE}")
        await climb.stage.control.act(climb.run, Action.COMPENSATE, actor=ADA, reason=HOSTILE)
        await climb.now()
        return await content_of(climb)

    return in_virtual_time(scene)


@pytest.fixture(scope="module")
def hostile() -> ReportContent:
    return hostile_run()


def test_a_hostile_run_makes_no_markup_of_its_own_and_no_request(hostile: ReportContent) -> None:
    document = html_report(hostile)
    seen = Seen()
    seen.feed(document)
    assert seen.tags <= ALLOWED
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name in {"href", "src", "srcset"}]
    assert not [value for name, value in seen.attributes if "url(" in value and "url(#" not in value]
    assert not re.search(r"url\((?!#)|@import|<script|<iframe|<object|<link", document)
    assert "default-src 'none'" in dict(seen.attributes).get("content", "") or "default-src" in document
    assert sum("<script>alert(1)</script>" in text for text in seen.text) > 8, "it is all shown, as text"


@pytest.mark.parametrize("made", [html_report, markdown_report])
def test_no_character_is_left_that_can_not_be_seen(made: Any, hostile: ReportContent) -> None:
    unseen = {char for char in made(hostile) if not char.isprintable() and char not in "\n\t\u200b"}
    assert not unseen


def test_markdown_makes_no_link_mention_reference_image_table_or_markup(hostile: ReportContent) -> None:
    text = markdown_report(hostile)
    assert not re.search(r"(?<!\\)!\[|(?<!\\)\]\(|://|www\.|@\w|#\d", text)
    tags = set(re.findall(r"<[^>]*>", text))
    assert tags == {"<details>", "<summary>", "</summary>", "</details>"}
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {7}
    assert not [line for line in text.splitlines()[1:] if line.startswith("#")]


def test_a_report_has_every_part(hostile: ReportContent) -> None:
    document = html_report(hostile)
    parts = ("Why", "Story", "Decisions and approvals", "Steps", "Timeline", "Evidence", "Graph", "Verification")
    assert [part for part in parts if f"<h2>{part}</h2>" not in document] == []
    assert "prefers-color-scheme:dark" in document
    assert 'class="timeline"' in document
    assert 'class="handrail"' in document
    assert hostile.status.receipt in document
    assert hostile.status.receipt in markdown_report(hostile)


def test_states_people_and_tries_are_said_as_the_console_says_them(hostile: ReportContent) -> None:
    for text in (html_report(hostile), markdown_report(hostile).replace("\\", "")):
        assert "undone" in text
        assert "failed permanently" in text
        assert not re.search(r">compensated<|\| compensated \|", text)
        assert not re.search(r">person:|\| person:", text)
    told = next(row for row in markdown_report(hostile).splitlines() if "checked" in row)
    assert told.split(" | ")[3] == "2", "one submission was refused, one accepted"


def test_a_journal_that_was_changed_is_said_plainly(hostile: ReportContent) -> None:
    bad = Break(hostile.status.run, 7, "it was changed")
    found = AuditResult(
        ok=False, events=20, streams=1, checkpoints=1, signed_events=20, breaks=(bad,), first_bad=bad, notes=()
    )
    changed = replace(hostile, verified=found)
    assert "The journal was changed" in html_report(changed)
    assert "The journal was changed" in markdown_report(changed)


def test_a_long_text_is_cut_and_says_how_much_is_missing() -> None:
    assert "[9700 more characters]" in markdown("x" * 10_000).replace("\\", "")
