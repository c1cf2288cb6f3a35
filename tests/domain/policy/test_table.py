"""The policy table: every command is an act, every act has a row, and a refusal says whom to ask."""

from __future__ import annotations

from typing import get_args

import pytest

from handrail.domain.errors import Forbidden
from handrail.domain.policy.act import IN_CONTEXT, PLAIN, Act
from handrail.domain.policy.actor import ActorKind, kind_of, name_of
from handrail.domain.policy.answering import AnswerRules
from handrail.domain.policy.table import HOW_A_PERSON, TABLE, OwnerPolicy, Right, may
from handrail.domain.policy.verdict import ALLOWED, Allowed, Refused, require_allowed
from handrail.domain.run.command import Command

AGENT, PERSON, ENGINE, WORKER = "agent:claude", "person:ann", "handrail", "worker:w-1"
GATES = {Act.OVERRIDE, Act.ANSWER, Act.SKIP_CHECKS, Act.SKIP_RESERVED, Act.SKIP_UNSKIPPABLE, Act.ACCEPT_CHECKS}


def test_every_command_is_an_act_and_means_one_thing() -> None:
    assert PLAIN.keys() | IN_CONTEXT.keys() == set(get_args(Command))
    assert not PLAIN.keys() & IN_CONTEXT.keys()


def test_every_act_has_a_row_and_every_refusal_says_what_to_do_instead() -> None:
    assert TABLE.keys() == set(Act)
    refusable = {act for act, row in TABLE.items() if row.agent is not Right.YES}
    assert refusable <= HOW_A_PERSON.keys()
    assert all(TABLE[act].why for act in refusable)


@pytest.mark.parametrize("act", sorted(GATES))
def test_no_agent_and_no_worker_goes_past_a_gate(act: Act) -> None:
    for actor in (AGENT, ENGINE, WORKER, "somebody", "", "Person:ann", "agent:person:ann"):
        assert isinstance(may(actor, act), Refused), actor


@pytest.mark.parametrize("act", sorted(GATES - {Act.SKIP_UNSKIPPABLE}))
def test_a_person_may_go_past_a_gate(act: Act) -> None:
    assert may(PERSON, act) is ALLOWED


def test_what_nobody_may_skip_not_even_a_person_skips() -> None:
    assert isinstance(may(PERSON, Act.SKIP_UNSKIPPABLE), Refused)


def test_the_owner_may_let_agents_skip_checks_but_never_approvals() -> None:
    lenient = OwnerPolicy(agents_may_skip_checks=True)
    allowed = {act for act in GATES if isinstance(may(AGENT, act, lenient), Allowed)}
    assert allowed == {Act.SKIP_CHECKS, Act.ACCEPT_CHECKS}


def test_the_owner_may_let_agents_approve_and_nothing_else() -> None:
    lenient = OwnerPolicy(answers=AnswerRules(agents_may_approve=True))
    assert {act for act in GATES if isinstance(may(AGENT, act, lenient), Allowed)} == {Act.ANSWER}


@pytest.mark.parametrize("actor", [AGENT, PERSON])
def test_only_handrail_executes(actor: str) -> None:
    assert isinstance(may(actor, Act.EXECUTE), Refused)
    assert may(ENGINE, Act.EXECUTE) is may(WORKER, Act.EXECUTE) is ALLOWED


def test_a_refusal_names_no_setting() -> None:
    for act in Act:
        verdict = may(AGENT, act)
        said = f"{verdict.why} {verdict.who_may}" if isinstance(verdict, Refused) else ""
        assert not any(word in said for word in ("config", "agents_may", "toml", "[policy]")), act


def test_a_refusal_becomes_forbidden_with_its_way_out() -> None:
    with pytest.raises(Forbidden, match="an agent may not skip an approval: it is an approval") as refused:
        require_allowed(may(AGENT, Act.OVERRIDE))
    assert "handrail approve" in refused.value.hint


@pytest.mark.parametrize(
    ("actor", "kind"),
    [
        (PERSON, ActorKind.PERSON),
        (AGENT, ActorKind.AGENT),
        (ENGINE, ActorKind.SYSTEM),
        (WORKER, ActorKind.NODE),
        ("handrail:x", ActorKind.AGENT),
        ("ann", ActorKind.AGENT),
    ],
)
def test_an_actor_without_a_known_kind_has_the_fewest_rights(actor: str, kind: ActorKind) -> None:
    assert kind_of(actor) is kind


def test_the_name_of_an_actor() -> None:
    assert (name_of(PERSON), name_of("handrail")) == ("ann", "handrail")
