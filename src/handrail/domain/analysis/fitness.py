"""Fitness: whether a definition that is sound can be run here and now, with the tools that there are.

Pure. Refusing rather than passing over: what would not be done must not look as if it were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from handrail.domain.analysis.whole import analyse
from handrail.domain.check import Finding, Severity, blocks, finding_without_text, place
from handrail.domain.definition import Definition, Effect, Tool, walk
from handrail.domain.errors import Invalid


def require_fit(definition: Definition, tools: Mapping[str, Effect]) -> None:
    """Refuse a definition that names tools nobody knows, or asks for what is not built yet; Invalid with findings."""
    findings = [finding_without_text(flaw) for flaw in analyse(definition, tools=tools)]
    if blocks(findings):
        raise Invalid(f"{definition.id} can't be run", findings=findings)
    if refused := list(_tool_checks(definition)):
        raise Invalid("checks on tool steps can't be run yet", findings=refused)


def _tool_checks(definition: Definition) -> Iterator[Finding]:
    for one in (definition, *definition.pinned.values()):
        for path, step in walk(one.steps):
            if isinstance(step.work, Tool) and step.work.checks:
                yield Finding(
                    rule="checks",
                    severity=Severity.CRITICAL,
                    where=place((*path, "checks")),
                    message=f"step `{step.id}` has checks, and checks of tool steps are not built yet",
                    fix="leave `checks` out, or describe the output with `output`",
                )
