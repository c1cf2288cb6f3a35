"""The twins of a control: the same action as a command and as an MCP call, to do it another way.

Pure. Every interface shows the same; which command or call there is, is known here and in each interface itself."""

from __future__ import annotations

from shlex import quote
from typing import Any, Final

import msgspec

from handrail.domain.preview.values import ControlPreview
from handrail.domain.project import PROGRAM
from handrail.domain.run.legal_controls import ANSWERS, Action

WHY: Final = "..."
"""Where the reason goes."""


def command_twin(run: str, action: Action, step: str = "", *, digest: str = "", program: str = PROGRAM) -> str:
    """The command for an action; `program` are its first words."""
    words = [program]
    words += [action.value] if action in ANSWERS else ["run", action.value]
    words += [quote(run), *([quote(step)] if step else [])]  # a shell would read the brackets of a round as a pattern
    if digest and action is Action.APPROVE:
        words += ["--digest", quote(digest)]
    return " ".join([*words, "--reason", f"'{WHY}'"])


def call_twin(run: str, action: Action, step: str = "") -> dict[str, Any]:
    """The MCP call for an action."""
    on_step = {"step": step} if step else {}
    return {"tool": "control", "arguments": {"run": run, "action": action.value, **on_step, "reason": WHY}}


def preview_data(seen: ControlPreview, *, program: str = PROGRAM) -> dict[str, Any]:
    """A preview as data, with both twins."""
    data: dict[str, Any] = msgspec.to_builtins(seen)
    data["cli"] = command_twin(seen.run, seen.action, seen.step, digest=seen.digest, program=program)
    data["mcp"] = call_twin(seen.run, seen.action, seen.step)
    return data
