"""What a person is asked, in words that are the same for every reader.

Pure. Escaping for a terminal, and how much fits, is up to each interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from handrail.domain.definition.model import Effect
from handrail.domain.journal.event import EffectAhead
from handrail.domain.plural import plural
from handrail.domain.policy.answering import STARTER
from handrail.domain.preview.values import CallAhead


def effect_words(one: EffectAhead) -> str:
    """A step that an approval lets start, in one line."""
    kind = _kind(one.effect, has_undo=one.has_undo, when=one.when)
    return f"{one.step}: {one.tool or 'the agent'} ({kind})" + (f" {one.args}" if one.args else "")


def call_lines(one: CallAhead) -> Iterator[str]:
    """A call that an approval lets happen, with all its arguments, uncut: a yes covers them."""
    doer = one.tool or (f"workflow {one.workflow}" if one.workflow else f"the {one.by.value}")
    yield f"{one.step}: {doer} ({_kind(one.effect, has_undo=one.can_be_undone, when=one.when)})"
    for name, value in _arguments(one.args):
        first, *more = value.splitlines() or [""]
        yield f"    {name}: {first}"
        yield from (f"    {' ' * len(name)}  {line}" for line in more)
    if one.text:
        yield from (f"    {line}" for line in one.text.splitlines())
    if one.problem:
        yield f"    FAILS: {one.problem}"


def _arguments(args: Any) -> Iterator[tuple[str, str]]:
    given = args if isinstance(args, Mapping) else {"args": args} if args else {}
    for name, value in given.items():
        yield name, value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _kind(effect: Effect | None, *, has_undo: bool, when: str) -> str:
    condition = f", if {when}" if when else ""
    if effect is Effect.NONE:
        return f"no effect{condition}"
    stated = effect.value if effect is not None else "effect not stated"
    return f"{stated}, {'has an undo' if has_undo else 'NO undo'}{condition}"


def effect_lines(effects: Sequence[EffectAhead], unshown: int, *, at_most: int) -> list[str]:
    """The steps that an approval lets start, and how many more there are."""
    more = len(effects) - at_most + unshown if len(effects) > at_most else unshown
    lines = [effect_words(one) for one in effects[:at_most]]
    return [*lines, f"and {plural(more, 'more step')}"] if more else lines


def answerers_words(by: Sequence[str], approvals: int, not_by: str, approved_by: Sequence[str]) -> str:
    """Who may answer."""
    who = ", ".join(by) or "anyone"
    many = f"; {approvals} different people must approve" if approvals > 1 else ""
    got = f", {', '.join(approved_by)} did" if approved_by else ""
    return f"{who}{many}{got}" + ("; not who started the run" if not_by == STARTER else "")
