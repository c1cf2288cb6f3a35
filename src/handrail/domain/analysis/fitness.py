"""Fitness: whether a definition that is valid can be run here and now, with the tools and rules that there are.

Pure. Refusing rather than passing over: what would not be done must not look as if it were."""

from __future__ import annotations

from handrail.domain.analysis.check_findings import rules_in
from handrail.domain.analysis.local import Survey
from handrail.domain.analysis.whole import analyse
from handrail.domain.check import blocks, finding_without_text
from handrail.domain.definition import Definition
from handrail.domain.errors import Invalid
from handrail.domain.works import tools_in


def require_fit(definition: Definition, survey: Survey) -> None:
    """Refuse a definition with tools or rules that are not there, or that it uses wrongly; Invalid with findings."""
    local = survey(tools_in(definition), rules_in(definition))
    findings = [finding_without_text(flaw) for flaw in analyse(definition, local)]
    if blocks(findings):
        raise Invalid(f"{definition.id} can't be run", findings=findings)
