"""Previews of controls, read from a store: one call for every control, and nothing is written.

Async only because the run is read. What a preview says is decided in domain/preview/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handrail.domain.definition.model import Definition
from handrail.domain.policy.table import DEFAULT_POLICY, OwnerPolicy
from handrail.domain.preview.calls_ahead import KnownTools, Now
from handrail.domain.preview.control_preview import ControlAsked, preview_of
from handrail.domain.preview.values import ControlPreview
from handrail.domain.scheduling.step_start import InputCheck
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.tool import Toolbox


def as_given(_definition: Definition, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[str]]:
    """Takes inputs as they are."""
    return given, ()


@dataclass(frozen=True)
class ControlPreviews:
    """Says what a control would do."""

    reader: RunReader
    policy: OwnerPolicy = DEFAULT_POLICY
    check: InputCheck = as_given
    toolbox: Toolbox | None = None

    async def of(self, run_id: str, asked: ControlAsked) -> ControlPreview:
        """What this control would do to a run now; NotFound if there is no such run or step, OtherProject if the run
        can't be controlled from here."""
        run = await self.reader.run(run_id)
        await self.reader.require_own(run_id)
        definition = await self.reader.definition(run)
        return preview_of(run, definition, asked, self.policy, self._now())

    def _now(self) -> Now:
        specs = self.toolbox.specs() if self.toolbox is not None else ()
        if not specs:
            return Now(at=self.reader.clock(), check=self.check)
        tools = KnownTools(
            effects={spec.name: spec.effect for spec in specs}, undos={spec.name: spec.undo for spec in specs}
        )
        return Now(at=self.reader.clock(), check=self.check, tools=tools)
