"""One name for one agent: what an agent calls itself and what its client is called are often two forms of one name.

Pure. `claude` in the client `claude-code` is one agent; `reviewer` in the same client is another."""

from __future__ import annotations

import re

from handrail.domain.policy.actor import AGENT_PREFIX, name_of

_apart = re.compile(r"[\s._-]+")


def agent_actor(named: str, client: str) -> str:
    """The actor of a call in which an agent named itself, by a client with this actor name."""
    return client if not named or is_same_agent(named, name_of(client)) else f"{AGENT_PREFIX}{named}"


def is_same_agent(named: str, client: str) -> bool:
    """Whether one name is the beginning of the other, word by word, whatever the case."""
    one, other = (_apart.split(name.strip().lower()) for name in (named, client))
    shorter = min(len(one), len(other))
    return bool(named.strip()) and one[:shorter] == other[:shorter]
