"""Approvals through the client: the question as the user sees it, and what the answer means.

Whether a client can ask its user is known in shell_caller.py; whether the answer counts is decided in the engine."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any, Final

from handrail.domain.json import digest
from handrail.domain.run.approval_words import effect_lines
from handrail.domain.run.legal_controls import Action
from handrail.engine.reading.run_view import WaitingFor
from handrail.interfaces.mcp.surface.answering import compact
from handrail.interfaces.mcp.surface.caller import Response, UserAnswer, UserQuestion

DIGEST_SHOWN: Final = 19
"""How much of a digest a form shows: enough to compare it with what another view shows."""
SEAL_DIGITS: Final = 32
FORM: Final[Mapping[str, Mapping[str, Any]]] = {
    "answer": {"type": "string", "enum": ["approve", "reject"], "title": "Your answer"},
    "reason": {"type": "string", "title": "Why", "maxLength": 2_000},
}


def approval_question(run: str, one: WaitingFor, *, content: Any = None) -> UserQuestion:
    """The question that the user sees: the text, the effects that follow, and the answer that an agent proposes."""
    follows = effect_lines(one.effects, one.unshown, at_most=len(one.effects))
    parts = [
        one.text,
        "\n".join(["What follows:", *(f"- {line}" for line in follows)]) if follows else "",
        f"The answer would be: {compact(content)}" if content is not None else "",
        f"({run}, step {one.step}, {one.digest[:DIGEST_SHOWN]})",
    ]
    return UserQuestion(text="\n\n".join(filter(None, parts)), form=FORM, required=("answer",))


def question_seal(key: bytes, run: str, one: WaitingFor) -> str:
    """What binds an answer that a client sends later to exactly this question; only we can make it."""
    asked = digest([run, one.step, one.digest, one.since])
    return hmac.new(key, asked.encode(), hashlib.sha256).hexdigest()[:SEAL_DIGITS]


def approval_answer(answer: UserAnswer, *, otherwise: str) -> tuple[Action, str]:
    """The user's decision and reason; `otherwise` if they gave no reason."""
    # Only an explicit approve counts: an empty or unexpected form is a rejection.
    is_yes = answer.response is Response.ACCEPT and answer.content.get("answer") == "approve"
    reason = str(answer.content.get("reason") or "").strip() or otherwise
    return Action.APPROVE if is_yes else Action.REJECT, reason
