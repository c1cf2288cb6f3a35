"""Fitness: whether a valid definition can be run here, with the available tools and rules.

Pure. It refuses a run rather than skip a check: what was not done must not look as if it was."""

from __future__ import annotations

from handrail.domain.analysis.check_findings import rules_in
from handrail.domain.analysis.local import Survey
from handrail.domain.analysis.whole import analyse
from handrail.domain.checks.finding import blocks, finding_without_text
from handrail.domain.definition.model import Definition
from handrail.domain.definition.work_items import tools_in
from handrail.domain.errors import Invalid


def require_fit(definition: Definition, survey: Survey) -> None:
    """Raise Invalid, with findings, for tools or rules that are not available or used wrongly."""
    local = survey(tools_in(definition), rules_in(definition))
    findings = [finding_without_text(flaw) for flaw in analyse(definition, local)]
    if blocks(findings):
        raise Invalid(f"{definition.id} can't be run", findings=findings)
