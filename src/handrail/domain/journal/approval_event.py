"""Events of approvals: what a person was asked, the answers, and why a question no longer counts.

Part of a run's stream. event.py has all other events of a run; domain/run/approval.py decides what is asked."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import Struct

from handrail.domain.definition.model import Effect
from handrail.domain.journal.fact import Fact


class About(StrEnum):
    """What a person is asked during a step: about a tool that has changed, or a question of the tool."""

    TOOL = "tool"
    QUESTION = "question"


class EffectAhead(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step that an approval lets start, as the person who is asked sees it; `args` is shortened text."""

    step: str
    title: str = ""
    tool: str = ""
    effect: Effect | None = None
    has_undo: bool = False
    when: str = ""
    args: str = ""


class ApprovalRequested(Fact, frozen=True):
    """A person was asked; the answer is bound to the digest of what was shown: the text and the effects that follow.

    With `about`, the step is a tool step, which continues once it is answered; `schema` is the form of the answer."""

    step: str
    digest: str
    text: str
    by: tuple[str, ...] = ()
    expires: int | None = None
    about: About | None = None
    schema: Any = None
    effects: tuple[EffectAhead, ...] = ()
    unshown: int = 0
    """How many more effects follow than are listed; the digest covers all of them."""
    approvals: int = 1
    not_by: str = ""


class ApprovalGiven(Fact, frozen=True):
    """A person approved exactly what the digest identifies; `content` is the answer that was asked for.

    `channel` is how it came, `behalf` the person that an agent gave it for; `missing` others must still approve."""

    step: str
    digest: str
    reason: str
    content: Any = None
    channel: str = ""
    behalf: str = ""
    missing: int = 0


class ApprovalRejected(Fact, frozen=True):
    """A person rejected it."""

    step: str
    digest: str
    reason: str
    channel: str = ""
    behalf: str = ""


class ApprovalExpired(Fact, frozen=True):
    """The time to answer passed without an answer: the step has failed, or is asked `again`."""

    step: str
    again: bool = False


class ApprovalWithdrawn(Fact, frozen=True):
    """A value that the question used has changed: no answer to this digest counts any longer, and it is asked again."""

    step: str
    digest: str
    changed: tuple[str, ...] = ()


ApprovalEvent: TypeAlias = ApprovalRequested | ApprovalGiven | ApprovalRejected | ApprovalExpired | ApprovalWithdrawn
