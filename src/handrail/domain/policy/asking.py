"""Asking the policy about a command: what it is, who may do it, and for an answer, whether it counts.

Pure. The one question that dispatch asks before it decides."""

from __future__ import annotations

from handrail.domain.definition.model import Definition
from handrail.domain.policy.act import Act, act_of, skipped_step
from handrail.domain.policy.answering import AnswerBy, AskedOf, may_answer, may_override
from handrail.domain.policy.skipping import approvals_in
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
        asked = asked_past(run, definition, getattr(command, "step", None) or "")
        return may_override(_override_by(actor, command), asked, policy.answers)
    return verdict


def asked_past(run: Run, definition: Definition, path: str) -> tuple[AskedOf, ...]:
    """Who is asked by each approval that skipping this step goes past, whether it was asked already or not."""
    inside = approvals_in(definition, skipped_step(run, definition, path))
    return tuple(AskedOf(by=one.by, not_by=one.not_by, starter=run.starter, behalf=run.behalf) for one in inside)


def _override_by(actor: str, command: Command) -> AnswerBy:
    """Who goes past an approval, and how; what is no skip says nothing of how, and proves nothing."""
    if not isinstance(command, SkipStep):
        return AnswerBy(actor=actor)
    return AnswerBy(actor=actor, channel=command.channel, is_proven=command.is_proven)
