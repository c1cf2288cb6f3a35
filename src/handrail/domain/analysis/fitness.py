"""Fitness: whether a definition that is sound can be run here and now, with the tools that there are.

Pure. Refusing rather than passing over: what would not be done must not look as if it were."""

from __future__ import annotations

from collections.abc import Mapping

from handrail.domain.analysis.whole import analyse
from handrail.domain.check import blocks, finding_without_text
from handrail.domain.definition import Definition, Effect
from handrail.domain.errors import Invalid


def require_fit(definition: Definition, tools: Mapping[str, Effect]) -> None:
    """Refuse a definition that names tools nobody knows; Invalid with findings."""
    findings = [finding_without_text(flaw) for flaw in analyse(definition, tools=tools)]
    if blocks(findings):
        raise Invalid(f"{definition.id} can't be run", findings=findings)
