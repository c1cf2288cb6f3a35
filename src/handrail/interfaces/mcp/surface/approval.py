"""Approvals through the client: the question as the user sees it, and what the answer means.

Whether a client can ask its user is known in shell_caller.py; whether the answer counts is decided in the engine."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from typing import Any, Final

from handrail.domain.run.legal_controls import Action
from handrail.interfaces.mcp.surface.caller import Response, UserAnswer, UserQuestion

FORM: Final[Mapping[str, Mapping[str, Any]]] = {
    "answer": {"type": "string", "enum": ["approve", "reject"], "title": "Your answer"},
    "reason": {"type": "string", "title": "Why", "maxLength": 2_000},
}


def approval_question(run: str, step: str, text: str) -> UserQuestion:
    """The question that the user sees."""
    return UserQuestion(text=f"{text}\n\n({run}, step {step})", form=FORM, required=("answer",))


def approval_answer(answer: UserAnswer, *, otherwise: str) -> tuple[Action, str]:
    """The user's decision and reason; `otherwise` if they gave no reason."""
    # Only an explicit approve counts: an empty or unexpected form is a rejection.
    is_yes = answer.response is Response.ACCEPT and answer.content.get("answer") == "approve"
    reason = str(answer.content.get("reason") or "").strip() or otherwise
    return Action.APPROVE if is_yes else Action.REJECT, reason


def person_here() -> str:
    """The actor behind the client: the account that runs this process."""
    return f"person:{getpass.getuser()}"
