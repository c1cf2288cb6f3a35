"""Findings about calls of other workflows: unknown inputs and missing inputs.

Pure. Checks only calls that are pinned; workflows are found and pinned in library/resolve.py."""

from __future__ import annotations

from collections.abc import Iterator

from handrail.domain.checks.finding import Flaw, Path, Severity
from handrail.domain.definition.model import Call, Definition
from handrail.domain.definition.work_items import calls_in
from handrail.domain.suggestion import did_you_mean


def call_flaws(definition: Definition) -> Iterator[Flaw]:
    """Inputs that a called workflow does not have, or that it needs and does not get."""
    for path, call in calls_in(definition):
        if call.workflow in definition.pinned:
            yield from _input_flaws(call, path, definition.pinned[call.workflow])


def _input_flaws(call: Call, path: Path, called: Definition) -> Iterator[Flaw]:
    for name in call.with_:
        if name not in called.inputs:
            yield Flaw(
                rule="call_inputs",
                severity=Severity.CRITICAL,
                path=(*path, "with", name),
                message=f"the workflow `{called.id}` has no input `{name}`",
                fix=did_you_mean(name, called.inputs) or "remove it: the workflow has no inputs",
                on_key=True,
            )
    for name in required_inputs(called):
        if name not in call.with_:
            yield Flaw(
                rule="call_inputs",
                severity=Severity.CRITICAL,
                path=(*path, "workflow"),
                message=f"the workflow `{called.id}` needs the input `{name}`",
                fix=f"add `{name}:` under `with:`",
            )


def required_inputs(definition: Definition) -> list[str]:
    """The inputs that have no default."""
    return [name for name, schema in definition.inputs.items() if "default" not in schema]
