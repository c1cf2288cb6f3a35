"""What stays behind, in words, for the options that undo or end a run. Pure.

The steps are found in domain/scheduling/compensation.py."""

from __future__ import annotations

from typing import Final

from handrail.domain.definition.model import Definition
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_HALF_DONE
from handrail.domain.scheduling.compensation import not_undone, undo_order

NAMED_MAX: Final = 10
"""How many steps are named in one line."""


def with_effects(means: str, run: Run, definition: Definition, *, is_undone: bool) -> str:
    """What stays behind, added to what an action does; of some it is not known whether they had an effect."""
    undone = frozenset(undo_order(run, definition) if is_undone else ())
    left = [path for path in not_undone(run, definition) if path not in undone]
    unknown = dict.fromkeys(path for path in left if run.step(path).status in STEP_HALF_DONE)
    word = "can't be undone, stays" if is_undone else "what was done stays"
    parts = {word: [path for path in left if path not in unknown], "unknown whether it had an effect": [*unknown]}
    return (means + "; ".join(f"{lead}: {named(paths)}" for lead, paths in parts.items() if paths)).removesuffix("; ")


def named(paths: list[str]) -> str:
    """The names of steps in one line, the first few of them."""
    more = len(paths) - NAMED_MAX
    return ", ".join(paths[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
