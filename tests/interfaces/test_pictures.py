"""Pictures of a definition: what is drawn, where it stands, and that nothing an author writes can act.

Run with UPDATE_PICTURES=1 to draw the kept pictures again, then look at them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Definition, walk
from handrail.interfaces.pictures.layout import Picture, placed
from handrail.interfaces.pictures.mermaid import mermaid_text
from handrail.interfaces.pictures.outline import outlined
from handrail.interfaces.pictures.svg import svg_text
from handrail.interfaces.pictures.terminal import terminal_picture

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).parent / "pictures"
FORMS: list[Callable[[Definition], str]] = [terminal_picture, mermaid_text, svg_text]

SHIP_RELEASE: dict[str, Any] = {
    "id": "ship-release",
    "name": "Ship a release",
    "version": "1.2.0",
    "description": "Tag, build and publish a version, and undo it if anything fails.",
    "deadline": "2h",
    "steps": [
        {
            "id": "notes",
            "title": "Write the release notes",
            "prompt": "Write notes for {{ inputs.version }}.",
            "confirm": True,
            "checks": [{"rule": "file_exists", "path": "{{ output.file }}", "severity": "critical"}],
        },
        {
            "id": "tag",
            "tool": "git.create_tag",
            "after": ["notes"],
            "effect": "compensatable",
            "undo": {"tool": "git.delete_tag", "args": {"name": "v{{ inputs.version }}"}},
        },
        {
            "id": "build",
            "each": "inputs.targets",
            "as": "target",
            "parallel": 2,
            "max": 50,
            "after": ["tag"],
            "steps": [{"id": "make", "tool": "ci.build", "args": {"target": "{{ target }}"}}],
        },
        {
            "id": "ready",
            "repeat": {"until": "steps.ready.probe.output.ok", "max": 20, "every": "15s"},
            "after": ["build"],
            "steps": [{"id": "probe", "tool": "http.request", "args": {"url": "http://127.0.0.1:8080/ready"}}],
        },
        {
            "id": "go",
            "approve": "Publish {{ inputs.version }}?",
            "by": ["release-managers"],
            "expires": "24h",
            "after": ["ready"],
        },
        {"id": "announce", "workflow": "notify-team@^1", "when": "inputs.targets != []", "after": ["go"]},
    ],
}
HOSTILE = [
    "<script>alert(1)</script>",
    '"]; click A call()',
    "\x1b[31mred\x1b]0;title\x07",
    "one\nclick A call()\r\nend",
    "\u202eright to left\u2066\u200f",
    '%%{init: {"securityLevel": "loose"}}%%',
    "]]> <!-- --> &amp; &#x41; #quot; `code` **bold** $$x$$ [link](javascript:x)",
    "1. first",
    "日本語のとても長い題名" * 9,
    "e\u0301\u0301 👩\u200d👩\u200d👧 ⚠\ufe0f 🏳️\u200d🌈 \ud800",
    "x" * 3_000,
]


def drawn_by(*steps: dict[str, Any], **others: Any) -> Definition:
    return definition_from({"id": "sample", "name": "Sample", "steps": list(steps), **others})


def tool(name: str, *after: str, **others: Any) -> dict[str, Any]:
    return {"id": name, "tool": f"ci.{name}", "after": list(after), **others}


def fan(count: int) -> Definition:
    names = [f"t{number}" for number in range(count)]
    return drawn_by(tool("start"), *(tool(name, "start") for name in names), tool("join", *names))


def kept(name: str, drawn: str) -> str:
    path = ROOT / name
    if os.environ.get("UPDATE_PICTURES"):
        path.write_text(drawn, encoding="utf-8")
    return path.read_text(encoding="utf-8")


def places(picture: Picture) -> dict[str, tuple[int, int]]:
    return {node.item.step.id: (node.layer, node.row) for node in picture.nodes if node.item.step}


# ---- the kept pictures


def test_the_release_example_looks_in_the_terminal_as_it_is_kept() -> None:
    drawn = terminal_picture(definition_from(SHIP_RELEASE)) + "\n"
    assert drawn == kept("tests/interfaces/pictures/ship-release.txt", drawn)


def test_the_release_example_looks_without_unicode_as_it_is_kept() -> None:
    drawn = terminal_picture(definition_from(SHIP_RELEASE), unicode=False) + "\n"
    assert drawn.isascii()
    assert drawn == kept("tests/interfaces/pictures/ship-release.ascii.txt", drawn)


def test_the_release_example_reads_in_mermaid_as_it_is_kept() -> None:
    drawn = mermaid_text(definition_from(SHIP_RELEASE))
    assert drawn == kept("tests/interfaces/pictures/ship-release.mmd", drawn)


def test_the_picture_in_the_readme_is_the_one_that_is_drawn_today() -> None:
    drawn = svg_text(definition_from(SHIP_RELEASE))
    assert drawn == kept("docs/pictures/ship-release.svg", drawn)


# ---- what is drawn


def test_a_diamond_is_two_lanes_that_fork_and_join() -> None:
    diamond = drawn_by(tool("a"), tool("b", "a"), tool("c", "a"), tool("d", "b", "c"))
    assert terminal_picture(diamond).splitlines()[2:8] == [
        "■   tool      a  ci.a",
        "├─╮",
        "■ │ tool      b  ci.b",
        "│ ■ tool      c  ci.c",
        "├─╯",
        "■   tool      d  ci.d   after b, c",
    ]


def test_steps_that_wait_for_nothing_fork_from_the_start() -> None:
    roots = drawn_by(tool("a"), tool("b"))
    assert terminal_picture(roots).splitlines()[2:5] == ["├─╮", "■ │ tool      a  ci.a", "  ■ tool      b  ci.b"]


def test_where_all_of_some_come_before_all_of_others_their_lines_meet() -> None:
    crossed = drawn_by(tool("a"), tool("b"), tool("p", "a", "b"), tool("q", "a", "b"))
    assert terminal_picture(crossed).splitlines()[5:7] == ["├─╯", "├─╮"]
    assert "  s1 & s2 --> s3 & s4" in mermaid_text(crossed).splitlines()
    assert 'class="meeting"' in svg_text(crossed)
    assert len(placed(outlined(crossed)).edges) == 4


def test_a_loop_is_a_frame_around_its_body() -> None:
    loop = drawn_by(
        {"id": "all", "each": "inputs.list", "steps": [tool("one"), tool("two", "one")]}, tool("end", "all")
    )
    assert terminal_picture(loop).splitlines()[2:8] == [
        "≡ each      all  for item in inputs.list   at most 100",
        "│ ╭─────────────────────────╮",
        "│ │ ■ tool      one  ci.one │",
        "│ │ ■ tool      two  ci.two │",
        "│ ╰─────────────────────────╯",
        "■ tool      end  ci.end",
    ]
    assert [node.item.step.id for node in placed(outlined(loop)).nodes[0].inside.nodes] == ["one", "two"]  # type: ignore[union-attr]


def test_an_inlined_workflow_is_drawn_with_its_own_steps() -> None:
    inner = {"id": "inner", "steps": [tool("deep")]}
    calling = drawn_by({"id": "call", "workflow": "inner@1.0.0"}, pinned={"inner@1.0.0": inner})
    assert all("deep" in form(calling) for form in FORMS)


def test_a_workflow_that_inlines_itself_is_drawn_once() -> None:
    inner = {"id": "inner", "steps": [{"id": "again", "workflow": "inner@1.0.0"}]}
    calling = drawn_by({"id": "call", "workflow": "inner@1.0.0"}, pinned={"inner@1.0.0": inner})
    assert mermaid_text(calling).count("workflow: again") == 1


def test_inlining_ends_where_the_picture_would_burst() -> None:
    def calls(name: str) -> list[dict[str, Any]]:
        return [{"id": f"c{number}", "workflow": name, "after": []} for number in range(6)]

    pinned = {f"w{level}@1.0.0": {"id": f"w{level}", "steps": calls(f"w{level + 1}@1.0.0")} for level in range(9)}
    assert mermaid_text(drawn_by(*calls("w0@1.0.0"), pinned=pinned)).count("subgraph") < 400


def test_loops_in_loops_are_drawn_as_deep_as_anyone_could_read() -> None:
    step = tool("leaf")
    for level in range(150):
        step = {"id": f"loop{level}", "each": "inputs.list", "steps": [step]}
    assert all("loop149" in form(drawn_by(step)) for form in FORMS)
    assert mermaid_text(drawn_by(step)).count("subgraph") == 40


def test_an_edge_that_others_imply_is_left_out() -> None:
    implied = drawn_by(tool("a"), tool("b", "a"), tool("c", "a", "b"))
    assert [(edge.source, edge.target) for edge in placed(outlined(implied)).edges] == [(0, 1), (1, 2)]


def test_many_steps_in_parallel_become_one_bundle() -> None:
    assert [item.is_bundle for item in outlined(fan(6)).items].count(True) == 0
    assert [item.is_bundle for item in outlined(fan(60)).items] == [False, True, False]
    assert "⋮ parallel  60 steps in parallel" in terminal_picture(fan(60))


def test_many_chains_of_steps_in_parallel_become_one_bundle() -> None:
    rows = [step for number in range(8) for step in (tool(f"a{number}"), tool(f"b{number}", f"a{number}"))]
    drawn = terminal_picture(drawn_by(*rows))
    assert "8 chains in parallel" in drawn
    assert "  │ ├ ■ tool      a1  ci.a1 │\n  │ │ ■ tool      b1  ci.b1 │\n" in drawn


def test_lanes_that_would_be_too_many_are_drawn_in_waves() -> None:
    first = [tool(f"a{number}") for number in range(12)]
    second = [tool(f"b{number}", f"a{number}", f"a{(number + 1) % 12}") for number in range(12)]
    last = tool("end", *(f"b{number}" for number in range(12)))
    drawn = terminal_picture(drawn_by(*first, *second, last))
    assert "wave 2 · 12 in parallel" in drawn
    assert "├ ■ tool      b0   ci.b0   after a0, a1" in drawn
    assert "wave 3\n╰ ■ tool      end  ci.end" in drawn


def test_many_lanes_that_cross_are_joined_at_once_to_stay_few() -> None:
    steps = [
        tool("a"),
        *(tool(f"b{number}", "a") for number in range(6)),
        tool("c", "a", "b0", "b1"),
        tool("d", "b1", "b2"),
    ]
    drawn = terminal_picture(drawn_by(*steps, tool("e", "b2", "b3"), tool("f", "b0", "b4"), tool("g", "b5", "b1")))
    assert "─│─" in drawn
    assert "after b0, b1" in drawn


def test_a_cycle_is_drawn_and_named() -> None:
    cycle = drawn_by(tool("a", "c"), tool("b", "a"), tool("c", "b"), tool("me", "me"))
    assert "■ │ tool      a   ci.a   ↺ cycle: waits for c" in terminal_picture(cycle)
    assert '  s3 -. "cycle" .-> s1' in mermaid_text(cycle).splitlines()
    assert svg_text(cycle).count('class="back"') == 2


def test_names_that_no_step_has_are_ignored() -> None:
    stray = drawn_by(tool("a", "missing"), tool("b", "a", "missing"))
    assert places(placed(outlined(stray))) == {"a": (0, 0), "b": (1, 0)}


def test_two_steps_of_one_name_are_both_drawn() -> None:
    twins = drawn_by(tool("same"), tool("same"), tool("end", "same"))
    assert terminal_picture(twins).count(" same ") == 2


def test_a_definition_without_steps_is_only_its_header() -> None:
    empty = drawn_by()
    assert terminal_picture(empty) == "○ Sample  sample\n  0 steps"
    assert mermaid_text(empty) == "flowchart TD\n  accTitle: Sample\n"
    assert ElementTree.fromstring(svg_text(empty)) is not None


def test_what_is_special_about_a_step_is_said() -> None:
    special = drawn_by(
        tool("a", when="inputs.x > 1", effect="irreversible", on_failure="continue", title="First"),
        {"id": "b", "prompt": "Do it", "undo": {"prompt": "Undo it"}, "checks": [{"rule": "x"}, {"rule": "y"}]},
        tool("c", effect="reversible", checks=[{"rule": "x"}]),
        {"id": "d", "repeat": {"while": "true"}, "steps": [tool("in")]},
        {"id": "e", "repeat": {"times": 3}, "steps": [tool("side")]},
        {"id": "f", "approve": "Yes?", "by": ["ann", "bob", "cid", "dan", "eve"]},
        on_failure="stop",
    )
    shown = " ".join(terminal_picture(special, width=120).split())
    for words in (
        "on failure: stop",
        "First ◇ when inputs.x > 1 · ci.a · ⚠ irreversible · on failure: continue",
        "↶ undo by the agent",
        "2 checks",
        "1 check · reversible",
        "while true at most 100",
        "3 times",
        "by ann, bob, cid, dan and 1 more",
    ):
        assert words in shown


def test_each_kind_has_its_own_shape_in_mermaid() -> None:
    drawn = mermaid_text(definition_from(SHIP_RELEASE))
    for shape in ('s1("prompt', 's2["tool', 's3h(["each', 's4h(["repeat', 's5{{"approve', 's6[["workflow'):
        assert shape in drawn


def test_the_svg_describes_in_words_what_it_shows() -> None:
    root = ElementTree.fromstring(svg_text(definition_from(SHIP_RELEASE)))
    space = "{http://www.w3.org/2000/svg}"
    assert root.get("role") == "img"
    assert root.findtext(f"{space}title") == "Ship a release"
    assert "tag: tool, git.create_tag, after notes" in (root.findtext(f"{space}desc") or "")
    assert "And 399 more" in svg_text(drawn_by(*(tool(f"p{number}") for number in range(499))))


def test_a_long_title_takes_two_lines_in_the_svg_and_ends_with_an_ellipsis() -> None:
    long = svg_text(
        drawn_by(tool("a", title="A title that is far too long for one line and also too long for two lines"))
    )
    assert re.findall('class="title"[^>]*>([^<]*)', long) == [
        "A title that is far too long for",
        "one line and also too long fo…",
    ]
    assert len(re.findall('class="title"', svg_text(drawn_by(tool("a", title="x" * 99))))) == 2


# ---- where it stands


def test_a_step_stands_below_all_that_it_waits_for() -> None:
    steps = [tool("a"), tool("b", "a"), tool("c", "b"), tool("d", "a"), tool("e", "c", "d")]
    layers = {name: layer for name, (layer, _) in places(placed(outlined(drawn_by(*steps)))).items()}
    assert layers == {"a": 0, "b": 1, "c": 2, "d": 1, "e": 3}


def test_rows_are_ordered_so_that_edges_do_not_cross() -> None:
    crossed = drawn_by(tool("a"), tool("b"), tool("x", "b"), tool("y", "a"))
    found = places(placed(outlined(crossed)))
    assert (found["a"][1] < found["b"][1]) == (found["y"][1] < found["x"][1])


def test_an_edge_that_passes_layers_has_a_row_in_each() -> None:
    long = drawn_by(tool("a"), tool("b", "a"), tool("c", "b"), tool("d"), tool("e", "c", "d"))
    picture = placed(outlined(long))
    edge = next(edge for edge in picture.edges if (edge.source, edge.target) == (3, 4))
    assert len(edge.bends) == 2
    assert picture.rows == (2, 2, 2, 1)


def boxes_in(svg: str) -> Iterator[tuple[float, float, float, float]]:
    space = "{http://www.w3.org/2000/svg}"

    def inside(element: ElementTree.Element, x: float, y: float) -> Iterator[tuple[float, float, float, float]]:
        for child in element:
            moved = re.match(r"translate\((\S+) (\S+)\)", child.get("transform", ""))
            left, top = (x + float(moved[1]), y + float(moved[2])) if moved else (x, y)
            if child.tag == f"{space}rect" and child.get("class") == "card":
                yield left, top, float(child.get("width", 0)), float(child.get("height", 0))
            yield from inside(child, left, top)

    return inside(ElementTree.fromstring(svg), 0, 0)


def overlapping(svg: str) -> list[Any]:
    boxes = sorted(boxes_in(svg))
    return [
        (one, two)
        for index, one in enumerate(boxes)
        for two in boxes[index + 1 :]
        if two[0] < one[0] + one[2] and two[1] < one[1] + one[3] and one[1] < two[1] + two[3]
    ]


# ---- whatever an author writes


TEXTS = st.text(max_size=20) | st.sampled_from(HOSTILE)


@st.composite
def step_lists(draw: st.DrawFn, depth: int = 2, prefix: str = "k") -> list[dict[str, Any]]:
    """Steps of every kind with any text, in any order, also in cycles and after steps that do not exist."""
    names = [f"{prefix}{number}z" for number in range(draw(st.integers(1, 6)))]
    after = st.lists(st.sampled_from([*names, "missing"]), max_size=3)
    special: st.SearchStrategy[dict[str, Any]] = st.sampled_from([{}, {"when": "x"}, {"undo": {"prompt": "u"}}])
    kinds = st.sampled_from(["prompt", "tool", "approve", "workflow", *["each", "repeat"] * bool(depth)])
    return [
        {
            "id": name,
            "title": draw(TEXTS),
            "after": draw(after),
            **draw(special),
            **draw(works(draw(kinds), depth, name)),
        }
        for name in names
    ]


@st.composite
def works(draw: st.DrawFn, kind: str, depth: int, name: str) -> dict[str, Any]:
    if kind == "workflow":
        return {kind: "w@1"}
    if kind not in ("each", "repeat"):
        return {kind: draw(TEXTS)}
    head = draw(TEXTS)
    return {kind: head if kind == "each" else {"until": head}, "steps": draw(step_lists(depth=depth - 1, prefix=name))}


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    pinned = draw(st.sampled_from([{}, {"w@1": {"id": "w", "steps": draw(step_lists(depth=0, prefix="q"))}}]))
    name = draw(st.sampled_from(["Sample", *HOSTILE]))
    return definition_from({"id": "sample", "name": name, "steps": draw(step_lists()), "pinned": pinned})


@settings(deadline=None, max_examples=60)
@given(definitions())
def test_every_step_is_in_every_form(definition: Definition) -> None:
    for form in FORMS:
        drawn = form(definition)
        assert all(step.id in drawn for _, step in walk(definition.steps))


@settings(deadline=None, max_examples=60)
@given(definitions(), st.integers(1, 130), st.booleans())
def test_no_line_in_the_terminal_is_wider_than_asked_for(definition: Definition, width: int, unicode: bool) -> None:
    drawn = terminal_picture(definition, width=width, unicode=unicode)
    assert all(cell_len(line) <= width for line in drawn.split("\n"))
    assert drawn.replace("\n", "").isprintable()
    assert unicode or drawn.isascii()


@settings(deadline=None, max_examples=30)
@given(definitions())
def test_colour_adds_nothing_but_our_own_codes(definition: Definition) -> None:
    ours = re.sub(r"\x1b\[[0-9;]*m", "", terminal_picture(definition, color=True))
    assert [line.rstrip() for line in ours.split("\n")] == terminal_picture(definition).split("\n")


LABEL = r"(?:[^\"<>`#;{}\[\]\\%$&|*]|#\d+;|<br/>)*"
BOX = rf'(?:\("{LABEL}"\)|\["{LABEL}"\]|\{{\{{"{LABEL}"\}}\}}|\[\["{LABEL}"\]\]|\(\["{LABEL}"\]\))'
NAMES = r"s[\d_xh]+(?: & s[\d_xh]+)*"
MERMAID_LINE = re.compile(
    rf'flowchart TD|accTitle: {LABEL}|subgraph s[\d_x]+\["{LABEL}"\]|direction TB|end|s[\d_xh]+{BOX}(?: --> {NAMES})?'
    rf'|{NAMES} --> {NAMES}|s\S+ ~~~ s\S+|s\S+ -\. "cycle" \.-> s\S+|classDef \w+ [\w:#, -]+|class [\w,]+ \w+'
)


@settings(deadline=None, max_examples=60)
@given(definitions())
def test_every_line_of_the_mermaid_text_is_one_of_ours(definition: Definition) -> None:
    for line in mermaid_text(definition).splitlines():
        assert MERMAID_LINE.fullmatch(line.strip()), line
        assert line.count('"') % 2 == 0


TAGS = {"svg", "title", "desc", "style", "defs", "marker", "g", "path", "rect", "circle", "text", "tspan"}


@settings(deadline=None, max_examples=60)
@given(definitions())
def test_the_svg_is_xml_of_our_own_elements_and_its_boxes_stand_apart(definition: Definition) -> None:
    drawn = svg_text(definition)
    elements = list(ElementTree.fromstring(drawn).iter())
    assert {element.tag.rpartition("}")[2] for element in elements} <= TAGS
    assert not any(name.startswith("on") or "href" in name for element in elements for name in element.attrib)
    assert "<script" not in drawn
    assert overlapping(drawn) == []


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_are_harmless_wherever_they_stand(text: str) -> None:
    hostile = definition_from(
        {
            "id": "sample",
            "name": text,
            "version": text,
            "description": text,
            "deadline": text,
            "steps": [
                {"id": text[:60], "prompt": text, "title": text, "when": text, "undo": {"tool": text}},
                {"id": "b", "approve": text, "by": [text], "expires": text, "after": [text[:60]]},
                {"id": "c", "each": text, "as": text, "steps": [{"id": "d", "tool": text}]},
            ],
        }
    )
    drawn = terminal_picture(hostile)
    assert drawn.replace("\n", "").isprintable()
    assert all(cell_len(line) <= 80 for line in drawn.split("\n"))
    assert all(MERMAID_LINE.fullmatch(line.strip()) for line in mermaid_text(hostile).splitlines())
    assert ElementTree.fromstring(svg_text(hostile)) is not None
    assert "<script" not in svg_text(hostile)


@pytest.mark.parametrize(
    "steps",
    [
        [tool(f"p{number}") for number in range(500)],
        [tool(f"p{number}", *[f"p{number - 1}"] * bool(number)) for number in range(500)],
        [
            tool(f"p{number}", *{f"p{number * 7 // 11}", f"p{number * 9 // 10}"} - {f"p{number}"})
            for number in range(500)
        ],
        [tool(f"p{number}", *(f"p{other}" for other in range(number))) for number in range(500)],
    ],
    ids=["side by side", "in a row", "woven", "each after all before"],
)
def test_five_hundred_steps_are_drawn_quickly(steps: list[dict[str, Any]]) -> None:
    many = drawn_by(*steps)
    for form in FORMS:
        start = time.process_time()
        form(many)
        assert time.process_time() - start < 1.5  # measured: 0.02 to 0.13; the rest is for slow and traced machines
