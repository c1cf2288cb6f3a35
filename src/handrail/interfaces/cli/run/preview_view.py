"""Prints previews of controls: what would be called, in which order, and what stays behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from handrail.domain.preview.values import CallAhead, ControlPreview, EffectLeft, Hand, Lasting
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
        say(f"nothing was changed; to do it: {command_twin(seen.run, seen.action, seen.step)}", err=True)


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
    what = one.tool or one.workflow or (one.text if one.by is not Hand.HANDRAIL else "")
    who = "" if one.by is Hand.HANDRAIL else f" by {one.by.value}"
    back = "" if one.is_undo or one.can_be_undone or one.effect in {None, "none"} else " (CAN'T be undone)"
    trouble = f" FAILS: {one.problem}" if one.problem else ""
    return f"{one.order}. {verb} {one.step}{who}: {what} {args}{back}{trouble}".rstrip()


def _left(one: EffectLeft) -> str:
    return f"STAYS: {one.step} {one.tool} ({WHY[one.why]})"
