"""The analysis: what a definition means beyond its structure, as a list of flaws with paths and fixes.

Pure, and never raises on a structurally valid definition. Here the families of findings meet; each lives in a file of
its own. What needs other documents or a schema engine (extends, pins, defaults) is the library's work."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, islice
from typing import Final

from handrail.domain.analysis.call_findings import call_flaws
from handrail.domain.analysis.check_findings import check_flaws
from handrail.domain.analysis.effect_findings import effect_notes, tool_flaws
from handrail.domain.analysis.loop_findings import loop_flaws, loop_notes
from handrail.domain.analysis.name_findings import name_flaws
from handrail.domain.analysis.order_findings import order_flaws
from handrail.domain.analysis.secret_findings import secret_flaws
from handrail.domain.check import Flaw
from handrail.domain.definition import Definition, Effect
from handrail.domain.effect import BUILT_IN_EFFECTS

FLAWS_MAX: Final = 500
"""Nobody reads more, and a broken definition of thousands of steps must not cost minutes."""


def analyse(definition: Definition, *, tools: Mapping[str, Effect] | None = None) -> list[Flaw]:
    """What is wrong with a definition, blocking flaws first; with `tools` given, a tool nobody knows is one of them."""
    known = {**BUILT_IN_EFFECTS, **(tools or {})}
    flaws = chain(
        order_flaws(definition),
        name_flaws(definition),
        call_flaws(definition),
        check_flaws(definition),
        tool_flaws(definition, known) if tools is not None else (),
        loop_flaws(definition),
        secret_flaws(definition),
        loop_notes(definition),
        effect_notes(definition, known),
    )
    return list(islice(flaws, FLAWS_MAX))
