"""How a person answers an approval at the command line: everything that is asked is shown first, then they decide.

A terminal asks for the yes, the reason and, where one is required, the passphrase. Without a terminal the answer names
the digest of what it is to. Whether it counts is decided in the engine (engine/running/answers.py)."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from dataclasses import replace
from shlex import quote
from typing import Any, Final

from msgspec import Struct

from handrail.assembly.opening import open_assembly, open_reader, open_writer
from handrail.assembly.people import answer_rules
from handrail.domain.errors import Forbidden, Invalid
from handrail.domain.policy.actor import name_of
from handrail.domain.policy.answering import TERMINAL
from handrail.domain.run.approval_words import answerers_words, call_lines
from handrail.domain.run.legal_controls import Action
from handrail.domain.trust.decision import withheld_words
from handrail.engine.reading.approvals import PendingApproval
from handrail.engine.reading.run_view import Status, WaitingFor, WaitingKind
from handrail.engine.running.answer_trial import AnswerTrial
from handrail.engine.running.answers import AnswerGiven
from handrail.foundation.visible_text import visible
from handrail.interfaces.cli.program import person
from handrail.interfaces.cli.run.execution import execute
from handrail.interfaces.cli.words.asking import can_ask, require_yes, required_reason
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.cli.words.times import TimeFormat, time_format
from handrail.interfaces.pictures.caption import plain
from handrail.settings import Settings

COMMAND: Final = "command"
"""The channel of an answer that was given without a terminal."""
NOTHING_SHOWN: Final = "nothing that was shown"
"""In place of a digest: no question has it, so the engine refuses the answer and says what is wrong."""


class TypedAnswer(Struct, frozen=True, kw_only=True):
    """An answer as it was typed in the command."""

    action: Action
    run: str
    step: str = ""
    reason: str = ""
    digest: str = ""
    content: Any = None
    may_execute: bool = True
    """Whether this process may execute the run, to ask again what has expired."""


async def asked_person(settings: Settings, typed: TypedAnswer) -> tuple[str, AnswerGiven]:
    """Show what is asked and take the decision of the person at the terminal: the reason, and how the answer came."""
    if not can_ask():
        return await _unseen(settings, typed)
    one = await _asked(settings, typed)
    if one is None:
        return typed.reason or NOTHING_SHOWN, AnswerGiven(channel=TERMINAL, digest=NOTHING_SHOWN)
    given = AnswerGiven(channel=TERMINAL, digest=typed.digest or one.digest)
    await _require_would_count(settings, typed, one, given)
    print_question(await _whole(settings, typed.run, one.step), time_format())
    require_yes("an approval is answered at a terminal", f"{typed.action.value.capitalize()} this?")
    reason = required_reason(typed.reason)
    proof = getpass.getpass("Passphrase: ") if answer_rules(settings).passphrase else None
    return reason, replace(given, proof=proof)


async def _unseen(settings: Settings, typed: TypedAnswer) -> tuple[str, AnswerGiven]:
    """The answer of somebody without a terminal, who has looked before; the engine refuses it if it does not count."""
    is_blind = typed.action is Action.APPROVE and not typed.digest
    reason = required_reason(typed.reason, also="--digest" if is_blind else "")
    one = await _asked(settings, typed)
    if is_blind and one is not None:
        raise Invalid(
            "without a terminal, an approval needs --digest: nothing was approved",
            hint="`handrail approvals --json` shows what is asked, the effects that follow and the digest",
        )
    given = AnswerGiven(channel=COMMAND, digest=typed.digest)
    if one is not None and _is_withheld(settings, one.by):
        await _require_would_count(settings, typed, one, given)
    return reason, given


async def _asked(settings: Settings, typed: TypedAnswer) -> WaitingFor | None:
    """What is asked now; if it has expired, it is asked again first."""
    async with open_reader(settings) as look:
        reader = look.run_reader()
        await reader.require_own(typed.run)
        one = _waiting(await reader.status(typed.run), typed.step)
    if one is None or not typed.may_execute or not time_format().is_over(one.expires):
        return one
    return _waiting(await _asked_again(settings, typed.run), typed.step)


async def _asked_again(settings: Settings, run_id: str) -> Status:
    """The run after it went on: what has expired is asked again, with a new digest."""
    async with open_assembly(settings, picks_up=False) as parts:
        await parts.recorder.settle(await parts.writer.dispatch.own(run_id))
        return await execute(parts, run_id, is_watched=False, as_json=False)


async def _require_would_count(settings: Settings, typed: TypedAnswer, one: WaitingFor, given: AnswerGiven) -> None:
    try:
        async with open_writer(settings) as writer:
            trial = AnswerTrial(writer.control.answers, writer.dispatch, await writer.dispatch.own(typed.run))
            await trial.require_counts(typed.action, one.step, actor=person(), content=typed.content, given=given)
    except Forbidden as error:
        if not _is_withheld(settings, one.by):
            raise
        hint = f"{error.hint}; {withheld_words(settings.trust.state)}"
        raise Forbidden(str(error), hint=hint) from error


def _is_withheld(settings: Settings, by: Sequence[str]) -> bool:
    """Whether this person belongs to a group that is asked, by a file of the project that does not count."""
    groups = settings.project_tables.get("groups", {}) if settings.trust.is_off else {}
    return any(name_of(person()) in groups.get(who, ()) for who in by)


def overriding(settings: Settings) -> AnswerGiven:
    """How a step is skipped, in case it is an approval: the passphrase is asked for where approvals need one."""
    if not can_ask():
        return AnswerGiven(channel=COMMAND)
    needs_proof = answer_rules(settings).passphrase
    proof = getpass.getpass("Passphrase (only if the step is an approval): ") if needs_proof else None
    return AnswerGiven(channel=TERMINAL, proof=proof or None)


def _waiting(seen: Status, step: str) -> WaitingFor | None:
    """The approval that is meant; none if it does not wait, or if it is not clear which one."""
    asked = [one for one in seen.waiting_for if one.kind is WaitingKind.APPROVAL and step in {"", one.step}]
    return asked[0] if len(asked) == 1 else None


async def _whole(settings: Settings, run_id: str, step: str) -> PendingApproval:
    """What a yes lets happen, with every argument: what the journal keeps of it is shortened."""
    async with open_assembly(settings, picks_up=False) as parts:
        return await parts.approvals.one(run_id, step, actor=person(), channel=TERMINAL)


def print_question(asked: PendingApproval, shown: TimeFormat) -> None:
    """Print everything that is asked, on stderr."""
    one = asked.asked
    say(f"{asked.run} asks for approval of {quote(one.step)}", bold=True, err=True)
    for line in one.text.splitlines() or [""]:
        say(f"  {visible(line)}", err=True)
    if asked.ahead:
        say("what follows:", err=True)
    for line in (line for call in asked.ahead for line in call_lines(call)):
        say(f"  {visible(line)}", err=True)
    if asked.ahead_unshown:
        say(f"  and {asked.ahead_unshown} more", fg="yellow", err=True)
    who = answerers_words(one.by, one.approvals, one.not_by, one.approved_by)
    say(f"who may answer: {plain(who)}", err=True)
    if one.expires:
        say(f"expires: {shown.ago(one.expires)}", err=True)
    say(f"digest: {one.digest}", err=True)
