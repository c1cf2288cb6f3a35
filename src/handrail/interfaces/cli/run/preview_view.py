"""Prints previews of controls: what would be called, in which order, and what stays behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from handrail.domain.definition.model import Effect
from handrail.domain.preview.values import CallAhead, ControlPreview, EffectLeft, Hand, Lasting
from handrail.interfaces.cli.words.own_command import own_program
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.control_twins import command_twin
from handrail.interfaces.pictures.caption import plain

SHOWN_MAX: Final = 50
WHY: Final = {
    Lasting.NO_UNDO: "it has no undo",
    Lasting.UNKNOWN: "whether it happened is unknown",
    Lasting.GIVEN_UP: "its undo was given up",
    Lasting.UNDO_FAILS: "its undo fails",
    Lasting.NOT_UNDONE: "it is not undone by this",
}


def print_preview(seen: ControlPreview) -> None:
    """Print what a control would do; nothing was changed."""
    on = f" {seen.step}" if seen.step else ""
    say(f"{seen.action.value} {seen.run}{on}: {plain(seen.means or seen.message)}", bold=True)
    if not seen.legal:
        say(f"  not possible now: {plain(seen.hint)}", fg="yellow")
    if not seen.allowed:
        say(f"  you may not: {plain(seen.why)}; {plain(seen.who_may)}", fg="yellow")
    for line in _lines(seen):
        say(f"  {plain(line)}")
    if seen.legal:
        command = command_twin(seen.run, seen.action, seen.step, program=own_program())
        say(f"nothing was changed; to do it: {command}", err=True)


def _lines(seen: ControlPreview) -> Iterator[str]:
    yield from (f"{one.step}: {one.was.value} -> {one.becomes.value}" for one in seen.changes[:SHOWN_MAX])
    yield from (_call(one) for one in seen.calls[:SHOWN_MAX])
    if (more := len(seen.calls) + seen.unshown - SHOWN_MAX) > 0:
        yield f"and {more} more"
    if seen.fork is not None:
        yield f"takes over: {', '.join(seen.fork.carried) or 'nothing'}"
        yield f"does again: {', '.join(seen.fork.again)}"
    yield from (_left(one) for one in seen.stays[:SHOWN_MAX])
    yield from seen.notes


def _call(one: CallAhead) -> str:
    verb = "undo" if one.is_undo else "then"
    args = msgspec.json.encode(one.args).decode() if one.args else ""
    trouble = f" FAILS: {one.problem}" if one.problem else ""
    return f"{one.order}. {verb} {one.step}{_doer(one)} {args}{_no_way_back(one)}{trouble}".rstrip()


def _doer(one: CallAhead) -> str:
    if one.by is Hand.HANDRAIL:
        return f": puts back what was there before {one.tool}" if one.own_undo else f": {one.tool or one.workflow}"
    return f" by {one.by.value}: {one.tool or one.text}"


def _no_way_back(one: CallAhead) -> str:
    has_effect = one.effect is not None and one.effect is not Effect.NONE
    return " (CAN'T be undone)" if has_effect and not one.is_undo and not one.can_be_undone else ""


def _left(one: EffectLeft) -> str:
    return f"STAYS: {one.step} {one.tool} ({WHY[one.why]})"
