"""Which names each approval of a definition uses, so that most changes are seen not to matter without a comparison.

Pure, and only about the definition: computed once for each approval and cached."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from msgspec import Struct

from handrail.domain.checks.finding import Path
from handrail.domain.definition.model import Approve, Call, Definition, Each, Repeat, Rounds, Tool
from handrail.domain.run.approval_reach import StepAhead, steps_ahead
from handrail.domain.run.scope import read_by, spoken_of
from handrail.domain.run.step_path import locate

ANY: Final = "*"
"""Stands for every name: which one is meant is only known at run time."""
DEFINITIONS_KEPT: Final = 100

_round = re.compile(r"\[\d+\]")


class Uses(Struct, frozen=True):
    """The variables and steps that an approval uses, in its text or in what it lets start."""

    vars: frozenset[str]
    steps: frozenset[str]
    """Ids of steps, wherever they are: more than are meant, never fewer."""

    def are_touched(self, names: Collection[str], steps: Collection[str]) -> bool:
        """Whether a change of these variables and steps could change what was asked."""
        if names and (ANY in self.vars or not self.vars.isdisjoint(names)):
            return True
        if not steps or not self.steps:
            return False
        return ANY in self.steps or any(_id_of(path) in self.steps for path in steps)


_known: dict[int, tuple[Definition, dict[str, Uses]]] = {}


def uses_of(definition: Definition, path: str) -> Uses:
    """What an approval uses; the same for all rounds of a loop that it is in."""
    # By identity, as in step_order.py: comparing definitions would cost more than it saves.
    kept = _known.get(id(definition))
    if kept is None or kept[0] is not definition:
        if len(_known) >= DEFINITIONS_KEPT:
            _known.clear()
        kept = _known[id(definition)] = (definition, {})
    table, name = kept[1], _round.sub("", path)
    if name not in table:
        table[name] = _uses(definition, path)
    return table[name]


def _uses(definition: Definition, path: str) -> Uses:
    paths = list(_read_paths(definition, path))
    names = (str(read[1]) if len(read) > 1 else ANY for read in paths if read[0] == "vars")
    steps = (name for read in paths if read[0] == "steps" for name in _step_names(read))
    return Uses(frozenset(names), frozenset(steps))


def _read_paths(definition: Definition, path: str) -> Iterator[Path]:
    found = locate(definition, path)
    if isinstance(found.step.work, Approve):
        yield from spoken_of(found.step.work.approve, found.lane)
    for one in steps_ahead(definition, path):
        yield from paths_read(one)


def paths_read(one: StepAhead) -> Iterator[Path]:
    """What decides on a step ahead: whether it starts, with which arguments, how often."""
    step, lane = one.step, one.lane
    if step.when is not None:
        yield from read_by(step.when, lane)
    match step.work:
        case Tool(args=args):
            yield from spoken_of(args, lane)
        case Call(with_=given):
            yield from spoken_of(given, lane)
        case Each(items=items):
            yield from read_by(items, lane)
        case Repeat(repeat=Rounds(until=until, while_=while_)):
            for condition in filter(None, (until, while_)):
                yield from read_by(condition, lane)
        case _:
            pass


def _step_names(read: Path) -> list[str]:
    names = [key for key in read[1:] if isinstance(key, str)]
    return names if len(read) > 1 and isinstance(read[1], str) else [ANY]


def _id_of(path: str) -> str:
    return path.rpartition(".")[2].partition("[")[0]
