"""Approvals are for what was seen: the question, what it pins, and when it is asked again."""

from __future__ import annotations

from typing import Any

import pytest

from domain.facts import RUN, after, entries, fresh
from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Category, Definition, Effect
from handrail.domain.errors import Conflict
from handrail.domain.journal.event import (
    ApprovalExpired,
    ApprovalGiven,
    ApprovalRequested,
    ApprovalWithdrawn,
    EffectAhead,
    Event,
)
from handrail.domain.run.approval import ASKED_MAX, EFFECTS_MAX, question_of
from handrail.domain.run.command import (
    Command,
    CompleteStep,
    ExpireApproval,
    FailAttempt,
    GiveApproval,
    HandOutStep,
    OpenStep,
    RequestApproval,
    RetryStep,
    SetVars,
    StartAttempt,
    StartRun,
)
from handrail.domain.run.decide import decide
from handrail.domain.run.state import Run, replay
from handrail.domain.run.status import StepStatus
from handrail.domain.secrets.redaction import REDACTED

PUBLISH = {
    "id": "publish",
    "tool": "ci.publish",
    "args": {"version": "{{ vars.version }}", "by": "{{ steps.tag.output }}"},
    "effect": "irreversible",
}
TAG = {"id": "tag", "tool": "git.tag", "args": {"name": "v{{ vars.version }}"}, "undo": {"tool": "git.untag"}}
GATE = definition_from({"id": "gate", "steps": [{"id": "go", "approve": "Publish {{ vars.version }}?"}, TAG, PUBLISH]})


def begun(definition: Definition = GATE, **variables: Any) -> Run:
    start = StartRun(definition="sha256:0", workflow=definition.id, vars=variables or {"version": "1.0"})
    return after(Run(id=RUN), [start], definition)


def asked(definition: Definition = GATE, **variables: Any) -> Run:
    return after(begun(definition, **variables), [RequestApproval(step="go")], definition)


def approved(run: Run, definition: Definition = GATE, step: str = "go", who: str = "") -> Run:
    return after(run, [yes(run, step, who=who)], definition)


def yes(run: Run, step: str = "go", *, who: str = "") -> GiveApproval:
    return GiveApproval(step=step, digest=run.step(step).digest, reason="ok", who=who)


def done(step: str, output: Any = None) -> list[Any]:
    return [StartAttempt(step=step), CompleteStep(step=step, output=output)]


def last_request(run: Run, definition: Definition, step: str = "go") -> ApprovalRequested:
    (event,) = decide(run, RequestApproval(step=step), definition)
    assert isinstance(event, ApprovalRequested)
    return event


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


# --- what is shown ------------------------------------------------------------------------------------------


def test_a_person_sees_the_steps_that_follow_with_what_is_known_of_their_arguments() -> None:
    request = last_request(begun(), GATE)
    assert request.text == "Publish 1.0?"
    assert request.effects == (
        EffectAhead(
            step="tag",
            title="Tag",
            tool="git.tag",
            effect=Effect.COMPENSATABLE,
            has_undo=True,
            args='{"name":"v1.0"}',
        ),
        EffectAhead(
            step="publish",
            title="Publish",
            tool="ci.publish",
            effect=Effect.IRREVERSIBLE,
            args='{"version":"1.0","by":"{{ steps.tag.output }}"}',
        ),
    )


def test_what_comes_after_the_next_approval_is_not_part_of_this_one() -> None:
    definition = definition_from(
        {"id": "d", "steps": [{"id": "go", "approve": "?"}, TAG, {"id": "more", "approve": "?"}, PUBLISH]}
    )
    assert [one.step for one in last_request(begun(definition), definition).effects] == ["tag"]


def test_an_approval_that_may_be_skipped_does_not_hide_what_follows_it() -> None:
    more = {"id": "more", "approve": "?", "when": "vars.version == '2.0'"}
    definition = definition_from({"id": "d", "steps": [{"id": "go", "approve": "?"}, TAG, more, PUBLISH]})
    assert [one.step for one in last_request(begun(definition), definition).effects] == ["tag", "publish"]


def test_steps_that_do_not_depend_on_the_approval_are_not_shown() -> None:
    definition = definition_from({"id": "d", "steps": [{"id": "go", "approve": "?"}, {**TAG, "after": []}]})
    assert last_request(begun(definition), definition).effects == ()


def test_steps_in_loops_and_inlined_workflows_are_shown_and_the_inputs_of_the_call_are_filled_in() -> None:
    tell = {"id": "tell", "version": "1.0.0", "steps": [{"id": "post", "tool": "x.post"}]}
    post = {"text": "{{ inputs.text }}", "to": "{{ inputs.to }}", "list": ["{{ inputs.text }}!", 3]}
    tell["steps"] = [{"id": "post", "tool": "x.post", "args": post}]
    loop = {
        "id": "build",
        "each": "inputs.targets",
        "as": "target",
        "steps": [{"id": "make", "tool": "ci.make", "args": {"os": "{{ target }}", "n": "{{ index }}"}}],
    }
    call = {"id": "say", "workflow": "tell@1.0.0", "with": {"text": "{{ vars.version }} is out", "to": "{{ vars.to }}"}}
    definition = definition_from(
        {"id": "d", "steps": [{"id": "go", "approve": "?"}, loop, call], "pinned": {"tell@1.0.0": tell}}
    )
    shown = {one.step: one.args for one in last_request(begun(definition), definition).effects}
    assert shown == {
        "build.make": '{"os":"{{ target }}","n":"{{ index }}"}',
        "say.post": '{"text":"1.0 is out","to":"{{ inputs.to }}","list":["1.0 is out!",3]}',
    }


def test_an_approval_in_an_inlined_workflow_shows_what_follows_the_workflow() -> None:
    ask = {"id": "ask", "version": "1.0.0", "steps": [{"id": "go", "approve": "Go?"}]}
    definition = definition_from(
        {
            "id": "d",
            "steps": [{"id": "sure", "workflow": "ask@1.0.0"}, PUBLISH],
            "pinned": {"ask@1.0.0": ask},
        }
    )
    run = after(begun(definition), [OpenStep(step="sure", values={})], definition)
    assert [one.step for one in last_request(run, definition, "sure.go").effects] == ["publish"]


def test_a_round_of_a_loop_knows_its_item_and_shows_the_rest_of_the_round() -> None:
    body = [{"id": "go", "approve": "{{ item }}?"}, {"id": "do", "tool": "x.do", "args": {"a": "{{ item }}"}}]
    definition = definition_from({"id": "d", "steps": [{"id": "l", "each": "inputs.x", "steps": body}, TAG]})
    run = after(begun(definition), [OpenStep(step="l", rounds=2, values=["p", "q"])], definition)
    request = last_request(run, definition, "l[1].go")
    assert request.text == "q?"
    assert [(one.step, one.args) for one in request.effects] == [("l[1].do", '{"a":"q"}'), ("tag", '{"name":"v1.0"}')]


def test_many_effects_are_counted_and_long_arguments_are_cut_but_the_digest_covers_all() -> None:
    many = [{"id": f"s{n}", "tool": "x.do", "args": {"n": n, "v": "{{ vars.long }}"}} for n in range(EFFECTS_MAX + 3)]
    definition = definition_from({"id": "d", "steps": [{"id": "go", "approve": "?"}, *many]})
    run = begun(definition, long="x" * 2_000)
    request = last_request(run, definition)
    assert (len(request.effects), request.unshown) == (EFFECTS_MAX, 3)
    assert all(len(one.args) <= 500 and one.args.endswith("…") for one in request.effects)
    other = begun(definition, long="x" * 1_999 + "y")
    assert last_request(other, definition).effects == request.effects
    assert last_request(other, definition).digest != request.digest


def test_a_secret_that_is_no_longer_known_is_shown_as_its_template() -> None:
    use = {"id": "a", "tool": "x.y", "args": {"key": "Bearer {{ vars.key }}"}}
    definition = definition_from({"id": "d", "steps": [{"id": "go", "approve": "?"}, use]})
    (effect,) = last_request(begun(definition, key=REDACTED), definition).effects
    assert effect.args == '{"key":"Bearer {{ vars.key }}"}'
    (effect,) = last_request(begun(definition, key="x"), definition).effects
    assert effect.args == '{"key":"Bearer x"}'


@pytest.mark.parametrize(
    "change",
    ["run", "definition", "asked", "text", "value", "args"],
)
def test_the_digest_covers_everything(change: str) -> None:
    run = begun()
    base = question_of(run, GATE, "go", asked=1).digest
    match change:
        case "run":
            twin = Run(id="run_other234", vars=run.vars, definition=run.definition)
            other = question_of(twin, GATE, "go", asked=1)
        case "definition":
            other = question_of(replay([], Run(id=RUN, vars=run.vars, definition="sha256:1")), GATE, "go", asked=1)
        case "asked":
            other = question_of(run, GATE, "go", asked=2)
        case "text":
            steps = [{"id": "go", "approve": "Really {{ vars.version }}?"}, TAG, PUBLISH]
            gate = definition_from({"id": "gate", "steps": steps})
            other = question_of(run, gate, "go", asked=1)
        case "value":  # also one that changes no letter of the text
            gate = definition_from({"id": "gate", "steps": [{"id": "go", "approve": "{{ vars.v | upper }}"}]})
            base = question_of(begun(gate, v="a"), gate, "go", asked=1).digest
            other = question_of(begun(gate, v="A"), gate, "go", asked=1)
        case _:
            args = {**TAG, "args": {"name": "x"}}
            gate = definition_from({"id": "gate", "steps": [{"id": "go", "approve": "Publish 1.0?"}, args, PUBLISH]})
            other = question_of(run, gate, "go", asked=1)
    assert other.digest != base


# --- what is pinned -----------------------------------------------------------------------------------------


def test_a_changed_value_withdraws_a_waiting_approval_and_the_old_digest_is_a_conflict() -> None:
    run = asked()
    old = run.step("go").digest
    events = decide(run, SetVars(vars={"version": "6.66"}), GATE)
    assert events[1:] == [ApprovalWithdrawn(step="go", digest=old, changed=("vars.version",))]
    again = after(run, [SetVars(vars={"version": "6.66"}), RequestApproval(step="go")], GATE)
    assert again.step("go").status is StepStatus.WAITING
    assert again.step("go").digest != old
    with pytest.raises(Conflict, match="has changed since you looked"):
        decide(again, GiveApproval(step="go", digest=old, reason="ok"), GATE)
    assert approved(again).step("go").status is StepStatus.COMPLETED


def test_only_an_approval_that_was_given_holds_others_when_it_is_withdrawn() -> None:
    waiting = after(asked(), [SetVars(vars={"version": "2"})], GATE)
    assert (waiting.step("go").status, waiting.step("go").withdrawn) == (StepStatus.READY, False)
    given = after(approved(asked()), [SetVars(vars={"version": "2"})], GATE)
    assert given.step("go").withdrawn
    again = after(given, [RequestApproval(step="go"), SetVars(vars={"version": "3"})], GATE)
    assert again.step("go").withdrawn, "until it is given again"


def test_a_changed_value_withdraws_an_approval_that_was_given_and_holds_what_has_not_started() -> None:
    run = after(approved(asked()), done("tag", "v1.0"), GATE)
    changed = after(run, [SetVars(vars={"version": "6.66"})], GATE)
    assert changed.step("go").status is StepStatus.READY
    with pytest.raises(Conflict, match="was withdrawn"):
        decide(changed, StartAttempt(step="publish"), GATE)
    again = after(changed, [RequestApproval(step="go")], GATE)
    with pytest.raises(Conflict, match="was withdrawn"):
        decide(again, StartAttempt(step="publish"), GATE)
    assert decide(approved(again), StartAttempt(step="publish"), GATE)


def test_a_failed_step_is_not_tried_again_with_other_values_than_were_approved() -> None:
    definition = definition_from({"id": "d", "steps": [{"id": "go", "approve": "?"}, {**TAG, "on_failure": "ask"}]})
    failed: list[Command] = [
        StartAttempt(step="tag"),
        FailAttempt(step="tag", category=Category.PERMISSION, message="no"),
    ]
    run = after(approved(asked(definition), definition), failed, definition)
    changed = after(run, [SetVars(vars={"version": "6.66"}), RetryStep(step="tag", reason="again")], definition)
    with pytest.raises(Conflict, match="was withdrawn"):
        decide(changed, StartAttempt(step="tag"), definition)


def test_nothing_is_asked_again_once_every_step_has_had_its_values() -> None:
    run = after(approved(asked()), [*done("tag", "v1.0"), *done("publish")], GATE)
    assert kinds(decide(run, SetVars(vars={"version": "6.66"}), GATE)) == ["VarsSet"]


def test_a_value_that_only_a_finished_step_used_does_not_matter_any_more() -> None:
    definition = definition_from({"id": "d", "steps": [{"id": "go", "approve": "?"}, TAG, {"id": "b", "tool": "x.y"}]})
    run = after(approved(asked(definition), definition), done("tag"), definition)
    assert kinds(decide(run, SetVars(vars={"version": "2"}), definition)) == ["VarsSet"]


def test_values_that_were_not_used_or_did_not_change_withdraw_nothing() -> None:
    run = approved(asked())
    assert kinds(decide(run, SetVars(vars={"other": 1}), GATE)) == ["VarsSet"]
    assert kinds(decide(run, SetVars(vars={"version": "1.0"}), GATE)) == ["VarsSet"]


def test_a_variable_that_is_set_later_withdraws_what_was_asked_without_it() -> None:
    definition = definition_from({"id": "d", "steps": [{"id": "go", "approve": "Publish?"}, TAG]})
    run = approved(asked(definition, nothing=1), definition)
    assert kinds(decide(run, SetVars(vars={"version": "1"}), definition)) == ["VarsSet", "ApprovalWithdrawn"]


def test_the_result_of_a_step_beside_the_approval_withdraws_it_and_that_of_a_step_after_it_does_not() -> None:
    definition = definition_from(
        {
            "id": "d",
            "steps": [
                {"id": "go", "approve": "Run it?"},
                {"id": "plan", "prompt": "Which command?", "after": []},
                {"id": "made", "tool": "x.make", "after": ["go"]},
                {
                    "id": "run",
                    "tool": "shell.run",
                    "args": {"command": "{{ steps.plan.output }}", "of": "{{ steps.made.output }}"},
                    "after": ["go", "plan", "made"],
                },
            ],
        }
    )
    run = approved(asked(definition), definition)
    made = after(run, done("made", 7), definition)
    assert made.step("go").status is StepStatus.COMPLETED
    events = decide(
        after(made, [HandOutStep(step="plan")], definition), CompleteStep(step="plan", output="rm"), definition
    )
    assert kinds(events) == ["StepCompleted", "ApprovalWithdrawn"]


def test_the_end_of_a_loop_or_workflow_that_contains_the_approval_is_no_change() -> None:
    loop = {"id": "l", "each": "inputs.x", "steps": [{"id": "go", "approve": "?"}]}
    tell = {"id": "tell", "tool": "x.y", "when": "steps.l.status == 'completed'"}
    definition = definition_from({"id": "d", "steps": [loop, tell]})
    asking: list[Command] = [OpenStep(step="l", rounds=1, values=["p"]), RequestApproval(step="l[0].go")]
    run = approved(after(begun(definition), asking, definition), definition, "l[0].go")
    assert kinds(decide(run, CompleteStep(step="l"), definition)) == ["StepCompleted"]


def test_a_step_beyond_the_next_approval_is_no_change_either() -> None:
    late = "{{ steps.late.output | default('none') }}"
    steps = [{"id": "go", "approve": "?"}, {"id": "more", "approve": "?"}, {"id": "late", "tool": "x.y"}]
    use = {"id": "use", "tool": "x.z", "args": {"v": late}, "after": ["go"]}
    definition = definition_from({"id": "d", "steps": [*steps, use]})
    run = approved(asked(definition), definition)
    run = approved(after(run, [RequestApproval(step="more")], definition), definition, "more")
    assert kinds(after_events(run, done("late", 1), definition)) == ["AttemptStarted", "StepCompleted"]


def after_events(run: Run, commands: list[Command], definition: Definition) -> list[Event]:
    events: list[Event] = []
    for command in commands:
        events += decide(run, command, definition)
        run = after(run, [command], definition)
    return events


def test_a_changed_list_or_input_of_what_follows_withdraws_it_too() -> None:
    loop = {"id": "l", "each": "vars.targets", "steps": [{"id": "a", "tool": "x.y"}]}
    definition = definition_from({"id": "d", "steps": [{"id": "go", "approve": "?"}, loop]})
    run = approved(asked(definition, targets=[1]), definition)
    events = decide(run, SetVars(vars={"targets": [1, 2]}), definition)
    assert events[1:] == [ApprovalWithdrawn(step="go", digest=run.step("go").digest, changed=("vars.targets",))]
    tell = {"id": "t", "version": "1.0.0", "steps": [{"id": "p", "tool": "x.post"}]}
    call = {"id": "say", "workflow": "t@1.0.0", "with": {"text": "{{ vars.text }}"}, "when": "vars.loud"}
    steps = [{"id": "go", "approve": "?"}, call]
    definition = definition_from({"id": "d", "steps": steps, "pinned": {"t@1.0.0": tell}})
    run = approved(asked(definition, text="a", loud=False), definition)
    assert kinds(decide(run, SetVars(vars={"text": "b"}), definition))[1:] == ["ApprovalWithdrawn"]
    assert kinds(decide(run, SetVars(vars={"loud": True}), definition))[1:] == ["ApprovalWithdrawn"]


def test_steps_inside_a_loop_that_has_started_are_held_too() -> None:
    loop = {"id": "l", "each": "[1, 2]", "steps": [{"id": "a", "tool": "x.y", "args": {"v": "{{ vars.version }}"}}]}
    definition = definition_from({"id": "d", "steps": [{"id": "go", "approve": "?"}, loop]})
    run = after(approved(asked(definition), definition), [OpenStep(step="l", rounds=2, values=[1, 2])], definition)
    assert decide(run, StartAttempt(step="l[0].a"), definition)
    changed = after(run, [SetVars(vars={"version": "2"})], definition)
    with pytest.raises(Conflict, match="was withdrawn"):
        decide(changed, StartAttempt(step="l[0].a"), definition)


def test_an_approval_in_a_workflow_that_is_over_is_asked_again_and_holds_what_follows() -> None:
    ask = {"id": "ask", "version": "1.0.0", "steps": [{"id": "go", "approve": "Go?"}]}
    steps = [{"id": "sure", "workflow": "ask@1.0.0"}, PUBLISH]
    definition = definition_from({"id": "d", "steps": steps, "pinned": {"ask@1.0.0": ask}})
    opened: list[Command] = [OpenStep(step="sure", values={}), RequestApproval(step="sure.go")]
    run = approved(after(begun(definition), opened, definition), definition, "sure.go")
    run = after(run, [CompleteStep(step="sure"), SetVars(vars={"version": "2"})], definition)
    with pytest.raises(Conflict, match="was withdrawn"):
        decide(run, StartAttempt(step="publish"), definition)
    run = approved(after(run, [RequestApproval(step="sure.go")], definition), definition, "sure.go")
    assert decide(run, StartAttempt(step="publish"), definition)


def test_a_text_that_can_no_longer_be_rendered_withdraws_the_approval() -> None:
    definition = definition_from({"id": "d", "steps": [{"id": "go", "approve": "{{ vars.a | upper }}?"}, TAG]})
    run = approved(asked(definition, a="x"), definition)
    assert kinds(decide(run, SetVars(vars={"a": [1]}), definition))[1:] == ["ApprovalWithdrawn"]


# --- time, and how many -------------------------------------------------------------------------------------


def test_an_expired_approval_is_asked_again_with_a_new_digest_ten_times_at_most() -> None:
    run = after(begun(), [RequestApproval(step="go", expires=5)], GATE)
    digests = {run.step("go").digest}
    for _ in range(ASKED_MAX - 1):
        assert decide(run, ExpireApproval(step="go"), GATE) == [ApprovalExpired(step="go", again=True)]
        run = after(run, [ExpireApproval(step="go"), RequestApproval(step="go", expires=5)], GATE)
        digests.add(run.step("go").digest)
    assert len(digests) == ASKED_MAX
    assert decide(run, ExpireApproval(step="go"), GATE) == [ApprovalExpired(step="go")]
    late = after(run, [ExpireApproval(step="go")], GATE)
    assert (late.step("go").category, late.step("go").message) == (Category.TIMEOUT, "nobody answered in time")
    again = after(late, [RetryStep(step="go", reason="they are back"), RequestApproval(step="go", expires=5)], GATE)
    assert decide(again, ExpireApproval(step="go"), GATE) == [ApprovalExpired(step="go", again=True)]


def test_two_approvals_come_from_two_people_and_are_for_the_same_digest() -> None:
    definition = definition_from({"id": "d", "steps": [{"id": "go", "approve": "?", "approvals": 2}, TAG]})
    run = asked(definition)
    assert decide(run, yes(run, who="person:ann"), definition) == [
        ApprovalGiven(step="go", digest=run.step("go").digest, reason="ok", missing=1)
    ]
    half = by(run, "person:ann", definition)
    assert (half.step("go").status, half.step("go").approvers) == (StepStatus.WAITING, ("person:ann",))
    with pytest.raises(Conflict, match="has approved step 'go' already"):
        decide(half, yes(half, who="person:ann"), definition)
    assert by(half, "person:bob", definition).step("go").status is StepStatus.COMPLETED
    changed = after(half, [SetVars(vars={"version": "2"}), RequestApproval(step="go")], definition)
    assert changed.step("go").approvers == ()


def by(run: Run, actor: str, definition: Definition) -> Run:
    events = decide(run, yes(run, who=actor), definition)
    return replay(entries(events, after=run.n, actor=actor), run)


def test_only_an_approval_step_is_asked_about() -> None:
    with pytest.raises(Conflict, match="is not an approval"):
        decide(fresh(GATE), RequestApproval(step="tag"), definition_from({"id": "d", "steps": [TAG]}))
