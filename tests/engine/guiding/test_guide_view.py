"""What an agent is answered: the whole next step, its name alone if it was refused, and a recap for who begins anew."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.guided_runs import led
from engine.stage import plan
from handrail.domain.definition.model import Definition
from handrail.domain.journal.event import Outcome
from handrail.domain.run.legal_controls import Action
from handrail.engine.guiding.guide_view import READY_MAX, RECAPPED_MAX, Guided, ReplyContext, guided, recap_of
from virtual_time import in_virtual_time

DEFINITION = plan(
    {"id": "write", "prompt": "write {{ inputs.what }}", "output": {"type": "object"}, "guidance": ["be short"]},
    {"id": "read", "prompt": "read"},
    version="1.2.0",
    preconditions=["a pen"],
    clarify=["for whom?"],
    guidance=["never lie"],
    inputs={"what": {"type": "string"}},
    outputs={"text": "steps.write.output"},
)


def data_of(answer: Guided) -> dict[str, Any]:
    data = msgspec.json.decode(msgspec.json.encode(answer))
    assert isinstance(data, dict)
    return data


def test_the_first_answer_holds_the_whole_step_and_what_to_know_before_it() -> None:
    async def scene() -> dict[str, Any]:
        climb = await led(DEFINITION, {"what": "a poem"})
        return data_of(guided(await climb.next(), now=climb.stage.clock(), about=ReplyContext(is_first=True)))

    data = in_virtual_time(scene)
    receipt = data.pop("receipt")
    assert receipt.startswith("1:")
    assert data.pop("run").startswith("run_")
    assert data == {
        "workflow": "a-plan@1.2.0",
        "status": "waiting",
        "progress": {"done": 0, "total": 2},
        "step": {
            "id": "write",
            "title": "Write",
            "kind": "prompt",
            "prompt": "write a poem",
            "guidance": ["be short"],
            "output": {"type": "object"},
        },
        "preconditions": ["a pen"],
        "clarify": ["for whom?"],
        "guidance": ["never lie"],
        "ready": ["write"],
        "waiting_for": [{"kind": "agent", "step": "write"}],
    }


def test_a_later_answer_repeats_none_of_the_rules() -> None:
    async def scene() -> dict[str, Any]:
        climb = await led(DEFINITION, {"what": "a poem"})
        verdict = await climb.submit("write", {"text": "x"})
        return data_of(
            guided(await climb.next(), now=climb.stage.clock(), about=ReplyContext(verdict=verdict, submitted="write"))
        )

    data = in_virtual_time(scene)
    assert (data["accepted"], data["step"]["id"], data["progress"]["done"]) == (True, "read", 1)
    assert not {"preconditions", "clarify", "guidance", "repeated", "findings", "tries", "recap"} & set(data)


def test_what_was_refused_is_named_in_short_with_its_findings_and_tries() -> None:
    async def scene() -> dict[str, Any]:
        climb = await led(DEFINITION, {"what": "a poem"})
        await climb.submit("write", "text")
        verdict = await climb.submit("write", "text")
        return data_of(
            guided(await climb.next(), now=climb.stage.clock(), about=ReplyContext(verdict=verdict, submitted="write"))
        )

    data = in_virtual_time(scene)
    assert (data["accepted"], data["tries"]) == (False, 2)
    assert data["step"] == {"id": "write", "title": "Write", "kind": "prompt"}
    assert data["findings"][0]["where"] == "output"
    assert data["waiting_for"][0]["kind"] == "agent"


def test_a_submission_that_came_before_says_so() -> None:
    async def scene() -> dict[str, Any]:
        climb = await led(DEFINITION, {"what": "a poem"})
        verdicts = [await climb.submit("write", {}) for _ in range(2)]
        return data_of(
            guided(
                await climb.next(), now=climb.stage.clock(), about=ReplyContext(verdict=verdicts[1], submitted="write")
            )
        )

    data = in_virtual_time(scene)
    assert (data["accepted"], data["repeated"], data["step"]["id"]) == (True, True, "read")


def test_a_person_whose_word_is_missing_is_waited_for_and_not_the_agent() -> None:
    definition = plan({"id": "write", "prompt": "x", "confirm": True}, {"id": "other", "prompt": "y", "after": []})

    async def scene() -> dict[str, Any]:
        climb = await led(definition)
        verdict = await climb.submit("write")
        return data_of(
            guided(await climb.next(), now=climb.stage.clock(), about=ReplyContext(verdict=verdict, submitted="write"))
        )

    data = in_virtual_time(scene)
    assert [(one["kind"], one["step"]) for one in data["waiting_for"]] == [
        ("confirmation", "write"),
        ("agent", "other"),
    ]
    assert (data["accepted"], data["step"]["id"]) == (False, "write")
    assert "tries" not in data


def test_a_recap_tells_goal_done_decisions_vars_and_inputs() -> None:
    async def scene() -> dict[str, Any]:
        climb = await led(DEFINITION, {"what": "a poem"})
        await climb.submit("write", {}, vars={"mood": "good"})
        await climb.submit("read", outcome=Outcome.SKIPPED)
        seen = await climb.next()
        recap = recap_of(seen, ["rhyme: it is nicer"])
        return data_of(guided(seen, now=climb.stage.clock(), about=ReplyContext(recap=recap)))

    data = in_virtual_time(scene)
    assert data["recap"] == {
        "done": ["write", "read (skipped)"],
        "exceptions": [
            {"kind": "skipped_step", "step": "read", "by": "agent:claude", "reason": "the agent skipped it"}
        ],
        "claimed": ["write"],
        "decisions": ["rhyme: it is nicer"],
        "outputs": {"write": "{}"},
        "vars": {"mood": "good"},
        "inputs": {"what": "a poem"},
    }
    assert data["guidance"] == ["never lie"]
    assert not {"preconditions", "clarify", "step", "ready"} & set(data)
    assert (data["status"], data["outputs"]) == ("completed", {"text": {}})


def test_a_recap_names_the_latest_steps_and_an_answer_the_first_ready_ones() -> None:
    many = max(RECAPPED_MAX, READY_MAX) + 5
    steps = [{"id": f"s{number}", "prompt": "x", "after": []} for number in range(many)]
    tools = [{"id": f"t{number}", "tool": "x.do", "after": []} for number in range(many)]

    async def scene(definition: Definition) -> tuple[Guided, tuple[str, ...]]:
        climb = await led(definition)
        await climb.now()
        seen = await climb.next()
        return guided(seen, now=climb.stage.clock()), recap_of(seen, ()).done

    answer, done = in_virtual_time(lambda: scene(plan(*steps, *tools, max_parallel=1)))
    assert answer.ready == tuple(f"s{number}" for number in range(READY_MAX))
    assert len(done) == RECAPPED_MAX
    assert done[-1] == f"t{many - 1}"


def test_a_failure_comes_with_its_ways_out() -> None:
    async def scene() -> dict[str, Any]:
        climb = await led(DEFINITION, {"what": "a poem"})
        verdict = await climb.fail("write", note="no pen")
        return data_of(
            guided(await climb.next(), now=climb.stage.clock(), about=ReplyContext(verdict=verdict, submitted="write"))
        )

    data = in_virtual_time(scene)
    assert (data["accepted"], data["status"]) == (True, "waiting")
    assert data["failure"]["message"] == "no pen"
    assert [option["action"] for option in data["failure"]["options"]] == ["retry", "skip", "cancel"]
    assert "step" not in data


def test_an_undo_is_shown_as_one() -> None:
    definition = plan(
        {"id": "write", "prompt": "x", "effect": "compensatable", "undo": {"prompt": "delete it"}},
        {"id": "read", "prompt": "y"},
    )

    async def scene() -> dict[str, Any]:
        climb = await led(definition)
        await climb.submit("write", "a.txt")
        await climb.act(Action.COMPENSATE)
        return data_of(guided(await climb.next(), now=climb.stage.clock()))

    data = in_virtual_time(scene)
    assert data["step"] == {"id": "write!undo", "title": "Undo: Write", "kind": "undo", "prompt": "delete it"}
    assert (data["status"], data["reason"]) == ("compensating", "so be it")


def test_a_submission_is_answered_also_if_the_next_prompt_cant_be_filled_in() -> None:
    definition = plan({"id": "a", "prompt": "x"}, {"id": "b", "prompt": "Use {{ vars.never.set }}."})

    async def scene() -> Guided:
        climb = await led(definition)
        verdict = await climb.submit("a", 1)
        return guided(await climb.next(), now=0, about=ReplyContext(verdict=verdict, submitted="a"))

    answer = in_virtual_time(scene)
    assert answer.accepted is True
    assert answer.workflow == "", "who submits knows it"
    assert answer.step is not None
    assert answer.step.id == "b"
    assert "can't be filled in" in answer.step.prompt
