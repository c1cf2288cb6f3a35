"""Answers to approvals: checks who answers, how, and what, and makes the command.

Async only because a passphrase takes time to check. Who may answer is decided in domain/policy/answering.py, whether
the answer is to what was shown in domain/run/decide_step.py; no interface decides either."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from msgspec import Struct, json
from msgspec.structs import replace

from handrail.domain.errors import Forbidden, Invalid
from handrail.domain.policy.answering import AnswerBy, AnswerRules, AskedOf, may_answer, may_override
from handrail.domain.policy.verdict import require_allowed
from handrail.domain.run.approval import asked_in, asked_of
from handrail.domain.run.command import GiveApproval, RejectApproval, SkipStep
from handrail.domain.run.legal_controls import ANSWERS as ANSWERS
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.engine.passed_in import Clock
from handrail.engine.running.calls.attempt import SchemaCheck

log = logging.getLogger(__name__)


class Tried(Struct, frozen=True):
    """What became of a passphrase: right, wrong so many times in a row, or not looked at because of that."""

    is_right: bool
    wrong: int = 0
    wait_s: int = 0
    """How long no further try is looked at."""
    is_early: bool = False
    """Whether it was not looked at: it is not counted, and may be right."""


class Passphrase(Protocol):
    """Checks the passphrase of this installation."""

    def is_set(self) -> bool:
        """Whether there is one."""
        ...

    def tried(self, text: str) -> Tried:
        """The result of this try; it is counted."""
        ...


@dataclass(frozen=True)
class AnswerGiven:
    """How an answer came: its channel, the person that an agent gave it for, what was shown, and the passphrase."""

    channel: str = ""
    behalf: str = ""
    digest: str = ""
    """Empty if the answer is to whatever is asked now."""
    proof: str | None = field(default=None, repr=False)


NO_MORE: Final = AnswerGiven()


@dataclass(frozen=True)
class ApprovalAnswers:
    """Takes answers."""

    rules: AnswerRules
    clock: Clock
    fits: SchemaCheck | None = None
    """Validates an answer against the form that was asked for."""
    passphrase: Passphrase | None = None

    def require_answerable(self, run: Run, step: str, *, actor: str, given: AnswerGiven = NO_MORE) -> None:
        """Refuse before a person is asked, if the answer would not count."""
        self._require(run, step, actor, given, is_proven=False)

    async def command(
        self, run: Run, action: Action, step: str, *, actor: str, reason: str, content: Any, given: AnswerGiven
    ) -> GiveApproval | RejectApproval:
        """The command for an answer that counts; Forbidden or Invalid for any other."""
        state = run.step(step)
        # Before the passphrase is looked at: who may not answer must not learn whether it is right.
        self._require(run, step, actor, given, is_proven=given.proof is not None)
        await self._require_passphrase(given.proof)
        digest, at = given.digest or state.digest, self.clock()
        via: Any = {"channel": given.channel, "behalf": given.behalf, "is_proven": True}
        if action is Action.REJECT:
            return RejectApproval(step=step, digest=digest, reason=reason, at=at, **via)
        self._require_form(step, asked_in(state).get("schema"), content)
        return GiveApproval(step=step, digest=digest, reason=reason, at=at, content=content, who=actor, **via)

    async def override(
        self, command: SkipStep, asked: Sequence[AskedOf], *, actor: str, given: AnswerGiven
    ) -> SkipStep:
        """The command to go past these approvals; Forbidden for who may not answer them, in this way or at all."""
        by = AnswerBy(actor=actor, channel=given.channel, is_proven=given.proof is not None)
        require_allowed(may_override(by, asked, self.rules))
        await self._require_passphrase(given.proof)
        return replace(command, is_proven=True)

    def _require(self, run: Run, step: str, actor: str, given: AnswerGiven, *, is_proven: bool) -> None:
        by = AnswerBy(actor=actor, channel=given.channel, behalf=given.behalf, is_proven=is_proven)
        require_allowed(may_answer(by, asked_of(run, step), self.rules))

    async def _require_passphrase(self, proof: str | None) -> None:
        if not self.rules.passphrase:
            return
        if self.passphrase is None or not self.passphrase.is_set():
            raise Forbidden(
                "approvals need a passphrase here, and none is set",
                hint="a person sets one at a terminal: `handrail approvals passphrase`",
            )
        # In a thread: it takes a tenth of a second on purpose, and runs must go on meanwhile.
        tried = await asyncio.to_thread(self.passphrase.tried, proof or "")
        if tried.is_right:
            return
        if tried.is_early:
            raise Forbidden(
                "the passphrase was not looked at, because wrong ones were given before",
                hint=f"wait {tried.wait_s} s, then give it again: this try does not count",
            )
        log.warning("a wrong passphrase for an approval: %d in a row", tried.wrong)
        raise Forbidden(
            f"the passphrase is wrong ({tried.wrong} in a row)", hint=f"the next try counts in {tried.wait_s} s"
        )

    def _require_form(self, step: str, schema: Any, content: Any) -> None:
        """Refuse an approval without the answer that was asked for."""
        if schema is None:
            return
        wrong = self.fits(schema, content) if self.fits is not None else []
        if content is None or wrong:
            flaw = "; ".join(wrong) if content is not None else "the answer is missing"
            form = json.encode(schema).decode()
            raise Invalid(
                f"step {step!r} needs an answer in a given form: {flaw}",
                hint=f"give the answer (`output`, or --answer) in this form: {form}",
            )
