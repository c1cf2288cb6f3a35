"""Who may answer an approval: one pure question, asked wherever an answer comes in.

Whether an answer is to what was shown is decided in run/decide_step.py, by its digest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from handrail.domain.policy.actor import ActorKind, kind_of, name_of
from handrail.domain.policy.verdict import ALLOWED, PolicyVerdict, Refused

STARTER: Final = "starter"
OVERRIDING: Final = "skip this approval"
TERMINAL: Final = "terminal"
APP: Final = "app"
USUAL_CHANNELS: Final = (TERMINAL, "command", "console", "elicitation", "task", "library", "agent")
"""The ways an answer can come that count unless the owner names others: typed at a terminal, by a command without one,
in the console, by a form that an MCP client shows (`elicitation:claude-code`) or by its task, by a script, or by an
agent itself."""
CHANNELS: Final = (*USUAL_CHANNELS, APP)
"""All of them. A page of ours in the window of an agent's client (`app:claude-desktop`) counts only where the owner
names it: its calls come the same way as the agent's own, and only the client knows that a person pressed a button."""


class AnswerRules(Struct, frozen=True, kw_only=True):
    """What this installation allows."""

    agents_may_approve: bool = False
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The members of the groups that steps name in `by`."""
    channels: tuple[str, ...] = USUAL_CHANNELS
    """The channels that count, by kind or in full."""
    passphrase: bool = False
    """Whether every answer needs the passphrase."""


class AnswerBy(Struct, frozen=True, kw_only=True):
    """Who answers, how, and for which person."""

    actor: str
    channel: str = ""
    behalf: str = ""
    """The person that an agent answers for."""
    is_proven: bool = False
    """Whether the passphrase was given, and is right."""


class AskedOf(Struct, frozen=True, kw_only=True):
    """Who is asked."""

    by: tuple[str, ...] = ()
    approvals: int = 1
    """How many different people must approve."""
    not_by: str = ""
    starter: str = ""
    """The actor who started the run."""
    behalf: str = ""
    """The person that an agent started it for."""


def may_answer(answer: AnswerBy, asked: AskedOf, rules: AnswerRules) -> PolicyVerdict:
    """Whether this answer counts; what a refusal says never names a setting to an agent."""
    for refused in (
        _no_person(answer, asked, rules),
        _no_channel(answer, rules),
        _not_asked(answer, asked, rules),
        _started_it(answer, asked),
        _unproven(answer, rules),
    ):
        if refused is not None:
            return refused
    return ALLOWED


def may_override(answer: AnswerBy, asked: Iterable[AskedOf], rules: AnswerRules) -> PolicyVerdict:
    """Whether this person may go past these approvals. Only who may answer each of them may go past it, in a way that
    counts for an answer; otherwise `by`, `not_by` and a passphrase would only hold until somebody skips the step. One
    person is enough where `approvals` asks for several: an override is a decision, and stays visible as one."""
    for one in asked:
        if refused := _not_asked(answer, one, rules, OVERRIDING) or _started_it(answer, one, OVERRIDING):
            return refused
    return _no_channel(answer, rules) or _unproven(answer, rules) or ALLOWED


def _no_person(answer: AnswerBy, asked: AskedOf, rules: AnswerRules) -> Refused | None:
    # Two agents are not two people: an agent chooses its own name, and acts for somebody who may answer, too.
    is_several = asked.approvals > 1
    if kind_of(answer.actor) is ActorKind.PERSON or (rules.agents_may_approve and not is_several):
        return None
    return Refused(
        why=f"an agent can't answer an approval: {f'{asked.approvals} people' if is_several else 'a person'} must",
        who_may="ask a person to look at it and run `handrail approve RUN STEP` at a terminal",
    )


def _no_channel(answer: AnswerBy, rules: AnswerRules) -> Refused | None:
    # Answers from before channels were recorded, and of the engine's own tests, come without one.
    kind = answer.channel.partition(":")[0]
    if kind in rules.channels or answer.channel in rules.channels or (not kind and rules.channels == USUAL_CHANNELS):
        return None
    counting = ", ".join(rules.channels)
    return Refused(
        why=f"an answer by {kind or 'an unnamed channel'} does not count here: only by {counting or 'nothing'}",
        who_may=_hint(answer, "ask a person to answer in another way", "[approvals] channels in {}"),
    )


def _not_asked(answer: AnswerBy, asked: AskedOf, rules: AnswerRules, what: str = "answer") -> Refused | None:
    name = name_of(answer.actor)
    # An agent chooses its own name, so no name makes it one of the people who are asked.
    is_person = kind_of(answer.actor) is ActorKind.PERSON
    is_named = is_person and any(name == who or name in rules.groups.get(who, ()) for who in asked.by)
    if is_named or not asked.by:
        return None
    known = [who for who in asked.by if rules.groups.get(who)]
    unknown = "" if known else ", and no person or group is known here by that name"
    return Refused(
        why=f"{answer.actor} may not {what}: this is for {', '.join(asked.by)}{unknown}",
        who_may=_hint(answer, "ask one of them", "who belongs to a group is said in [groups] in {}"),
    )


def _started_it(answer: AnswerBy, asked: AskedOf, what: str = "answer for it") -> Refused | None:
    # A person who started it by an agent has started it: otherwise four eyes would be two with an agent in between.
    started = {asked.starter, asked.behalf} - {""}
    if asked.not_by != STARTER or not started & {answer.actor, answer.behalf}:
        return None
    return Refused(
        why=f"{answer.behalf or answer.actor} started this run, and may not {what}",
        who_may="ask another person",
    )


def _unproven(answer: AnswerBy, rules: AnswerRules) -> Refused | None:
    if answer.is_proven or not rules.passphrase:
        return None
    needed = "approvals need a passphrase here, typed at a terminal"
    what = (
        "the passphrase is missing" if answer.channel == TERMINAL else f"an answer by {answer.channel} does not count"
    )
    return Refused(
        why=f"{what}: {needed}",
        who_may="ask a person to run `handrail approve RUN STEP` at a terminal",
    )


def _hint(answer: AnswerBy, everyone: str, person: str) -> str:
    """The hint: a person also sees where it is configured."""
    # To an agent a setting is something that it could try to change.
    if kind_of(answer.actor) is not ActorKind.PERSON or answer.channel != TERMINAL:
        return everyone
    return f"{everyone}; {person.format('config.toml in HANDRAIL_HOME')}"
