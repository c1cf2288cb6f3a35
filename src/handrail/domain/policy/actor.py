"""Actors: who asks for something, by kind.

Pure. An actor's name starts with its kind; events store the whole name."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ActorKind(StrEnum):
    """What kind of actor asks."""

    PERSON = "person"
    AGENT = "agent"
    NODE = "node"
    SYSTEM = "system"


SYSTEM: Final = "handrail"
PERSON_PREFIX: Final = "person:"
AGENT_PREFIX: Final = "agent:"
NODE_PREFIX: Final = "worker:"


def kind_of(actor: str) -> ActorKind:
    """The kind of an actor; one without a known kind has the fewest rights, those of an agent."""
    if actor.startswith(PERSON_PREFIX):
        return ActorKind.PERSON
    if actor == SYSTEM:
        return ActorKind.SYSTEM
    if actor.startswith(NODE_PREFIX):
        return ActorKind.NODE
    return ActorKind.AGENT


def name_of(actor: str) -> str:
    """The name of an actor without its kind: `ann` for `person:ann`."""
    return actor.partition(":")[2] or actor
