"""One agent has one name in the journal, whichever form of it was given."""

from __future__ import annotations

import pytest

from handrail.domain.policy.agent_names import agent_actor


@pytest.mark.parametrize("named", ["", "claude", "Claude", "claude-code", "claude_code", "claude code 2"])
def test_forms_of_the_clients_name_are_the_client(named: str) -> None:
    assert agent_actor(named, "agent:claude-code") == "agent:claude-code"


@pytest.mark.parametrize("named", ["reviewer", "claudette", "code", " "])
def test_another_name_is_another_agent(named: str) -> None:
    assert agent_actor(named, "agent:claude-code") == f"agent:{named}"
