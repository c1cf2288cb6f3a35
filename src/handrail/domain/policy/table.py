"""The policy: who may do what. One table, and one function that every entrance asks.

Pure. act.py says what a command is; this table says who may do it; docs/reference/policy.md is printed from it. A
refusal says what to do instead, never which setting would switch the guard off: agents read it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from handrail.domain.policy.act import Act
from handrail.domain.policy.actor import ActorKind, kind_of
from handrail.domain.policy.answering import AnswerRules
from handrail.domain.policy.verdict import ALLOWED, PolicyVerdict, Refused


class Right(StrEnum):
    """What the table says of one kind of actor."""

    YES = "yes"
    NO = "no"
    IF_SKIPPING = "if agents may skip checks"
    IF_APPROVING = "if agents may approve"


class OwnerPolicy(Struct, frozen=True, kw_only=True):
    """What the owner of HANDRAIL_HOME has chosen; a project can't choose any of it."""

    answers: AnswerRules = AnswerRules()
    """Whose answers to approvals count, and how they may come."""
    agents_may_skip_checks: bool = False


DEFAULT_POLICY: Final = OwnerPolicy()


class PolicyRow(Struct, frozen=True):
    """Who may do one act. The engine is handrail itself: the worker of a run, and the command that executes it."""

    person: Right
    agent: Right
    engine: Right = Right.NO
    why: str = ""
    """Why an agent may not."""


_EVERYBODY: Final = PolicyRow(Right.YES, Right.YES, Right.YES)
_PEOPLE_AND_AGENTS: Final = PolicyRow(Right.YES, Right.YES)

TABLE: Final[Mapping[Act, PolicyRow]] = {
    Act.START: _PEOPLE_AND_AGENTS,
    Act.FORK: _PEOPLE_AND_AGENTS,
    Act.PAUSE: _EVERYBODY,  # the engine asks about abandoned runs that way, where [retention] says so
    Act.RESUME: _PEOPLE_AND_AGENTS,
    Act.RESUME_FOR_PERSON: PolicyRow(Right.YES, Right.NO, why="a person paused this run"),
    Act.CANCEL: _EVERYBODY,  # and ends them if they are not answered
    Act.COMPENSATE: _EVERYBODY,  # the engine does it where `on_failure: compensate` says so
    Act.SUBMIT: _PEOPLE_AND_AGENTS,
    Act.SUBMIT_AFTER_LIMIT: PolicyRow(Right.YES, Right.NO, why="its output was refused too often"),
    Act.SKIP: _PEOPLE_AND_AGENTS,
    Act.SKIP_CHECKS: PolicyRow(Right.YES, Right.IF_SKIPPING, why="it has a check or needs the user's agreement"),
    Act.SKIP_RESERVED: PolicyRow(Right.YES, Right.NO, why="skipping it is reserved to a person"),
    Act.SKIP_UNSKIPPABLE: PolicyRow(Right.NO, Right.NO, why="its author says that it must be done"),
    Act.OVERRIDE: PolicyRow(Right.YES, Right.NO, why="it is an approval"),
    Act.SKIP_UNDO: _PEOPLE_AND_AGENTS,
    Act.RETRY: _PEOPLE_AND_AGENTS,
    Act.ACCEPT: _PEOPLE_AND_AGENTS,
    Act.ACCEPT_CHECKS: PolicyRow(Right.YES, Right.IF_SKIPPING, why="it has a check, which accepting would skip"),
    Act.ANSWER: PolicyRow(Right.YES, Right.IF_APPROVING, why="an approval is answered by a person"),
    Act.RECORD: _EVERYBODY,
    Act.SAVE_PLAN: _PEOPLE_AND_AGENTS,
    Act.RETIRE_PLAN: PolicyRow(Right.YES, Right.NO, why="only people retire plans"),
    Act.EXECUTE: PolicyRow(Right.NO, Right.NO, Right.YES, why="only handrail itself executes runs"),
    Act.ADOPT: PolicyRow(Right.YES, Right.NO, why="only people move runs between projects"),
    Act.PAUSE_NODE: PolicyRow(Right.YES, Right.NO, why="only people decide which machines work"),
    # handrail itself archives where [retention] of HANDRAIL_HOME says so; nothing is lost by that.
    Act.ARCHIVE: PolicyRow(Right.YES, Right.NO, Right.YES, why="only the operator decides what leaves the journal"),
    Act.DELETE_ARCHIVED: PolicyRow(Right.YES, Right.NO, why="only a person deletes what was archived"),
    Act.NOTIFY: PolicyRow(Right.YES, Right.NO, why="only people decide who is notified"),
    Act.OPERATE: PolicyRow(Right.YES, Right.NO, why="only the operator changes what is stored"),
}

HOW_A_PERSON: Final[Mapping[Act, str]] = {
    Act.ARCHIVE: "ask the operator: `handrail db archive RUN`",
    Act.DELETE_ARCHIVED: "ask the operator: `handrail db archive --delete RUN`",
    Act.RESUME_FOR_PERSON: "ask the person to resume it: `handrail run resume RUN`",
    Act.SUBMIT_AFTER_LIMIT: "ask the user to decide: `handrail run retry RUN STEP` or `handrail run skip RUN STEP`",
    Act.SKIP_CHECKS: "do the step and submit it, or ask the user to run `handrail run skip RUN STEP`",
    Act.SKIP_RESERVED: "ask the user to run `handrail run skip RUN STEP`",
    Act.SKIP_UNSKIPPABLE: "do the step, or cancel the run",
    Act.OVERRIDE: "wait for the answer, or ask the user to run `handrail approve RUN STEP`",
    Act.ACCEPT_CHECKS: "retry the step, or ask the user to run `handrail run accept RUN STEP`",
    Act.ANSWER: "ask the user to run `handrail approve RUN STEP` or `handrail reject RUN STEP`",
    Act.RETIRE_PLAN: "ask the user to run `handrail plan retire PLAN`",
    Act.EXECUTE: "leave it to handrail: the run goes on by itself",
    Act.ADOPT: "ask the user to run `handrail project adopt RUN`",
    Act.PAUSE_NODE: "ask the user to run `handrail nodes pause NODE`",
    Act.NOTIFY: "ask the operator: `handrail webhooks list`",
    Act.OPERATE: "ask the operator of this handrail",
}
"""What an actor who may not do it can do instead."""


def may(actor: str, act: Act, policy: OwnerPolicy = DEFAULT_POLICY) -> PolicyVerdict:
    """Whether this actor may do this; if not, why, and what to do instead."""
    row, kind = TABLE[act], kind_of(actor)
    right = {ActorKind.PERSON: row.person, ActorKind.AGENT: row.agent}.get(kind, row.engine)
    if _holds(right, policy):
        return ALLOWED
    who = "an agent" if kind is ActorKind.AGENT else actor
    reason = f": {row.why}" if row.why else ""
    return Refused(why=f"{who} may not {act.value}{reason}", who_may=HOW_A_PERSON.get(act, "ask the user to do it"))


def _holds(right: Right, policy: OwnerPolicy) -> bool:
    match right:
        case Right.IF_SKIPPING:
            return policy.agents_may_skip_checks
        case Right.IF_APPROVING:
            return policy.answers.agents_may_approve
        case _:
            return right is Right.YES
