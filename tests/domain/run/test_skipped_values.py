"""Skipped steps: what they leave, and how later texts, conditions and arguments read it."""

from __future__ import annotations

from typing import Any

import pytest

from domain.facts import RUN, entries, given, plan, started
from handrail.domain.definition.authoring import definition_from
from handrail.domain.errors import Invalid
from handrail.domain.journal.event import Event, RoundStarted, StepCompleted, StepOpened, StepSkipped
from handrail.domain.run.guidance import shown_step
from handrail.domain.run.scope import condition_is_true, evaluate, rendered
from handrail.domain.run.skipped_values import text_for_reader
from handrail.domain.run.state import Run, replay
from handrail.domain.run.step_path import locate, top_lane
from handrail.domain.scheduling.loop_rounds import outputs_of

FIELDS = {
    "text": {"type": "string"},
    "items": {"type": "array"},
    "count": {"type": "integer"},
    "ok": {"type": "boolean"},
    "deep": {"type": "object", "properties": {"more": {"type": "string"}}},
    "odd": True,
}
NOTE = "\n\n(Skipped, so that their results are missing here: a.)"


def after(*events: Event, actor: str = "agent:claude") -> Run:
    return replay(entries([started(), *events], actor=actor), Run(id=RUN))


SKIPPED = after(StepSkipped(step="a", reason="no"))


def read(text: str, output: Any = None, **more: Any) -> str:
    first = {"id": "a", "prompt": "x", **({"output": output} if output else {}), **more}
    definition = plan(first, {"id": "b", "prompt": text})
    return text_for_reader(text, SKIPPED, locate(definition, "b").lane)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("See {{ steps.a.output.text }}.", "See (skipped)."),
        ("See {{ steps.a.output.items | join(', ') }}.", "See ."),
        ("{% for one in steps.a.output.items %}{{ one }}{% endfor %}Go.", "Go."),
        ("{{ steps.a.output.count }} of 3", "0 of 3"),
        ("{% if steps.a.output.ok %}yes{% else %}no{% endif %}", "no"),
        ("See {{ steps.a.output.deep.more }}.", "See (skipped)."),
        ("See {{ steps.a.output.odd }}.", "See (skipped)."),
    ],
)
def test_a_text_that_reads_a_skipped_step_has_blanks_and_says_so(text: str, shown: str) -> None:
    assert read(text, {"type": "object", "properties": FIELDS}) == shown + NOTE


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("See {{ steps.a.output.text }}.", "See (skipped)."),
        ("See {{ steps.a.output }}.", "See (skipped)."),
        ("{% for one in steps.a.output.items %}{{ one.x }}{% endfor %}Go.", "Go."),
    ],
)
def test_without_a_schema_a_blank_is_what_the_text_takes(text: str, shown: str) -> None:
    assert read(text) == shown + NOTE


def test_a_skipped_loop_leaves_an_empty_list() -> None:
    loop = {"id": "a", "each": "[1]", "steps": [{"id": "i", "prompt": "x"}]}
    definition = plan(loop, {"id": "b", "prompt": "y"})
    text = "{% for one in steps.a.output %}{{ one.i }}{% endfor %}Go."
    assert text_for_reader(text, SKIPPED, locate(definition, "b").lane) == "Go." + NOTE


@pytest.mark.parametrize("loop", [{"each": "[1, 2]"}, {"repeat": {"times": 2}}])
def test_a_step_that_was_skipped_in_one_round_leaves_blanks_in_that_round(loop: dict[str, Any]) -> None:
    inner = {"id": "i", "prompt": "x", "output": {"type": "object", "properties": FIELDS}}
    definition = plan({"id": "a", **loop, "steps": [inner]}, {"id": "b", "prompt": "y"})
    rounds = [RoundStarted(step="a", round=number) for number in (0, 1)]
    opened = StepOpened(step="a", values=[1, 2], rounds=2 if "each" in loop else None)
    done = StepCompleted(step="a[1].i", output={"text": "seen", "items": ["x"], "count": 1})
    run = after(opened, rounds[0], StepSkipped(step="a[0].i", reason="no"), rounds[1], done, StepCompleted(step="a"))
    text = (
        "{% for one in steps.a.output %}{{ one.i.text }} {{ one.i.items | join(', ') }} {{ one.i.count }};{% endfor %}"
    )
    shown = text_for_reader(text, run, locate(definition, "b").lane)
    assert shown == "(skipped)  0;seen x 1;" + NOTE.replace("a.)", "a[0].i.)")


def test_a_text_that_bears_what_is_missing_stays_as_it_was() -> None:
    assert read("See {{ default(steps.a.output.text, 'nothing') }}.") == "See nothing."
    assert read("{% if steps.a.output != null %}{{ steps.a.output.text }}{% endif %}Go.") == "Go."


def test_what_is_missing_for_another_reason_is_still_an_error() -> None:
    definition = plan({"id": "a", "prompt": "x"}, {"id": "b", "prompt": "y"})
    lane = locate(definition, "b").lane
    done = given(StepCompleted(step="a", output=None))
    for run, text in ((done, "{{ steps.a.output.x }}!"), (SKIPPED, "{{ vars.x }} {{ steps.a.output.x }}")):
        with pytest.raises(Invalid):
            text_for_reader(text, run, lane)
    with pytest.raises(Invalid):
        text_for_reader("{{ steps.a.output[0] }}!", SKIPPED, lane)


def test_what_the_workflow_itself_left_out_is_for_its_author_to_foresee() -> None:
    by_condition = after(StepSkipped(step="a", reason="`when: false` is false"), actor="handrail")
    definition = plan({"id": "a", "prompt": "x"}, {"id": "b", "prompt": "y"})
    with pytest.raises(Invalid, match="null"):
        text_for_reader("{{ steps.a.output.x }}!", by_condition, locate(definition, "b").lane)


def test_an_agent_is_shown_the_step_after_a_skipped_one() -> None:
    definition = plan({"id": "a", "prompt": "x"}, {"id": "b", "prompt": "Use {{ steps.a.output.file }}."})
    assert shown_step(SKIPPED, definition, "b").prompt == "Use (skipped)." + NOTE


def test_the_defaults_of_a_schema_count_everywhere() -> None:
    fields = {"level": {"type": "string", "default": "low"}, "other": {"type": "string"}}
    definition = plan(
        {"id": "a", "prompt": "x", "output": {"type": "object", "properties": fields}}, {"id": "b", "prompt": "y"}
    )
    lane = locate(definition, "b").lane
    assert rendered({"x": "{{ steps.a.output.level }}"}, SKIPPED, lane) == {"x": "low"}
    assert condition_is_true("steps.a.output.level == 'low'", SKIPPED, lane)
    assert text_for_reader("{{ steps.a.output.level }} {{ steps.a.output.other }}", SKIPPED, lane) == (
        "low (skipped)" + NOTE
    )
    whole = plan({"id": "a", "prompt": "x", "output": {"type": "array", "default": [1]}}, {"id": "b", "prompt": "y"})
    assert evaluate("steps.a.output", SKIPPED, locate(whole, "b").lane) == [1]


def test_conditions_and_arguments_stay_strict() -> None:
    shape = {"type": "object", "properties": FIELDS}
    definition = plan({"id": "a", "prompt": "x", "output": shape}, {"id": "b", "prompt": "y"})
    lane = locate(definition, "b").lane
    for what in (
        lambda: condition_is_true("steps.a.output.text == 'high'", SKIPPED, lane),
        lambda: rendered({"path": "{{ steps.a.output.text }}/x"}, SKIPPED, lane),
        lambda: evaluate("steps.a.output.items", SKIPPED, lane),
    ):
        with pytest.raises(Invalid):
            what()


def test_an_output_of_the_workflow_that_reads_a_skipped_step_is_null() -> None:
    steps = [{"id": "a", "prompt": "x"}, {"id": "b", "prompt": "y"}]
    definition = definition_from(
        {"id": "w", "steps": steps, "outputs": {"one": "steps.a.output.x", "two": "steps.b.output.x"}}
    )
    run = after(StepSkipped(step="a", reason="no"), StepCompleted(step="b", output={"x": 1}))
    assert outputs_of(definition, run, top_lane(definition)) == {"one": None, "two": 1}
    with pytest.raises(Invalid):
        outputs_of(definition, given(StepCompleted(step="a"), StepCompleted(step="b")), top_lane(definition))
