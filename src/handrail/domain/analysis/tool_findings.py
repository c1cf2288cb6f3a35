"""Findings about tool calls: unknown tools, tools that are off, and wrong arguments.

Pure. Effects are checked in effect_findings.py, the use of outputs in name_findings.py."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from handrail.domain.analysis.known_values import MISSING_KEY, UNKNOWN_KEY, known_flaws
from handrail.domain.analysis.local import KnownTool, Local, LocalTools
from handrail.domain.checks.finding import Flaw, Path, Severity
from handrail.domain.definition.model import Definition, Tool
from handrail.domain.definition.work_items import works_in
from handrail.domain.suggestion import did_you_mean
from handrail.domain.trust.decision import ASK_A_PERSON

CONFIGURE = "add it to .handrail/tools.json"


def tool_flaws(definition: Definition, local: Local) -> Iterator[Flaw]:
    """Calls of unknown tools, of tools that are off, or with wrong arguments."""
    if local.tools is None:
        return
    for path, work in works_in(definition):
        if not isinstance(work, Tool):
            continue
        known = local.tools.tools.get(work.tool)
        if known is None:
            yield _unknown(work.tool, (*path, "tool"), local.tools)
        else:
            yield from _argument_flaws(work, known, path, local)
        if reason := local.tools.off.get(work.tool):
            yield _off(reason, (*path, "tool"))


def _off(reason: str, path: Path) -> Flaw:
    """A warning: the definition is right, and the setting may change before the step comes."""
    what, _, fix = reason.partition("; ")
    return Flaw(rule="tool_off", severity=Severity.MINOR, path=path, message=f"{what}: the step will fail", fix=fix)


def _unknown(name: str, path: Path, local: LocalTools) -> Flaw:
    server = name.partition(".")[0]
    if server in local.untrusted:
        return Flaw(
            rule="untrusted_server",
            severity=Severity.MINOR,
            path=path,
            message=f"the server `{server}` is not started before this project is trusted, so `{name}` was not checked",
            fix=ASK_A_PERSON,
        )
    if server in local.unasked:
        return Flaw(
            rule="unasked_server",
            severity=Severity.MINOR,
            path=path,
            message=f"the tools of the server `{server}` are not known yet, so `{name}` was not checked",
            fix=f"ask the server once: handrail tools check {server}",
        )
    near = did_you_mean(name, (one for one in local.names if one.partition(".")[0] == server))
    if server in local.remembered:
        message = f"the server `{server}` had no tool `{name}` when it was last asked"
        fix = f"{near} Or ask it again: handrail tools check {server}".strip()
    elif server in local.families:
        message, fix = f"there is no tool `{name}`", near
    else:
        close = did_you_mean(name, local.names)
        message = f"there is no tool `{name}`: no tool server `{server}` is configured here"
        fix = f"{close} Or {CONFIGURE}" if close.startswith("did") else CONFIGURE
    return Flaw(rule="unknown_tool", severity=Severity.CRITICAL, path=path, message=message, fix=fix)


def _argument_flaws(work: Tool, known: KnownTool, path: Path, local: Local) -> Iterator[Flaw]:
    if known.args is None:
        return
    base = (*path, "args")
    for flaw in known_flaws(known.args, work.args, base, local.fits):
        yield replace(flaw, rule="arguments", **_in_words(flaw, work, known, path))


def _in_words(flaw: Flaw, work: Tool, known: KnownTool, path: Path) -> dict[str, object]:
    """Clearer words for flaws of the arguments themselves; flaws deeper inside keep theirs."""
    base = (*path, "args")
    if flaw.rule == MISSING_KEY and flaw.path == base:
        # Without any arguments there is no `args` to point at, so the finding points at the tool's name.
        return {"message": f"`{work.tool}`: {flaw.message}", "path": base if work.args else (*path, "tool")}
    if flaw.rule == UNKNOWN_KEY and flaw.path[:-1] == base:
        name, takes = str(flaw.path[-1]), (known.args or {}).get("properties", {})
        return {
            "message": f"`{work.tool}` takes no argument `{name}`",
            "fix": did_you_mean(name, takes) or "remove it: the tool takes no arguments",
        }
    return {}
