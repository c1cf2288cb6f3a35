"""Extending a workflow and calling another: what is merged and pinned, and where findings are shown."""

from __future__ import annotations

from textwrap import dedent

import pytest

from handrail.domain.checks.finding import Finding
from handrail.domain.definition.authoring import content_hash, definition_data
from handrail.domain.definition.model import Approve, Call, Definition, Prompt, Tool
from handrail.library.loading import Loaded, load_definition
from library.shelf import Shelf

BASE = """
    id: base
    name: The base
    version: 1.4.0
    description: What everyone does.
    tags: [a, b]
    inputs:
      who: {type: string}
      count: {type: integer, default: 1}
    steps:
      - {id: look, prompt: Look at it.}
      - id: make
        tool: file.write
        args: {path: x, text: y}
        timeout: 5s
        effect: reversible
        undo: {tool: file.delete, args: {path: x}}
      - {id: aside, prompt: Beside., after: []}
      - {id: tell, prompt: 'Tell {{ inputs.who }}.', after: [make]}
    outputs: {told: steps.tell.output}
"""


def load(text: str, *shelf: str) -> Loaded:
    return load_definition(dedent(text), name="child.yaml", catalog=Shelf(*shelf))


def defined(text: str, *shelf: str) -> Definition:
    loaded = load(text, *shelf)
    assert loaded.definition is not None, loaded.findings
    assert loaded.is_valid, loaded.findings
    return loaded.definition


def only(loaded: Loaded, rule: str) -> Finding:
    matching = [finding for finding in loaded.findings if finding.rule == rule]
    assert len(matching) == 1, loaded.findings
    return matching[0]


def order(definition: Definition) -> list[tuple[str, tuple[str, ...]]]:
    return [(step.id, step.after) for step in definition.steps]


# Extending


def test_a_child_without_changes_is_its_base_under_its_own_id() -> None:
    child, base = defined("{id: child, extends: base}", BASE), defined(BASE)
    assert (child.id, child.version) == ("child", "")
    assert (child.name, child.description, child.tags) == ("The base", "What everyone does.", ("a", "b"))
    assert child.steps == base.steps


def test_the_childs_words_win_and_inputs_and_outputs_merge_by_name() -> None:
    text = """
        id: child
        extends: base
        version: 0.1.0
        name: Mine
        tags: [c]
        inputs: {count: {type: integer, default: 7}, more: {type: string, default: z}}
        outputs: {other: steps.look.output}
    """
    child = defined(text, BASE)
    assert (child.name, child.version, child.tags) == ("Mine", "0.1.0", ("c",))
    assert {name: schema.get("default") for name, schema in child.inputs.items()} == {
        "who": None,
        "count": 7,
        "more": "z",
    }
    assert child.outputs == {"told": "steps.tell.output", "other": "steps.look.output"}


def test_a_step_with_the_same_id_overrides_key_by_key() -> None:
    child = defined("{id: child, extends: base, steps: [{id: make, args: {path: z, text: w}, title: Mine}]}", BASE)
    step = child.steps[1]
    assert isinstance(step.work, Tool)
    assert (step.work.tool, step.work.args, step.work.timeout) == ("file.write", {"path": "z", "text": "w"}, "5s")
    assert (step.title, step.after) == ("Mine", ("look",))
    assert step.undo is not None


def test_an_override_of_the_same_kind_keeps_what_it_does_not_name() -> None:
    step = defined("{id: child, extends: base, steps: [{id: make, tool: file.append}]}", BASE).steps[1]
    assert isinstance(step.work, Tool)
    assert (step.work.tool, step.work.args) == ("file.append", {"path": "x", "text": "y"})
    assert step.undo is not None


def test_another_kind_replaces_the_keys_of_the_old_kind() -> None:
    child = defined("{id: child, extends: base, steps: [{id: make, approve: 'May I?', by: [boss]}]}", BASE)
    step = child.steps[1]
    assert step.work == Approve(approve="May I?", by=("boss",))
    assert (step.undo, step.effect, step.after) == (None, None, ("look",))


def test_an_override_may_say_another_order() -> None:
    child = defined("{id: child, extends: base, steps: [{id: tell, after: []}]}", BASE)
    assert order(child)[-1] == ("tell", ())


def test_a_step_put_in_between_joins_the_implied_order() -> None:
    child = defined("{id: child, extends: base, steps: [{id: new, insert_after: look, prompt: New.}]}", BASE)
    assert order(child) == [
        ("look", ()),
        ("new", ("look",)),
        ("make", ("new",)),
        ("aside", ()),
        ("tell", ("make",)),
    ]


def test_an_order_that_the_base_wrote_down_is_left_alone() -> None:
    child = defined("{id: child, extends: base, steps: [{id: new, insert_after: make, prompt: New.}]}", BASE)
    assert order(child)[1:] == [("make", ("look",)), ("new", ("make",)), ("aside", ()), ("tell", ("make",))]


def test_a_step_put_in_with_an_order_of_its_own_does_not_set_its_follower_free() -> None:
    child = defined("{id: child, extends: base, steps: [{id: new, insert_after: look, prompt: New., after: []}]}", BASE)
    assert order(child)[:3] == [("look", ()), ("new", ()), ("make", ("look", "new"))]


def test_a_step_can_be_put_after_the_last() -> None:
    child = defined("{id: child, extends: base, steps: [{id: new, insert_after: tell, prompt: New.}]}", BASE)
    assert order(child)[-1] == ("new", ("tell",))


def test_an_override_does_not_change_whether_the_order_was_implied() -> None:
    new = "{id: new, insert_after: look, prompt: New.}"
    implied = defined(f"{{id: child, extends: base, steps: [{{id: make, title: Mine}}, {new}]}}", BASE)
    assert order(implied)[1:3] == [("new", ("look",)), ("make", ("new",))]
    written = defined(f"{{id: child, extends: base, steps: [{{id: make, after: [look]}}, {new}]}}", BASE)
    assert order(written)[1:3] == [("new", ("look",)), ("make", ("look",))]
    explicit = BASE.replace("- id: make", "- id: make\n        after: [look]")
    kept = defined(f"{{id: child, extends: base, steps: [{{id: make, title: Mine}}, {new}]}}", explicit)
    assert order(kept)[1:3] == [("new", ("look",)), ("make", ("look",))]


def test_several_steps_put_after_the_same_one_keep_their_written_order() -> None:
    text = """
        id: child
        extends: base
        steps:
          - {id: one, insert_after: look, prompt: One.}
          - {id: two, insert_after: look, prompt: Two.}
          - {id: last, prompt: Last.}
          - {id: three, insert_after: two, prompt: Three.}
    """
    assert order(defined(text, BASE)) == [
        ("look", ()),
        ("one", ("look",)),
        ("two", ("one",)),
        ("three", ("two",)),
        ("make", ("three",)),
        ("aside", ()),
        ("tell", ("make",)),
        ("last", ("tell",)),
    ]


def test_a_chain_of_extensions_keeps_what_was_only_implied() -> None:
    changes = "{id: one, insert_after: look, prompt: One.}, {id: look, prompt: Look twice.}"
    middle = f"{{id: middle, extends: base, steps: [{changes}]}}"
    child = defined("{id: child, extends: middle@*, steps: [{id: two, insert_after: one, prompt: Two.}]}", BASE, middle)
    assert order(child)[:4] == [("look", ()), ("one", ("look",)), ("two", ("one",)), ("make", ("two",))]
    assert isinstance(child.steps[0].work, Prompt)
    assert child.steps[0].work.prompt == "Look twice."


def test_a_base_of_plain_texts_can_be_extended_by_their_numbered_ids() -> None:
    child = defined(
        "{id: child, extends: plain, steps: [{id: new, insert_after: step-1, prompt: New.}]}",
        "{id: plain, steps: [One., Two.]}",
    )
    assert order(child) == [("step-1", ()), ("new", ("step-1",)), ("step-2", ("new",))]


def test_findings_in_what_is_inherited_are_shown_in_the_bases_file() -> None:
    broken = "id: base\nsteps:\n  - id: a\n    prompt: Hello {{ nobody }}\n"
    finding = only(load("id: child\nextends: base\n", broken), "template")
    assert str(finding.at) == "base.yaml:4:22"


def test_findings_in_what_the_child_wrote_are_shown_in_its_own_file() -> None:
    finding = only(
        load("id: child\nextends: base\nsteps:\n  - id: look\n    prompt: 'Hi {{ nobody }}'\n", BASE), "template"
    )
    assert str(finding.at) == "child.yaml:5:20"
    assert finding.where == "steps[0].prompt"


def test_of_an_overridden_step_each_key_is_shown_in_the_file_that_wrote_it() -> None:
    base = "id: base\nsteps:\n  - id: a\n    prompt: Hello {{ nobody }}\n  - id: b\n    tool: git.log\n"
    loaded = load("id: child\nextends: base\nsteps:\n  - {id: a, title: Mine}\n  - {id: b, title: Mine}\n", base)
    assert str(only(loaded, "template").at) == "base.yaml:4:22"
    assert str(only(loaded, "unknown_effect").at) == "child.yaml:5:5"
    assert str(only(load("id: child\nextends: base\n", base), "unknown_effect").at) == "base.yaml:5:5"


def test_an_inherited_text_step_keeps_its_place() -> None:
    finding = only(
        load("id: child\nextends: plain\n", "id: plain\nsteps:\n  - Fine.\n  - Not {{ fine }}.\n"), "template"
    )
    assert finding.at is not None
    assert (finding.at.file, finding.at.line) == ("plain.yaml", 4)


def test_the_merged_whole_must_have_the_right_structure_too() -> None:
    loaded = load("id: child\nextends: base\nsteps:\n  - {id: fresh, title: No kind}\n", BASE)
    assert not loaded.is_valid
    assert loaded.definition is None


@pytest.mark.parametrize(
    ("text", "words", "fix"),
    [
        ("{id: child, extends: bsae}", "no workflow `bsae`", "did you mean `base`?"),
        ("{id: child, extends: base@^2}", "no version of `base` fits `^2`", "there is: 1.4.0"),
        ("{id: child, extends: base@1.2.3.4}", "not a range", "write 1.2.3"),
    ],
)
def test_a_base_that_is_not_there_is_reported(text: str, words: str, fix: str) -> None:
    finding = only(load(text, BASE), "extends")
    assert words in finding.message
    assert fix in finding.fix
    assert finding.where == "extends"


def test_workflows_that_extend_each_other_are_named_in_order() -> None:
    loaded = load("{id: child, extends: one}", "{id: one, extends: two}", "{id: two, extends: child}")
    assert "child -> one -> two -> child" in only(loaded, "extends").message


def test_a_chain_of_extensions_that_is_too_long_is_refused() -> None:
    for length, is_fine in ((10, True), (11, False)):
        shelf = [f"{{id: w{number}, extends: w{number - 1}}}" for number in range(2, length + 1)]
        loaded = load(f"{{id: child, extends: w{length}}}", "{id: w1, steps: [Go.]}", *shelf)
        assert loaded.is_valid is is_fine
        assert is_fine or "more than 10" in only(loaded, "extends").message


def test_a_base_with_faults_of_its_own_is_reported_with_them() -> None:
    loaded = load("{id: child, extends: base}", "id: base\nstepps: []\n")
    assert "errors of its own" in only(loaded, "extends").message
    assert {finding.at.file for finding in loaded.findings if finding.at} == {"child.yaml", "base.yaml"}


def test_a_step_to_put_it_after_that_is_not_there_is_reported() -> None:
    finding = only(
        load("{id: child, extends: base, steps: [{id: new, insert_after: mkae, prompt: New.}]}", BASE), "insert_after"
    )
    assert finding.fix == "did you mean `make`?"


def test_a_step_of_the_base_cannot_be_put_in_once_more() -> None:
    finding = only(
        load("{id: child, extends: base, steps: [{id: make, insert_after: look, prompt: New.}]}", BASE), "insert_after"
    )
    assert "already" in finding.message


def test_an_id_used_twice_by_the_child_is_reported() -> None:
    loaded = load("{id: child, extends: base, steps: [{id: new, prompt: A.}, {id: new, prompt: B.}]}", BASE)
    assert only(loaded, "duplicate_id").where == "steps[1].id"


# Calling


NOTIFY = """
    id: notify
    version: 1.2.0
    inputs: {text: {type: string}}
    steps: [{id: tell, prompt: 'Tell {{ inputs.text }}.'}]
    outputs: {link: steps.tell.output}
"""
CALL = "{id: main, steps: [{id: a, workflow: 'notify@^1', with: {text: hi}}]}"


def test_a_call_is_pinned_to_the_best_version_that_fits() -> None:
    others = [NOTIFY.replace("1.2.0", version) for version in ("1.10.0", "2.0.0", "1.11.0-rc.1")]
    main = defined(CALL, NOTIFY, *others)
    assert isinstance(main.steps[0].work, Call)
    assert main.steps[0].work.workflow == "notify@1.10.0"
    assert list(main.pinned) == ["notify@1.10.0"]
    assert main.pinned["notify@1.10.0"].steps[0].id == "tell"


def test_a_workflow_without_a_version_is_pinned_by_its_content() -> None:
    main = defined("{id: main, steps: [{id: a, workflow: plain}]}", "{id: plain, steps: [Do it.]}")
    (name,) = main.pinned
    assert name == f"plain@{content_hash(main.pinned[name])[:19]}"
    assert main.steps[0].work == Call(workflow=name)


def test_calls_in_loops_and_undos_are_pinned_and_each_workflow_is_looked_up_once() -> None:
    shelf = Shelf(NOTIFY)
    text = dedent("""
        id: main
        steps:
          - id: all
            each: [1, 2]
            steps: [{id: a, workflow: notify, with: {text: hi}}]
          - {id: b, prompt: Buy., effect: compensatable, undo: {workflow: notify, with: {text: sorry}}}
    """)
    main = load_definition(text, name="main.yaml", catalog=shelf).definition
    assert main is not None
    assert main.steps[0].body[0].work == Call(workflow="notify@1.2.0", with_={"text": "hi"})
    assert main.steps[1].undo == Call(workflow="notify@1.2.0", with_={"text": "sorry"})
    assert shelf.asked == ["notify"]


def test_the_pins_of_called_workflows_stand_flat_beside_their_own() -> None:
    middle = "{id: middle, version: 0.1.0, steps: [{id: x, workflow: notify, with: {text: hi}}]}"
    main = defined(
        "{id: main, steps: [{id: a, workflow: middle}, {id: b, workflow: notify, with: {text: b}}]}", middle, NOTIFY
    )
    assert sorted(main.pinned) == ["middle@0.1.0", "notify@1.2.0"]
    assert all(not pinned.pinned for pinned in main.pinned.values())
    assert main.pinned["middle@0.1.0"].steps[0].work == Call(workflow="notify@1.2.0", with_={"text": "hi"})


def test_the_hash_covers_the_text_of_called_workflows() -> None:
    one, other = load(CALL, NOTIFY), load(CALL, NOTIFY.replace("Tell {{", "Told {{"))
    assert one.hash != other.hash
    assert one.definition is not None
    assert definition_data(one.definition)["pinned"].keys() == {"notify@1.2.0"}


def test_what_a_call_gives_is_held_against_the_called_workflows_inputs() -> None:
    finding = only(
        load("{id: main, steps: [{id: a, workflow: notify, with: {txt: hi, text: x}}]}", NOTIFY), "call_inputs"
    )
    assert finding.where == "steps[0].with.txt"


def test_a_written_value_that_does_not_fit_the_called_workflows_input_is_refused() -> None:
    (finding,) = load("{id: main, steps: [{id: a, workflow: notify, with: {text: [5]}}]}", NOTIFY).findings
    assert finding.where == "steps[0].with.text"
    for filled in ("'{{ vars.any }}'", "['{{ vars.any }}']", "{x: '{{ vars.any }}', y: 1}"):
        later = f"{{id: main, steps: [{{id: a, workflow: notify, with: {{text: {filled}}}}}]}}"
        assert load(later, NOTIFY).findings == ()


def test_findings_in_a_called_workflow_are_shown_in_its_own_file_and_at_the_call() -> None:
    loaded = load("id: main\nsteps:\n  - {id: a, workflow: plain}\n", "id: plain\nsteps:\n  - Not {{ fine }}.\n")
    assert not loaded.is_valid
    assert "errors of its own" in only(loaded, "workflow").message
    inner = only(loaded, "template")
    assert inner.at is not None
    assert (inner.at.file, inner.at.line) == ("plain.yaml", 3)


def test_a_called_workflow_that_is_no_workflow_at_all_is_reported() -> None:
    loaded = load("id: main\nsteps:\n  - {id: a, workflow: plain}\n", "id: plain\nstepps: []\n")
    assert only(loaded, "workflow").where == "steps[0].workflow"
    assert loaded.definition is not None
    assert loaded.definition.pinned == {}


def test_a_workflow_that_is_not_there_is_reported_wherever_it_is_called() -> None:
    loaded = load("{id: main, steps: [{id: a, workflow: notfy}, {id: b, workflow: notfy}]}", NOTIFY)
    found = [(finding.where, finding.fix) for finding in loaded.findings]
    assert found == [(f"steps[{index}].workflow", "did you mean `notify`?") for index in (0, 1)]


def test_without_any_workflow_to_call_it_says_so() -> None:
    assert only(load("{id: main, steps: [{id: a, workflow: notify}]}"), "workflow").fix == "none is known here"


def test_workflows_that_call_each_other_are_named_in_order() -> None:
    one, two = ("{id: one, steps: [{id: x, workflow: two}]}", "{id: two, steps: [{id: y, workflow: main}]}")
    loaded = load("{id: main, steps: [{id: a, workflow: one}]}", one, two)
    assert any("main -> one -> two -> main" in finding.message for finding in loaded.findings)
    assert not loaded.is_valid


def test_calls_that_nest_too_deeply_are_refused() -> None:
    for depth, is_fine in ((10, True), (11, False)):
        shelf = [f"{{id: w{number}, steps: [{{id: x, workflow: w{number - 1}}}]}}" for number in range(2, depth + 1)]
        loaded = load(f"{{id: main, steps: [{{id: a, workflow: w{depth}}}]}}", "{id: w1, steps: [Go.]}", *shelf)
        assert loaded.is_valid is is_fine
        assert is_fine == (not any("more than 10 workflows call" in finding.message for finding in loaded.findings))


def test_a_workflow_without_a_version_fits_no_range_but_any() -> None:
    plain = "{id: plain, steps: [Do it.]}"
    finding = only(load("{id: main, steps: [{id: a, workflow: 'plain@^1'}]}", plain), "workflow")
    assert (finding.message, finding.fix) == ("no version of `plain` fits `^1`", "there is: one without a version")
    assert load("{id: main, steps: [{id: a, workflow: 'plain@*'}]}", plain).is_valid
    beta = "{id: plain, version: 1.0.0-beta, steps: [Do it.]}"
    assert not load("{id: main, steps: [{id: a, workflow: plain}]}", beta).is_valid
    assert load("{id: main, steps: [{id: a, workflow: plain}]}", beta, plain).is_valid
