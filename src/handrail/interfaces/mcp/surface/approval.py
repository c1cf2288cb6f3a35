"""Approvals through the client: the question as a person sees it, and what their answer means.

Pure. Whether a client can ask is the shell's to know; whether the answer counts is the engine's."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from typing import Any, Final

from handrail.domain.legal import Action
from handrail.interfaces.mcp.surface.caller import Answered, Question, Response

FORM: Final[Mapping[str, Mapping[str, Any]]] = {
    "answer": {"type": "string", "enum": ["approve", "reject"], "title": "Your answer"},
    "reason": {"type": "string", "title": "Why", "maxLength": 2_000},
}


def approval_question(run: str, step: str, text: str) -> Question:
    """What a person is asked."""
    return Question(text=f"{text}\n\n({run}, step {step})", form=FORM, required=("answer",))


def approval_answer(answer: Answered, *, otherwise: str) -> tuple[Action, str]:
    """What a person said, and why; a reason of ours if they gave none."""
    is_yes = answer.response is Response.ACCEPT and answer.content.get("answer") == "approve"
    reason = str(answer.content.get("reason") or "").strip() or otherwise
    return Action.APPROVE if is_yes else Action.REJECT, reason


def person_here() -> str:
    """The actor behind the client: whoever runs this process."""
    return f"person:{getpass.getuser()}"
