"""Error answers: turns an error into an answer, with a ready call that fixes the problem where there is one.

Pure. The errors are defined in domain/errors.py."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from shlex import quote
from typing import Any, Final

import msgspec

from handrail.domain.checks.finding import WHO, Finding, FixedBy
from handrail.domain.errors import (
    Conflict,
    HandrailError,
    Invalid,
    JournalConflict,
    Limited,
    NotFound,
    OnlyRecorded,
    OtherProject,
    Unavailable,
)
from handrail.interfaces.mcp.surface.caller import ToolReply
from handrail.interfaces.mcp.surface.fitting import fitted, fitted_text, size_of

REPEATED_MAX: Final = 600
"""The largest call that an error answer repeats in `next`, in characters."""
FINDINGS_MAX: Final = 20

_command = re.compile(r"`(handrail [a-z ]+) RUN( STEP)?`")
_missing = re.compile(r"there is no (run|workflow|step|stream)\b")


def refusal(error: HandrailError, name: str, arguments: Mapping[str, Any], tools: Collection[str]) -> ToolReply:
    """The answer to a call of `name` that failed; `next` uses only `tools` that the caller has."""
    hint = _exact(error.hint, arguments)
    data: dict[str, Any] = {"code": error.code, "name": error.name, "message": str(error), "hint": hint}
    if isinstance(error, Invalid) and error.findings:
        data["findings"] = [finding_data(finding) for finding in error.findings[:FINDINGS_MAX]]
    repair = _repair(error, name, arguments)
    if repair is not None and repair[0] in tools:
        data["next"] = {"tool": repair[0], "arguments": repair[1]}
    return ToolReply(text=fitted_text(_words(data)), data=fitted(data), is_error=True)


def _exact(hint: str, arguments: Mapping[str, Any]) -> str:
    """A hint in which the commands for people name the run and the step that the call is about."""
    run, step = arguments.get("run"), arguments.get("step")
    if not isinstance(run, str) or not run:
        return hint
    named = f" {quote(step)}" if isinstance(step, str) and step else ""  # a person may leave it out if only one waits
    return _command.sub(lambda found: f"`{found[1]} {quote(run)}{named if found[2] else ''}`", hint)


def finding_data(finding: Finding) -> dict[str, Any]:
    """A finding as data, with the documented keys."""
    always = {"rule": finding.rule, "severity": finding.severity.value, "where": finding.where}
    other = "" if finding.fixed_by is FixedBy.AGENT else finding.fixed_by.value
    more = {"fix": finding.fix, "excerpt": finding.excerpt, "fixed_by": other}
    return {**always, "message": finding.message, **{key: text for key, text in more.items() if text}}


def finding_words(finding: Mapping[str, Any]) -> str:
    """A finding in one line."""
    who = f"for {WHO[FixedBy(finding['fixed_by'])]}: " if finding.get("fixed_by") else ""
    fix = f" -> {who}{finding['fix']}" if finding.get("fix") else ""
    lines = [f"    {line}" for line in finding.get("excerpt", "").splitlines()]
    # A message may be what a command printed: it must not look like the fix that comes after the arrow.
    found = f"{finding['where']}: {finding['message']}".replace("->", "→")
    return "\n".join([f"- {finding['severity']} {_indented(found)}{fix}", *lines])


def _words(data: Mapping[str, Any]) -> str:
    lines = [f"{data['name']}: {_indented(data['message'])}", *map(finding_words, data.get("findings", ()))]
    if data["hint"]:
        lines.append(f"hint: {data['hint']}")
    if "next" in data:
        call = msgspec.json.encode(data["next"]["arguments"]).decode()
        lines.append(f"next: {data['next']['tool']} {call}")
    return "\n".join(lines)


def _indented(text: str) -> str:
    """A string whose further lines can't be taken for lines of ours: a tool or a file may have written them."""
    return "\n    ".join(text.splitlines())


def _repair(error: HandrailError, name: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The next call: a tool and its arguments; None if no call can help."""
    run = arguments.get("run")
    is_guide = name.startswith("workflow_")
    if isinstance(error, NotFound):
        return _found_again(str(error), arguments, is_guide=is_guide)
    if isinstance(error, Unavailable | Limited | JournalConflict):
        # Too long to repeat, or refused for its rate or size: the same call at once would not help.
        is_short = size_of(arguments) <= REPEATED_MAX
        return (name, dict(arguments)) if is_short and not isinstance(error, Limited) else None
    if isinstance(error, OtherProject):  # no call can help here: the runs of this project can be continued
        return ("workflow_next", {}) if is_guide else ("status", {})
    if isinstance(error, Conflict) and isinstance(run, str) and run:
        if isinstance(error, OnlyRecorded):
            return "record_action", {
                "run": run,
                "step": arguments.get("step", ""),
                "description": "...",
                "outcome": "done",
            }
        if is_guide:
            return "workflow_next", {"run": run}
        return ("query_ledger", {"run": run}) if name.startswith("record_") else ("status", {"run": run})
    return None


def _found_again(message: str, arguments: Mapping[str, Any], *, is_guide: bool) -> tuple[str, dict[str, Any]] | None:
    """A call that lists what exists."""
    found = _missing.match(message)
    match found[1] if found else "":
        case "run" | "stream":
            return ("workflow_next", {}) if is_guide else ("status", {})
        case "workflow":
            wanted = str(arguments.get("id") or arguments.get("workflow") or "")
            return "workflow_list", {"query": wanted.partition("@")[0]}
        case "step" if arguments.get("run"):
            run = arguments["run"]
            return ("workflow_next", {"run": run}) if is_guide else ("status", {"run": run, "detail": "full"})
        case _:
            return None
