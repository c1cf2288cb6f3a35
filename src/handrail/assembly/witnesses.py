"""The witnesses that a home names, and how far the copies there are.

What a kind of witness does is in storage/witnesses/; checkpoints are copied by engine/proving/witness_courier.py."""

from __future__ import annotations

from pathlib import Path

from handrail.assembly.stores import is_shared
from handrail.engine.proving.witness_courier import CopyState, Witness
from handrail.settings import Settings
from handrail.storage.witnesses.register import WitnessRegister
from handrail.storage.witnesses.targets import witnesses_of


def checkpoint_folder(settings: Settings) -> Path:
    """Where checkpoints are written, and what is known of their copies."""
    return settings.shared_checkpoints if is_shared(settings) else settings.checkpoints


def witnesses_named(settings: Settings) -> tuple[Witness, ...]:
    """The witnesses that HANDRAIL_HOME names; Invalid says what is wrong with one."""
    return witnesses_of(settings.home_tables.get("witnesses", {}), home=settings.home)


async def witness_states(settings: Settings) -> dict[str, CopyState]:
    """How far each configured witness is, by its target."""
    states = await WitnessRegister(checkpoint_folder(settings)).all()
    return {witness.name: states.get(witness.name, CopyState()) for witness in witnesses_named(settings)}
