"""The analysis of a definition beyond its structure, as a list of flaws with paths and fixes.

Pure, and never raises on a structurally valid definition. Combines all kinds of findings; each has a file of its own.
Checks that need other documents or a schema engine (extends, pins, defaults) are in library/."""

from __future__ import annotations

from itertools import chain, islice
from typing import Final

from handrail.domain.analysis.approver_findings import approver_notes
from handrail.domain.analysis.call_findings import call_flaws
from handrail.domain.analysis.check_findings import check_flaws
from handrail.domain.analysis.effect_findings import effect_notes
from handrail.domain.analysis.local import NOWHERE, Local
from handrail.domain.analysis.loop_findings import loop_flaws, loop_notes
from handrail.domain.analysis.name_findings import name_flaws
from handrail.domain.analysis.order_findings import order_flaws
from handrail.domain.analysis.secret_findings import secret_flaws
from handrail.domain.analysis.tool_findings import tool_flaws
from handrail.domain.checks.finding import Flaw
from handrail.domain.definition.effect import BUILT_IN_EFFECTS
from handrail.domain.definition.model import Definition
from handrail.domain.language.shape import shape_of

FLAWS_MAX: Final = 500
"""More are of no use, and a broken definition of thousands of steps must not take minutes."""


def analyse(definition: Definition, local: Local = NOWHERE) -> list[Flaw]:
    """The flaws of a definition, blocking ones first; `local` is what is known of the environment it will run in."""
    tools = local.tools.tools if local.tools is not None else {}
    known = {**BUILT_IN_EFFECTS, **{name: one.effect for name, one in tools.items()}}
    outputs = {name: shape_of(one.output) for name, one in tools.items() if one.output is not None}
    flaws = chain(
        order_flaws(definition),
        name_flaws(definition, outputs),
        call_flaws(definition),
        check_flaws(definition, local),
        tool_flaws(definition, local),
        loop_flaws(definition),
        secret_flaws(definition),
        loop_notes(definition),
        effect_notes(definition, known),
        approver_notes(definition, local),
    )
    return list(islice(flaws, FLAWS_MAX))
