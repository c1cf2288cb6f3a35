"""What a person is asked, in words that are the same for every reader.

Pure. Escaping for a terminal, and how much fits, is up to each interface."""

from __future__ import annotations

from collections.abc import Sequence

from handrail.domain.definition.model import Effect
from handrail.domain.journal.event import EffectAhead
from handrail.domain.plural import plural
from handrail.domain.policy.answering import STARTER


def effect_words(one: EffectAhead) -> str:
    """A step that an approval lets start, in one line."""
    if one.effect is Effect.NONE:
        kind = "no effect"
    else:
        stated = one.effect.value if one.effect is not None else "effect not stated"
        kind = f"{stated}, {'has an undo' if one.has_undo else 'NO undo'}"
    condition = f", if {one.when}" if one.when else ""
    return f"{one.step}: {one.tool or 'the agent'} ({kind}{condition})" + (f" {one.args}" if one.args else "")


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
