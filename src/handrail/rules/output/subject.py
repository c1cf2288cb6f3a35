"""The subject of a rule: the whole output, or the part of it that `of` names; and findings about it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from handrail.domain.checks.finding import Finding, FixedBy, Severity
from handrail.domain.checks.rule import Given, subject_name
from handrail.domain.json import Json

MISSING: Final = object()
SHOWN_MAX: Final = 80
PATH: Final = re.compile(r"[^.\[\]]+|\[\d{1,9}\]")


def subject_of(parameters: Mapping[str, Any], given: Given) -> Any:
    """The value to check; MISSING if the output has no such part."""
    value: Any = given.output
    for part in PATH.findall(str(parameters.get("of", ""))):
        name = part.strip("[]")
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list | tuple) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return MISSING
    return value


def text_of(value: Json) -> str:
    """A value as text: itself, or its JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def excerpt(value: Json) -> str:
    """A value as a finding names it: its text, shortened, or how many items it has."""
    if isinstance(value, list | tuple) and len(text_of(list(value))) > SHOWN_MAX:
        return f"a list of {len(value)} items"
    line = " ".join(text_of(value).split())
    return f"`{line}`" if len(line) <= SHOWN_MAX else f"`{line[:SHOWN_MAX]}…` ({len(line)} characters)"


def finding(rule: str, parameters: Mapping[str, Any], message: str, fix: str = "") -> Finding:
    """A finding of this rule; its severity is set by the check."""
    return Finding(rule=rule, severity=Severity.MAJOR, where=subject_name(parameters), message=message, fix=fix)


def missing(rule: str, parameters: Mapping[str, Any]) -> Finding:
    """The finding that the value to check is missing."""
    return finding(rule, parameters, "it is missing", f"submit `{subject_name(parameters)}`")


def unfit(rule: str, parameter: str, message: str) -> Finding:
    """The finding that the check itself can't be applied, which never counts as a pass."""
    return Finding(
        rule=rule,
        severity=Severity.CRITICAL,
        where=f"checks.{rule}.{parameter}",
        message=f"the check can't be applied: {message}",
        fix="the workflow's author must fix it",
        unapplied=True,
        fixed_by=FixedBy.AUTHOR,
    )
