"""Approvals through the client: the question as the user sees it, and what the answer means.

Whether a client can ask its user is known in shell_caller.py; whether the answer counts is decided in the engine."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from typing import Any, Final

from handrail.domain.errors import Forbidden
from handrail.domain.json import digest
from handrail.domain.run.approval_words import call_lines
from handrail.domain.run.legal_controls import Action
from handrail.engine.reading.approvals import PendingApproval
from handrail.engine.reading.run_view import WaitingFor
from handrail.interfaces.mcp.surface.answering import compact
from handrail.interfaces.mcp.surface.caller import Response, UserAnswer, UserQuestion

DIGEST_SHOWN: Final = 19
"""How much of a digest a form shows: enough to compare it with what another view shows."""
SEAL_DIGITS: Final = 32
QUESTION_LENGTH_MAX: Final = 20_000
"""What a form can show; a longer question is answered where all of it can be read."""
FORM: Final[Mapping[str, Mapping[str, Any]]] = {
    "answer": {"type": "string", "enum": ["approve", "reject"], "title": "Your answer"},
    "reason": {"type": "string", "title": "Why", "maxLength": 2_000},
}


def approval_question(asked: PendingApproval, *, content: Any = None) -> UserQuestion | None:
    """The question that the user sees: the text, every call that follows, and the answer that an agent proposes.

    None if a form can't show all of it: a yes covers what was shown, and nothing else."""
    text = "\n\n".join(filter(None, _question_parts(asked, content)))
    if len(text) > QUESTION_LENGTH_MAX or asked.ahead_unshown:
        return None
    return UserQuestion(text=text, form=FORM, required=("answer",))


def _question_parts(asked: PendingApproval, content: Any) -> Iterator[str]:
    one = asked.asked
    yield one.text
    if asked.ahead:
        lines = (line for call in asked.ahead for line in call_lines(call))
        yield "\n".join(["What follows:", *(line if line.startswith(" ") else f"- {line}" for line in lines)])
    if content is not None:
        yield f"The answer would be: {compact(content)}"
    yield f"({asked.run}, step {one.step}, {one.digest[:DIGEST_SHOWN]})"


def too_long_to_ask(run: str, command: str) -> Forbidden:
    """The error that the user has to answer where everything can be read."""
    return Forbidden(
        f"what {run} asks is too long for a form, and a yes covers only what was shown",
        hint=f"have the user run {command}, or answer in the console",
    )


def question_seal(key: bytes, run: str, one: WaitingFor) -> str:
    """What binds an answer that a client sends later to exactly this question; only we can make it."""
    asked = digest([run, one.step, one.digest, one.since])
    return hmac.new(key, asked.encode(), hashlib.sha256).hexdigest()[:SEAL_DIGITS]


def card_seal(key: bytes, client: str, run: str, one: WaitingFor) -> str:
    """What proves that an answer comes from the card that this client was given for exactly this question."""
    # Not the seal of a task's question: that one is in answers that a model may see.
    asked = digest(["card", client, run, one.step, one.digest, one.since])
    return hmac.new(key, asked.encode(), hashlib.sha256).hexdigest()[:SEAL_DIGITS]


def is_same_seal(given: str, ours: str) -> bool:
    """Whether two seals are equal; how long that takes says nothing about ours."""
    return hmac.compare_digest(given.encode(), ours.encode())


def approval_answer(answer: UserAnswer, *, otherwise: str) -> tuple[Action, str]:
    """The user's decision and reason; `otherwise` if they gave no reason."""
    # Only an explicit approve counts: an empty or unexpected form is a rejection.
    is_yes = answer.response is Response.ACCEPT and answer.content.get("answer") == "approve"
    reason = str(answer.content.get("reason") or "").strip() or otherwise
    return Action.APPROVE if is_yes else Action.REJECT, reason
