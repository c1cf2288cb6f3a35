"""`workflow_next` in all its forms: start, submit, be refused, confirm, resume, share, undo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interfaces.mcp.surface.agent import Place, joined, read, until, write

TWO = {
    "id": "two",
    "name": "Two steps",
    "version": "1.0.0",
    "preconditions": ["main is green"],
    "clarify": ["Which version?"],
    "guidance": ["Be careful."],
    "inputs": {"what": {"type": "string"}, "times": {"type": "integer", "default": 1}},
    "steps": [
        {
            "id": "first",
            "title": "The first",
            "prompt": "Do {{ inputs.what }}.",
            "role": "You are patient.",
            "guidance": ["Slowly."],
            "output": {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}},
            "checks": [{"rule": "tests_pass"}],
            "model": {"tier": "fast", "why": "short, local task"},
        },
        {"id": "second", "prompt": "Then {{ steps.first.output.x }} and {{ default(vars.more, 'nothing') }}."},
    ],
}


def prompts(*names: str, **more: Any) -> dict[str, Any]:
    return {"id": "w", "steps": [{"id": name, "prompt": f"Do {name}.", **more} for name in names]}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_a_start_answers_with_the_first_step_as_the_contract_shows(place: Place) -> None:
    place.workflow(TWO)
    async with place.agent() as agent:
        started = await agent.call("workflow_next", workflow="two", inputs={"what": "it"}, goal="fix #42")
        run = started.pop("run")
        assert run.startswith("run_")
        assert len(run) <= len("run_") + 12
        n, _, head = started.pop("receipt").partition(":")
        assert int(n) == place.events(run)
        assert len(head) == 16
        assert started == {
            "workflow": "two@1.0.0",
            "status": "waiting",
            "progress": {"done": 0, "total": 2},
            "step": {
                "id": "first",
                "title": "The first",
                "kind": "prompt",
                "prompt": "Do it.",
                "role": "You are patient.",
                "guidance": ["Slowly."],
                "output": TWO["steps"][0]["output"],  # type: ignore[index]
                "checks": ["tests_pass"],
                "model_hint": "fast (gemini-flash, gpt-mini, claude-haiku): short, local task",
            },
            "preconditions": ["main is green"],
            "clarify": ["Which version?"],
            "guidance": ["Be careful."],
            "ready": ["first"],
            "waiting_for": [{"kind": "agent", "step": "first"}],
        }


async def test_a_step_is_recorded_as_given_out_when_it_is_and_only_the_first_time(place: Place) -> None:
    place.workflow(prompts("first", "second"))
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        assert place.kinds(run).count("step_handed_out") == 1, "before the agent has done anything"
        again = await agent.call("workflow_next", run=run)
        assert int(again["receipt"].partition(":")[0]) == place.events(run)
        assert place.kinds(run).count("step_handed_out") == 1, "asking again writes nothing"
        await agent.call("workflow_next", run=run, step="first", output="x")
        assert place.kinds(run)[-2:] == ["step_completed", "step_handed_out"]


async def test_the_text_of_an_answer_has_everything_needed_to_do_the_step(place: Place) -> None:
    place.workflow(TWO)
    async with place.agent() as agent:
        words = await agent.said("workflow_next", workflow="two", inputs={"what": "it"})
        for part in ("run_", "first", "Do it.", "You are patient.", "Slowly.", "Be careful.", '"required":["x"]'):
            assert part in words


async def test_invalid_inputs_start_nothing(place: Place) -> None:
    place.workflow(TWO)
    async with place.agent() as agent:
        for inputs in ({}, {"what": 1}, {"what": "it", "wat": 1}):
            refused = await agent.refused("workflow_next", "invalid", workflow="two", inputs=inputs)
            assert refused["findings"][0]["where"].startswith("inputs")
        assert place.events("run_%") == 0


async def test_a_version_or_a_range_can_be_asked_for(place: Place) -> None:
    for version in ("1.0.0", "1.4.0", "2.0.0"):
        place.workflow({**prompts("a"), "version": version}, name=f"w-{version}")
    async with place.agent() as agent:
        for asked, found in (("w", "2.0.0"), ("w@^1", "1.4.0"), ("w@1.0.0", "1.0.0")):
            assert (await agent.call("workflow_next", workflow=asked))["workflow"] == f"w@{found}"
        refused = await agent.refused("workflow_next", "not_found", workflow="w@^7")
        assert "2.0.0" in refused["hint"]


async def test_a_submission_returns_the_next_step_without_the_rules_of_the_run(place: Place) -> None:
    place.workflow(TWO)
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="two", inputs={"what": "it"}))["run"]
        following = await agent.call(
            "workflow_next", run=run, step="first", output={"x": "this"}, vars={"more": "that"}, note="it was easy"
        )
        assert following["accepted"] is True
        assert following["progress"] == {"done": 1, "total": 2}
        assert following["step"]["prompt"] == "Then this and that."
        assert "guidance" not in following
        noted = await agent.call("query_ledger", run=run, kinds=["action_recorded"])
        assert noted["events"][0]["data"]["description"] == "it was easy"


async def test_an_invalid_output_is_refused_with_findings_and_the_tries_are_counted(place: Place) -> None:
    place.workflow(TWO)
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="two", inputs={"what": "it"}))["run"]
        for tries, output in enumerate(({}, {"x": 1}, None, "text"), start=1):
            refused = await agent.call("workflow_next", run=run, step="first", output=output)
            assert (refused["accepted"], refused["tries"]) == (False, tries)
            assert refused["findings"][0].keys() >= {"rule", "severity", "where", "message", "fix"}
            assert refused["findings"][0]["where"].startswith("output")
            assert refused["step"] == {"id": "first", "title": "The first", "kind": "prompt"}
            assert refused["progress"]["done"] == 0
        assert (await agent.call("workflow_next", run=run, step="first", output={"x": "y"}))["accepted"]


async def test_a_check_that_cannot_run_yet_is_reported_and_does_not_count_as_proof(place: Place) -> None:
    place.workflow(TWO)
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="two", inputs={"what": "it"}))["run"]
        accepted = await agent.call("workflow_next", run=run, step="first", output={"x": "y"})
        assert [finding["rule"] for finding in accepted["findings"]] == ["tests_pass"]
        seen = await agent.call("status", run=run, detail="full")
        assert seen["steps"][0]["proof"] == "claimed"


async def test_a_step_that_is_not_ready_is_refused_and_the_next_call_is_named(place: Place) -> None:
    place.workflow(prompts("a", "b"))
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        refused = await agent.refused("workflow_next", "conflict", run=run, step="b", output=1)
        assert refused["message"] == "step 'b' is not ready: it waits for 'a'"
        assert refused["hint"] == "open now: 'a'; do that first"
        repaired = await agent.call(refused["next"]["tool"], **refused["next"]["arguments"])
        assert repaired["step"]["id"] == "a"


async def test_skipped_steps_are_counted_apart_in_the_words_that_the_command_line_has(place: Place) -> None:
    place.workflow(prompts("a", "b", "c"))
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        await agent.call("workflow_next", run=run, step="a", outcome="skipped", note="not needed")
        said = await agent.said("workflow_next", run=run, step="b", output=1)
    assert said.startswith(f"{run} waiting, 1 of 3 steps done, 1 skipped · accepted")


async def test_a_step_that_does_not_exist_is_not_found_with_the_nearest_names(place: Place) -> None:
    place.workflow(prompts("alpha", "beta"))
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        refused = await agent.refused("workflow_next", "not_found", run=run, step="alhpa", output=1)
        assert "alpha" in refused["hint"]


async def test_a_step_that_the_user_must_confirm_is_not_done_without_confirmation(place: Place) -> None:
    place.workflow(prompts("a", confirm=True))
    async with place.agent() as agent:
        started = await agent.call("workflow_next", workflow="w")
        assert started["step"]["confirm"] is True
        events = place.events()
        refused = await agent.call("workflow_next", run=started["run"], step="a", output="out")
        assert refused["accepted"] is False
        assert refused["findings"][0]["where"] == "confirmed"
        said = await agent.said("workflow_next", run=started["run"], step="a", output="out")
        assert "NOT accepted (not confirmed yet: no try)" in said
        assert {"kind": "confirmation", "step": "a"} in refused["waiting_for"]
        assert place.events() == events
        ended = await agent.call("workflow_next", run=started["run"], step="a", output="out", confirmed=True)
        assert (ended["accepted"], ended["status"]) == (True, "completed")
        found = await agent.call("query_ledger", run=started["run"], kinds=["decision_recorded"])
        assert found["events"][0]["data"]["decision"] == "confirmed"


async def test_a_confirmation_can_depend_on_a_condition(place: Place) -> None:
    definition = {**prompts("a", confirm="inputs.big"), "inputs": {"big": {"type": "boolean"}}}
    place.workflow(definition)
    async with place.agent() as agent:
        for big in (True, False):
            run = (await agent.call("workflow_next", workflow="w", inputs={"big": big}))["run"]
            handed = await agent.call("workflow_next", run=run, step="a", output=1)
            assert handed["accepted"] is not big


async def test_a_step_that_failed_waits_for_a_decision_and_can_be_assigned_again(place: Place) -> None:
    place.workflow(prompts("a", "b"))
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        failed = await agent.call("workflow_next", run=run, step="a", outcome="failed", note="no access")
        assert failed["status"] == "waiting"
        assert failed["failure"]["message"] == "no access"
        assert "step" not in failed
        await agent.call("control", run=run, action="retry", step="a", reason="access was given")
        again = await agent.call("workflow_next", run=run)
        assert again["step"]["id"] == "a"
        assert (await agent.call("workflow_next", run=run, step="a", output=1))["step"]["id"] == "b"


async def test_a_step_can_be_skipped_with_a_note(place: Place) -> None:
    place.workflow(prompts("a", "b"))
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        skipped = await agent.call("workflow_next", run=run, step="a", outcome="skipped", note="does not apply")
        assert (skipped["accepted"], skipped["step"]["id"]) == (True, "b")
        found = await agent.call("query_ledger", run=run, kinds=["step_skipped"])
        assert found["events"][0]["data"]["reason"] == "does not apply"


async def test_a_resumed_run_shows_goal_done_decisions_vars_and_the_step(place: Place) -> None:
    place.workflow(TWO)
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="two", inputs={"what": "it"}, goal="fix #42"))["run"]
        await agent.call("workflow_next", run=run, step="first", output={"x": "y"}, vars={"more": "z"})
        await agent.call("record_decision", run=run, decision="go on", reason="all is well")
        resumed = await agent.call("workflow_next", run=run)
        assert resumed["recap"] == {
            "goal": "fix #42",
            "done": ["first"],
            "claimed": ["first"],
            "decisions": ["go on: all is well"],
            "outputs": {"first": '{"x":"y"}'},
            "vars": {"more": "z"},
            "inputs": {"what": "it", "times": 1},
        }
        assert resumed["guidance"] == ["Be careful."]
        assert resumed["step"]["prompt"] == "Then y and z."
        words = await agent.said("workflow_next", run=run)
        assert "fix #42" in words
        assert "go on: all is well" in words


async def test_without_arguments_the_open_runs_are_listed_the_latest_first(place: Place) -> None:
    place.workflow(prompts("a"))
    async with place.agent() as agent:
        runs = [(await agent.call("workflow_next", workflow="w", goal=str(n)))["run"] for n in range(3)]
        await agent.call("workflow_next", run=runs[1], step="a", output=1)
        listed = await agent.call("workflow_next")
        assert [(one["run"], one["goal"]) for one in listed["runs"]] == [(runs[2], "2"), (runs[0], "0")]
        assert listed["total"] == 2
        assert (await agent.call("status"))["runs"] == listed["runs"]


@pytest.mark.parametrize(
    "arguments",
    [{"workflow": "w", "run": "run_x"}, {"step": "a", "output": 1}, {"workflow": "w", "step": "a", "output": 1}],
)
async def test_a_call_that_means_two_things_is_refused(place: Place, arguments: dict[str, Any]) -> None:
    place.workflow(prompts("a"))
    async with place.agent() as agent:
        await agent.refused("workflow_next", "invalid", **arguments)
        assert place.events("run_%") == 0


async def test_two_agents_get_different_steps_and_a_claimed_one_is_not_taken_away(place: Place) -> None:
    place.workflow(prompts("a", "b", after=[]))
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w", agent="ann"))["run"]
        assert (await agent.call("workflow_next", run=run, agent="bob"))["step"]["id"] == "b"
        assert (await agent.call("workflow_next", run=run, agent="ann"))["step"]["id"] == "a"
        assert "step" not in await agent.call("workflow_next", run=run, agent="cat")
        refused = await agent.refused("workflow_next", "conflict", run=run, step="a", output=1, agent="bob")
        assert "assigned to 'ann'" in refused["message"]
        handed = await agent.call("workflow_next", run=run, step="a", output=1, agent="ann")
        assert handed["accepted"]
        ended = await agent.call("workflow_next", run=run, step="b", output=1, agent="bob")
        assert ended["status"] == "completed"
        found = await agent.call("query_ledger", run=run, kinds=["step_completed"])
        assert [event["actor"] for event in found["events"]] == ["agent:ann", "agent:bob"]


async def test_two_clients_on_two_servers_share_a_run(place: Place) -> None:
    place.workflow(prompts("a", "b", after=[]))
    async with place.agent(name="ann") as ann, place.agent(name="bob") as bob:
        run = (await ann.call("workflow_next", workflow="w", agent="ann"))["run"]
        assert (await bob.call("workflow_next", run=run, agent="bob"))["step"]["id"] == "b"
        await ann.call("workflow_next", run=run, step="a", output=1, agent="ann")
        ended = await bob.call("workflow_next", run=run, step="b", output=1, agent="bob")
        assert ended["status"] in {"completed", "running"}
        await ann.until(run, "completed")
        assert place.kinds(run).count("step_completed") == 2


async def test_an_undo_that_only_an_agent_can_do_is_assigned_to_it_as_a_step(place: Place) -> None:
    definition = {
        "id": "w",
        "on_failure": "compensate",
        "steps": [
            {"id": "call", "prompt": "Book it.", "effect": "compensatable", "undo": {"prompt": "Cancel the booking."}},
            write(),
            read(),
        ],
    }
    place.workflow(definition)
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        answer = await agent.call("workflow_next", run=run, step="call", output={"booking": 7})
        assert (answer["status"], answer["step"]["kind"], answer["step"]["id"]) == ("compensating", "undo", "call!undo")
        assert answer["step"]["prompt"] == "Cancel the booking."
        assert answer["step"]["title"].startswith("Undo: ")
        assert not (place.project / "a.txt").exists()
        ended = await agent.call(
            "workflow_next", run=run, step=answer["step"]["id"], output={"cancelled": True}, note="by phone"
        )
        assert (ended["accepted"], ended["status"]) == (True, "compensated")
        steps = {step["id"]: step for step in (await agent.call("status", run=run, detail="full"))["steps"]}
        assert steps["call"]["compensation"] == "by_agent"
        assert steps["w"]["compensation"] == "executed"


async def test_an_undo_that_the_agent_could_not_do_is_a_failed_compensation(place: Place) -> None:
    steps = [{"id": "call", "prompt": "Book it.", "effect": "compensatable", "undo": {"prompt": "Cancel it."}}, read()]
    place.workflow({"id": "w", "on_failure": "compensate", "steps": steps})
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        await agent.call("workflow_next", run=run, step="call", output=1)
        failed = await agent.call("workflow_next", run=run, step="call!undo", outcome="failed", note="nobody answers")
        assert failed["status"] == "compensation_failed"
        assert failed["failure"]["message"] == "nobody answers"


MIXED = {
    "id": "mixed",
    "steps": [
        {"id": "draft", "prompt": "Write it."},
        {"id": "keep", "tool": "file.write", "args": {"path": "out.txt", "text": "{{ steps.draft.output }}"}},
        {"id": "go", "approve": "Publish {{ steps.draft.output }}?"},
        {"id": "tell", "prompt": "Tell them."},
    ],
}


async def test_a_run_that_mixes_agent_tool_and_person_gives_each_their_steps(place: Place) -> None:
    place.workflow(MIXED)
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="mixed"))["run"]
        waits = await agent.call("workflow_next", run=run, step="draft", output="hello")
        assert (place.project / "out.txt").read_text() == "hello"
        assert "step" not in waits
        (asked,) = waits["waiting_for"]
        assert (asked["kind"], asked["step"], asked["text"]) == ("approval", "go", "Publish hello?")
        assert "Publish hello?" in await agent.said("workflow_next", run=run)
        for step in ("keep", "go"):
            await agent.refused("workflow_next", "conflict", run=run, step=step, output=1)


async def test_a_call_does_not_wait_forever_for_long_steps(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.interfaces.mcp.surface.handlers.guide_tools.WAIT_S", 0.2)
    steps = [{"id": "slow", "tool": "wait.for", "args": {"duration": "1h"}}, {"id": "p", "prompt": "Go on."}]
    place.workflow({"id": "w", "steps": steps})
    async with place.agent() as agent:
        started = await agent.call("workflow_next", workflow="w")
        assert started["status"] == "running"
        assert "step" not in started
        assert started["ready"] == [] if "ready" in started else True


async def test_progress_is_reported_while_handrail_does_its_own_steps(place: Place) -> None:
    steps = [{"id": f"s{n}", "tool": "wait.for", "args": {"duration": "60ms"}} for n in range(3)]
    place.workflow({"id": "w", "steps": [*steps, {"id": "p", "prompt": "Go on."}]})
    reported: list[tuple[float, float | None]] = []

    async def progress(done: float, total: float | None, _: str | None) -> None:
        reported.append((done, total))

    async with place.agent() as agent:
        await agent.answer("workflow_next", {"workflow": "w"}, progress_callback=progress)
        assert reported
        assert reported == sorted(reported)
        assert {total for _, total in reported} == {4}


async def test_the_prompt_of_a_loop_names_the_round(place: Place) -> None:
    loop = {"id": "all", "each": "inputs.names", "as": "name", "steps": [{"id": "hi", "prompt": "Greet {{ name }}."}]}
    place.workflow({"id": "w", "inputs": {"names": {"type": "array"}}, "steps": [loop]})
    async with place.agent() as agent:
        answer = await agent.call("workflow_next", workflow="w", inputs={"names": ["ann", "bob"]})
        greeted = []
        while answer["status"] == "waiting":
            greeted.append((answer["step"]["id"], answer["step"]["prompt"]))
            answer = await agent.call("workflow_next", run=answer["run"], step=answer["step"]["id"], output=1)
        assert greeted == [("all[0].hi", "Greet ann."), ("all[1].hi", "Greet bob.")]
        assert answer["status"] == "completed"


async def test_a_submission_for_a_paused_run_says_what_is_legal(place: Place) -> None:
    place.workflow(prompts("a", "b", after=[]))
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        await agent.call("control", run=run, action="pause", reason="lunch")
        paused = await agent.call("workflow_next", run=run)
        assert (paused["status"], paused.get("reason")) == ("paused", "lunch")
        refused = await agent.refused("workflow_next", "conflict", run=run, step="b", output=1)
        assert "paused" in refused["message"]
        ended = await agent.call("workflow_next", run=run, step="a", output=1)
        assert ended["accepted"], "it was given out before, so it may end"
        await agent.call("control", run=run, action="resume", reason="back")
        assert (await agent.call("workflow_next", run=run, step="b", output=1))["status"] == "completed"


async def test_a_run_of_another_process_continues_here(place: Place) -> None:
    place.workflow({"id": "w", "steps": [{"id": "a", "prompt": "A."}, write()]})
    async with place.serving() as server, joined(server, name="one") as one:
        run = (await one.call("workflow_next", workflow="w"))["run"]
    async with place.agent(name="other") as other:
        ended = await other.call("workflow_next", run=run, step="a", output=1)
        assert ended["status"] == "completed"

        async def written() -> bool:
            return (place.project / "a.txt").exists()

        await until(written)


async def test_an_output_without_a_step_is_for_the_only_open_one(place: Place) -> None:
    place.workflow(TWO)
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="two", inputs={"what": "it"}))["run"]
        refused = await agent.call("workflow_next", run=run, output={"y": 1})
        assert (refused["accepted"], refused["step"]["id"]) == (False, "first")
        following = await agent.call("workflow_next", run=run, output={"x": "this"}, vars={"more": "that"})
        assert following["accepted"] is True
        assert following["step"]["prompt"] == "Then this and that."
        assert (await agent.call("workflow_next", run=run, output="done"))["status"] == "completed"


async def test_an_output_without_a_step_is_refused_where_several_are_open_or_none(place: Place) -> None:
    place.workflow(prompts("a", "b", after=[]))
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        before = place.events(run)
        refused = await agent.refused("workflow_next", "conflict", run=run, output=1)
        assert "a, b" in refused["message"]
        assert place.events(run) == before
        await agent.call("workflow_next", run=run, step="b", output=1)
        assert (await agent.call("workflow_next", run=run, output=2))["status"] == "completed"
        assert "no step" in (await agent.refused("workflow_next", "conflict", run=run, output=3))["message"]


async def test_the_repeat_of_a_submission_without_a_step_never_reaches_the_next_one(place: Place) -> None:
    place.workflow(prompts("a", "b"))
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        await agent.call("workflow_next", run=run, output={"ok": True})
        before = place.events(run)
        refused = await agent.refused("workflow_next", "conflict", run=run, output={"ok": True})
        assert "'a'" in refused["message"]
        assert "'b'" in refused["hint"]
        assert refused["next"] == {"tool": "workflow_next", "arguments": {"run": run}}
        assert place.events(run) == before
        assert (await agent.call("workflow_next", run=run, step="b", output={"ok": True}))["status"] == "completed"


@pytest.mark.parametrize(
    "given", [{"outcome": "skipped"}, {"outcome": "failed", "output": 1}, {"note": "x"}, {"vars": {"x": 1}}]
)
async def test_what_needs_its_step_is_refused_without_one_and_nothing_is_dropped(
    place: Place, given: dict[str, Any]
) -> None:
    place.workflow(prompts("a"))
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        before = place.events(run)
        assert "`step`" in (await agent.refused("workflow_next", "invalid", run=run, **given))["hint"]
        assert place.events(run) == before


async def test_a_submission_without_its_run_is_refused_and_starts_nothing(place: Place) -> None:
    place.workflow(prompts("a"))
    async with place.agent() as agent:
        for given in ({"output": 1}, {"step": "a"}, {"outcome": "skipped"}, {"note": "x"}, {"confirmed": True}):
            await agent.refused("workflow_next", "invalid", **given)
            await agent.refused("workflow_next", "invalid", workflow="w", **given)
        assert place.events("run_%") == 0


async def test_a_recap_says_what_was_refused_last_until_it_is_accepted(place: Place) -> None:
    shape = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    place.workflow(prompts("a", "b", output=shape))
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        assert "refused" not in (await agent.call("workflow_next", run=run))["recap"]
        await agent.call("workflow_next", run=run, step="a", output={})
        await agent.call("workflow_next", run=run, step="a", output={"n": "seven"})
        (finding,) = (await agent.call("workflow_next", run=run))["recap"]["refused"]
        assert finding.startswith("output.n: ")
        assert "whole number" in finding
        assert f"refused last: {finding}" in await agent.said("workflow_next", run=run)
        await agent.call("workflow_next", run=run, step="a", output={"n": 7})
        recap = (await agent.call("workflow_next", run=run))["recap"]
        assert "refused" not in recap
        assert recap["outputs"] == {"a": '{"n":7}'}
        assert 'output of a: {"n":7}' in await agent.said("workflow_next", run=run)


async def test_the_outputs_in_a_recap_are_brief(place: Place) -> None:
    names = [f"s{number}" for number in range(15)]
    place.workflow(prompts(*names))
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        for name in names[:-1]:
            await agent.call("workflow_next", run=run, step=name, output=name * 200)
        outputs = (await agent.call("workflow_next", run=run))["recap"]["outputs"]
        assert list(outputs) == names[2:-1]
        assert outputs["s5"] == f"{('s5' * 200)[:200]}… [200 more characters]"


async def test_what_a_person_is_asked_is_shown_whole_with_the_command_that_answers(place: Place) -> None:
    text = "Is this right? " + "It matters a lot. " * 100
    place.workflow({"id": "w", "steps": [{"id": "a", "prompt": "x"}, {"id": "ok", "approve": text}]})
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        for said in (
            await agent.said("workflow_next", run=run, step="a", output=1),
            await agent.said("workflow_next", run=run),
            await agent.said("status", run=run),
        ):
            assert text.strip() in said
            assert f"a person answers with: handrail approve {run} ok" in said
        (listed,) = (await agent.call("status"))["runs"]
        assert listed["waiting_for"][0]["command"] == f"handrail approve {run} ok"
        refused = await agent.refused("control", "forbidden", run=run, action="approve", step="ok", reason="r")
        assert f"`handrail approve {run} ok`" in refused["hint"]


async def test_the_goal_of_a_run_is_its_required_input_goal_unless_another_was_given(place: Place) -> None:
    asked = {"inputs": {"goal": {"type": "string", "minLength": 5}}, "clarify": ["Who uses it?"]}
    place.workflow({**prompts("a"), **asked, "outputs": {"goal": "inputs.goal"}})
    async with place.agent() as agent:
        said = await agent.said("workflow_next", workflow="w", goal="Export as CSV")
        assert "clarify, ask the user before the first step unless you know the answer: Who uses it?" in said
        run = said.split()[0]
        ended = await agent.call("workflow_next", run=run, step="a", output="out")
        assert ended["outputs"] == {"goal": "Export as CSV"}
        other = await agent.call("workflow_next", workflow="w", goal="Another", inputs={"goal": "Export as JSON"})
        ended = await agent.call("workflow_next", run=other["run"], step="a", output="out")
        assert ended["outputs"] == {"goal": "Export as JSON"}
        await agent.refused("workflow_next", "invalid", workflow="w")
