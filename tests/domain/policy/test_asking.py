"""Asking the policy about an answer or an override: what the step asks for and what the owner allows both count."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec.structs import replace

from domain.facts import RUN, after
from handrail.domain.definition.authoring import definition_from
from handrail.domain.policy.answering import AnswerRules
from handrail.domain.policy.asking import may_command
from handrail.domain.policy.table import OwnerPolicy
from handrail.domain.policy.verdict import ALLOWED, PolicyVerdict, Refused
from handrail.domain.run.command import GiveApproval, RejectApproval, RequestApproval, SkipStep, StartRun
from handrail.domain.run.state import Run

ANN = "person:ann"
AT_TERMINAL = OwnerPolicy(answers=AnswerRules(channels=("terminal",)))


def asked(
    command: str, *, policy: OwnerPolicy, channel: str = "", actor: str = ANN, is_proven: bool = False, **step: Any
) -> PolicyVerdict:
    definition = definition_from({"id": "d", "steps": [{"id": "go", "approve": "?", **step}]})
    start = StartRun(definition="sha256:0", workflow="d", vars={}, behalf=ANN)
    run = after(Run(id=RUN), [start, RequestApproval(step="go")], definition)
    if command == "skip":
        skip = SkipStep(step="go", reason="x", channel=channel, is_proven=is_proven)
        return may_command(actor, run, definition, skip, policy)
    kind = GiveApproval if command == "approve" else RejectApproval
    answer = kind(step="go", digest=run.step("go").digest, reason="x", channel=channel, is_proven=is_proven)
    return may_command(actor, run, definition, answer, policy)


@pytest.mark.parametrize("command", ["approve", "reject"])
def test_an_answer_is_of_those_whom_the_step_asks(command: str) -> None:
    policy = OwnerPolicy(answers=AnswerRules(groups={"leads": ["ann"]}))
    assert asked(command, policy=policy, by=["leads"]) == ALLOWED
    refused = asked(command, policy=policy, by=["bob"])
    assert isinstance(refused, Refused)
    assert "this is for bob" in refused.why


@pytest.mark.parametrize("command", ["approve", "reject"])
def test_an_answer_is_not_of_who_had_the_run_started_if_the_step_says_so(command: str) -> None:
    assert asked(command, policy=OwnerPolicy()) == ALLOWED
    refused = asked(command, policy=OwnerPolicy(), not_by="starter")
    assert isinstance(refused, Refused)
    assert "started this run" in refused.why


@pytest.mark.parametrize("command", ["approve", "reject", "skip"])
def test_an_answer_and_an_override_come_by_a_channel_that_counts(command: str) -> None:
    assert asked(command, policy=AT_TERMINAL, channel="terminal") == ALLOWED
    for channel in ("command", "agent:claude", ""):
        refused = asked(command, policy=AT_TERMINAL, channel=channel)
        assert isinstance(refused, Refused)
        assert "does not count here" in refused.why


@pytest.mark.parametrize("command", ["approve", "reject", "skip"])
def test_an_answer_and_an_override_need_the_passphrase_also_by_commands_that_no_one_asked_for_it(command: str) -> None:
    policy = OwnerPolicy(answers=AnswerRules(passphrase=True))
    assert asked(command, policy=policy, channel="terminal", is_proven=True) == ALLOWED
    refused = asked(command, policy=policy, channel="terminal")
    assert isinstance(refused, Refused)
    assert "need a passphrase" in refused.why


def test_an_override_is_of_those_who_may_answer() -> None:
    policy = OwnerPolicy(answers=AnswerRules(groups={"leads": ["ann"]}))
    assert asked("skip", policy=policy, by=["leads"]) == ALLOWED
    refused = asked("skip", policy=policy, by=["bob"])
    assert isinstance(refused, Refused)
    assert refused.why.startswith("person:ann may not skip this approval: this is for bob")


def test_an_override_is_not_of_who_had_the_run_started_if_the_step_says_so() -> None:
    assert asked("skip", policy=OwnerPolicy()) == ALLOWED
    assert asked("skip", policy=OwnerPolicy(), not_by="starter", actor="person:bob") == ALLOWED
    refused = asked("skip", policy=OwnerPolicy(), not_by="starter")
    assert isinstance(refused, Refused)
    assert refused.why == "person:ann started this run, and may not skip this approval"


def test_one_person_is_enough_for_an_override_where_two_are_asked() -> None:
    assert asked("skip", policy=OwnerPolicy(), approvals=2) == ALLOWED


INSIDE: Final = {"id": "go", "approve": "?", "by": ["bob"]}
LOOP: Final = {"each": [1, 2], "as": "one", "steps": [{"id": "p", "prompt": "work"}, INSIDE]}
AROUND: Final[dict[str, dict[str, Any]]] = {
    "a loop": LOOP,
    "a loop in a loop": {"each": [1], "as": "two", "steps": [{"id": "in", **LOOP}]},
    "a workflow": {"workflow": "called@1.0.0"},
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("actor", "is_allowed"), [(ANN, False), ("person:bob", True)])
def test_skipping_what_contains_an_approval_takes_what_the_approval_takes(
    around: str, actor: str, *, is_allowed: bool
) -> None:
    called = definition_from({"id": "called", "steps": [{"id": "loop", **LOOP}]})
    definition = definition_from({"id": "d", "steps": [{"id": "out", **AROUND[around]}]})
    definition = replace(definition, pinned={"called@1.0.0": called})
    run = after(Run(id=RUN), [StartRun(definition="sha256:0", workflow="d", vars={})], definition)
    verdict = may_command(actor, run, definition, SkipStep(step="out", reason="x"), OwnerPolicy())
    assert (verdict == ALLOWED) is is_allowed
