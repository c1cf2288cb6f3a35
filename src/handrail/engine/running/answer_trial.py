"""The trial of an answer: whether it would count, before a person is asked for it.

Async because making the command is. It decides nothing: answers.py makes the command and dispatch drafts what it would
write, as for the answer itself; the draft is thrown away."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from handrail.domain.errors import Forbidden
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.engine.dispatch import Dispatch
from handrail.engine.running.answers import AnswerGiven, ApprovalAnswers

NOT_GIVEN: Final = "not given yet"


@dataclass(frozen=True)
class AnswerTrial:
    """Tries an answer to a run as it is now."""

    answers: ApprovalAnswers
    dispatch: Dispatch
    run: Run

    async def require_counts(self, action: Action, step: str, *, actor: str, content: Any, given: AnswerGiven) -> None:
        """Refuse what would be refused once the person has typed reason and passphrase, which are not known yet."""
        answers = self.answers
        if answers.rules.passphrase and (answers.passphrase is None or not answers.passphrase.is_set()):
            raise Forbidden(
                "approvals need a passphrase here, and none is set",
                hint="a person sets one at a terminal: `handrail approvals passphrase`",
            )
        unproven = replace(answers, rules=msgspec.structs.replace(answers.rules, passphrase=False))
        command = await unproven.command(
            self.run, action, step, actor=actor, reason=NOT_GIVEN, content=content, given=given
        )
        await self.dispatch.require_grantable(self.run, command, actor=actor)
