"""Who may answer an approval: persons who are asked, by a channel that counts, and nobody by accident."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.domain.policy.answering import CHANNELS, USUAL_CHANNELS, AnswerBy, AnswerRules, AskedOf, may_answer
from handrail.domain.policy.verdict import ALLOWED, Refused

ANN = "person:ann"
TEAM = {"leads": ["ann", "bob"], "nobody": []}


def verdict(actor: str = ANN, channel: str = "terminal", *, rules: dict[str, Any] | None = None, **more: Any) -> Any:
    by = {name: more.pop(name) for name in ("behalf", "is_proven") if name in more}
    return may_answer(
        AnswerBy(actor=actor, channel=channel, **by),
        AskedOf(**{"starter": "agent:claude", **more.pop("asked", {})}),
        AnswerRules(**{"groups": TEAM, **(rules or {})}),
    )


def why(refused: Any) -> str:
    assert isinstance(refused, Refused), refused
    return refused.why


def test_a_person_may_answer_and_an_agent_may_not_unless_it_is_allowed() -> None:
    assert verdict() == ALLOWED
    assert "a person must" in why(verdict("agent:claude", "agent:claude"))
    assert "a person must" in why(verdict("claude"))
    assert verdict("agent:claude", "agent:claude", rules={"agents_may_approve": True}) == ALLOWED


def test_agents_are_not_several_people_whatever_they_call_themselves() -> None:
    for actor in ("agent:claude", "agent:another"):
        refused = verdict(actor, "agent:claude", rules={"agents_may_approve": True}, asked={"approvals": 2})
        assert "2 people must" in why(refused)
    assert verdict(rules={"agents_may_approve": True}, asked={"approvals": 2}) == ALLOWED


@pytest.mark.parametrize("by", [("ann",), ("leads",), ("nobody", "leads"), ()])
def test_those_who_are_named_may_answer(by: tuple[str, ...]) -> None:
    assert verdict(asked={"by": by}) == ALLOWED


@pytest.mark.parametrize("by", [("bob",), ("nobody",), ("managers",), ("Leads",), ("person:ann",)])
def test_everybody_else_is_refused_also_where_nobody_is_known_by_that_name(by: tuple[str, ...]) -> None:
    assert f"this is for {by[0]}" in why(verdict(asked={"by": by}))
    assert "no person or group is known here by that name" in why(verdict(asked={"by": by}))
    assert why(verdict(asked={"by": by}, rules={"groups": {}}))


def test_an_agent_is_nobody_whom_a_step_names_whatever_it_calls_itself() -> None:
    for by in (("ann",), ("leads",)):
        refused = verdict("agent:ann", "agent:ann", behalf=ANN, rules={"agents_may_approve": True}, asked={"by": by})
        assert f"this is for {by[0]}" in why(refused)


def test_who_started_the_run_may_not_answer_if_the_step_says_so() -> None:
    rule = {"not_by": "starter"}
    assert "started this run" in why(verdict(asked={**rule, "starter": ANN}))
    assert "started this run" in why(verdict(asked={**rule, "behalf": ANN}))
    assert verdict("person:bob", asked={**rule, "behalf": ANN}) == ALLOWED
    assert verdict(asked={"starter": ANN}) == ALLOWED
    allowed = {"agents_may_approve": True}
    own = verdict("agent:other", "agent:other", behalf=ANN, rules=allowed, asked={**rule, "behalf": ANN})
    assert "person:ann started this run" in why(own)


def test_a_page_in_an_agents_client_is_the_one_channel_that_has_to_be_named() -> None:
    assert set(CHANNELS) - set(USUAL_CHANNELS) == {"app"}
    assert "an answer by app does not count" in why(verdict(channel="app:claude"))
    agent = verdict("agent:claude", "app:claude", rules={"channels": ("app",)})
    assert "a person must" in why(agent), "the channel does not make an agent a person"


@pytest.mark.parametrize("channel", CHANNELS)
def test_every_usual_channel_counts_unless_some_are_named(channel: str) -> None:
    named = f"{channel}:claude"
    assert (verdict(channel=named) == ALLOWED) is (channel in USUAL_CHANNELS)
    assert verdict(channel=named, rules={"channels": (channel,)}) == ALLOWED
    assert verdict(channel=named, rules={"channels": (named,)}) == ALLOWED
    assert f"an answer by {channel} does not count" in why(verdict(channel=named, rules={"channels": ()}))
    assert why(verdict(channel=f"{channel}:other", rules={"channels": (named,)}))


def test_an_answer_without_a_channel_counts_only_where_all_do() -> None:
    assert verdict(channel="") == ALLOWED
    assert why(verdict(channel="", rules={"channels": ("terminal",)}))


def test_where_a_passphrase_is_required_nothing_else_counts() -> None:
    rules = {"passphrase": True}
    assert "the passphrase is missing" in why(verdict(rules=rules))
    assert "an answer by task:claude does not count" in why(verdict(channel="task:claude", rules=rules))
    assert verdict(rules=rules, is_proven=True) == ALLOWED
    agent = verdict("agent:claude", "agent:claude", rules={**rules, "agents_may_approve": True})
    assert "does not count" in why(agent)


@pytest.mark.parametrize(
    "more",
    [
        {"asked": {"by": ("managers",)}},
        {"rules": {"channels": ()}},
        {"rules": {"passphrase": True}},
        {"rules": {"agents_may_approve": False}},
    ],
)
def test_a_refusal_never_tells_an_agent_which_setting_would_switch_the_guard_off(more: dict[str, Any]) -> None:
    rules = {"agents_may_approve": True, **more.get("rules", {})}
    for actor in ("agent:claude", ANN):
        refused = verdict(actor, "agent:claude", **{**more, "rules": rules})
        if actor == ANN and refused == ALLOWED:
            continue
        told = f"{why(refused)} {refused.who_may}"
        assert not any(word in told for word in ("config", "[groups]", "[approvals]", "agents_may_approve"))


def test_a_person_at_a_terminal_is_told_the_file() -> None:
    refused = verdict(asked={"by": ("managers",)})
    assert "config.toml in HANDRAIL_HOME" in refused.who_may
