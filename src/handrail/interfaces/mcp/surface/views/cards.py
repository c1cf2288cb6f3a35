"""Cards: what a person is asked, in full, for the page in the client's window; and whether an answer there counts.

A card that may be answered carries a seal, which comes back with the answer. Clients give it to the page and not to the
model, so an agent that calls `control` itself can't say that a person pressed a button. Whether the channel counts at
all is the owner's decision, made by the same policy as for every other answer."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Any, Final

import msgspec

from handrail.assembly.opening import Assembly, carrying_key
from handrail.domain.errors import Conflict, HandrailError, NotFound
from handrail.domain.policy.actor import name_of
from handrail.domain.policy.answering import APP
from handrail.domain.run.state import Run
from handrail.domain.run.status import StepStatus
from handrail.engine.reading.run_view import WaitingFor, WaitingKind, question_view
from handrail.engine.running.answers import AnswerGiven
from handrail.interfaces.mcp.surface.approval import card_seal, is_same_seal
from handrail.interfaces.mcp.surface.caller import Caller, ToolReply
from handrail.interfaces.mcp.surface.fitting import size_of
from handrail.interfaces.mcp.surface.lazy_program import LazyProgram
from handrail.settings import local_person

CARDS: Final = "handrail/cards"
"""The key in the `_meta` of an answer."""
CARDS_MAX: Final = 5
CARD_SIZE_MAX: Final = 20_000
"""In characters. What does not fit is left out, and then the card can't be answered."""
TOO_LONG: Final = "there is more to read than fits into this window"
CONTROL: Final = "control"


def app_channel(caller: Caller, *, digest: str = "") -> AnswerGiven:
    """How an answer comes from the page in this client's window."""
    return AnswerGiven(channel=f"{APP}:{name_of(caller.actor)}", digest=digest)


async def with_cards(lazy: LazyProgram, reply: ToolReply, caller: Caller) -> ToolReply:
    """The answer with a card for each approval that the run waits for, if the client shows pages."""
    run_id = reply.data.get("run") if reply.data else None
    if not caller.shows_apps or not run_id or not (reply.data or {}).get("waiting_for"):
        return reply
    program = await lazy.open()
    seen = await program.run_reader.status(run_id)
    asked = [one for one in seen.waiting_for if one.kind is WaitingKind.APPROVAL][:CARDS_MAX]
    if not asked:
        return reply
    run = await program.run_reader.run(run_id)
    cards = [await _card(lazy, program, run, one, caller) for one in asked]
    return msgspec.structs.replace(reply, meta={**(reply.meta or {}), CARDS: cards})


async def _card(lazy: LazyProgram, program: Assembly, run: Run, one: WaitingFor, caller: Caller) -> dict[str, Any]:
    """What is asked at one step; with a seal if it may be answered, else with the reason why not."""
    card: dict[str, Any] = msgspec.to_builtins(one) | await _calls(program, run, one, caller)
    card["command"] = f"handrail approve {run.id} {quote(one.step)}"
    refused = await _refusal(lazy, program, run, one, caller)
    if size_of(card) > CARD_SIZE_MAX:
        card["unshown"] = max(one.unshown + len(card.pop("effects", ())), len(card.pop("ahead", ())))
        card["text"] = one.text[:CARD_SIZE_MAX]
        card.pop("schema", None)
        refused = refused or {"why_not": TOO_LONG}
    return {**card, **(refused or {"card": _seal(lazy, run, one, caller)})}


async def _calls(program: Assembly, run: Run, one: WaitingFor, caller: Caller) -> dict[str, Any]:
    """Every call that a yes lets happen, in full: what the question keeps of them in the journal is shortened."""
    channel = app_channel(caller).channel
    try:
        seen = await program.approvals.one(run.id, one.step, actor=local_person(), channel=channel)
    except NotFound:  # answered meanwhile: the seal of this card counts no more
        return {}
    found: dict[str, Any] = msgspec.to_builtins({"ahead": seen.ahead, "ahead_unshown": seen.ahead_unshown})
    return found


async def _refusal(
    lazy: LazyProgram, program: Assembly, run: Run, one: WaitingFor, caller: Caller
) -> Mapping[str, str] | None:
    """Why an answer on the page would not count."""
    if CONTROL not in lazy.offered:
        return {"why_not": "this server does not offer `control`"}
    try:
        await program.writer.dispatch.own(run.id)
        program.control.answers.require_answerable(run, one.step, actor=local_person(), given=app_channel(caller))
    except HandrailError as error:
        return {"why_not": str(error)}
    return None


def answered_on_page(lazy: LazyProgram, run: Run, step: str, card: str, caller: Caller) -> AnswerGiven:
    """How an answer came that carries the seal of a card; Conflict unless the card shows what is asked now."""
    state = run.step(step)
    asked = question_view(step, state)
    is_asked = state.status is StepStatus.WAITING and bool(asked.digest)
    if not is_asked or not is_same_seal(card, _seal(lazy, run, asked, caller)):
        raise Conflict(
            f"this is no answer to what {step or 'the run'!r} asks now: it was answered or has changed",
            hint="look at the page again: it shows what is asked now; or ask a person to run `handrail approve RUN`",
        )
    return app_channel(caller, digest=asked.digest)


def _seal(lazy: LazyProgram, run: Run, asked: WaitingFor, caller: Caller) -> str:
    return card_seal(carrying_key(lazy.settings), caller.actor, run.id, asked)
