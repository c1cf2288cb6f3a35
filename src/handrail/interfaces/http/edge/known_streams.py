"""Runs that a filter names: one that is not there is refused, because its answer would look like an empty one."""

from __future__ import annotations

from typing import Final

from handrail.assembly.opening import Assembly
from handrail.domain.errors import Invalid
from handrail.domain.suggestion import did_you_mean

COMPARED_MAX: Final = 1_000


async def require_stream(program: Assembly, name: str) -> None:
    """Invalid if there is no run, plan or server of that name in the journal, with the nearest run."""
    store = program.writer.reader.store
    if await store.read(name, limit=1):
        return
    known = [row.id for row in await store.runs(limit=COMPARED_MAX)]
    raise Invalid(f"there is no run {name[:100]!r}", hint=did_you_mean(name, known) or "no run was started yet")
