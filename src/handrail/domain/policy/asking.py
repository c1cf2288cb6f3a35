"""Asking the policy about a command: what it is, who may do it, and for an answer, whether it counts.

Pure. The one question that dispatch asks before it decides."""

from __future__ import annotations

from handrail.domain.definition.model import Definition
from handrail.domain.policy.act import Act, act_of
from handrail.domain.policy.answering import AnswerBy, may_answer, may_override
from handrail.domain.policy.table import OwnerPolicy, may
from handrail.domain.policy.verdict import PolicyVerdict, Refused
from handrail.domain.run.approval import asked_of
from handrail.domain.run.command import Command, GiveApproval, RejectApproval, SkipStep
from handrail.domain.run.state import Run


def may_command(actor: str, run: Run, definition: Definition, command: Command, policy: OwnerPolicy) -> PolicyVerdict:
    """Whether this actor may have this command granted on this run."""
    act = act_of(run, definition, command)
    verdict = may(actor, act, policy)
    if isinstance(verdict, Refused):
        return verdict
    if isinstance(command, GiveApproval | RejectApproval):
        via = AnswerBy(actor=actor, channel=command.channel, behalf=command.behalf, is_proven=command.is_proven)
        return may_answer(via, asked_of(run, command.step), policy.answers)
    if act is Act.OVERRIDE:
        return may_override(_override_by(actor, command), policy.answers)
    return verdict


def _override_by(actor: str, command: Command) -> AnswerBy:
    """Who goes past an approval, and how; what is no skip says nothing of how, and proves nothing."""
    if not isinstance(command, SkipStep):
        return AnswerBy(actor=actor)
    return AnswerBy(actor=actor, channel=command.channel, is_proven=command.is_proven)
