"""States: whether two runs on different paths through a workflow are equal with regard to what can follow.

Pure. A value counts only as long as a later step may read it. Paths that differ only in values that are no longer read
are followed once, which makes it possible to explore workflows with many forks completely."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from handrail.domain.definition.effect import effect_of
from handrail.domain.definition.model import Call, Definition, Each, Effect, Repeat, Step
from handrail.domain.rehearsal.relevance import INPUTS, OUTPUTS, TOP, VARS, Relevant
from handrail.domain.rehearsal.script import names_in, plain
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_ENDED, STEP_SATISFIED, StepStatus
from handrail.domain.run.step_path import UNDO, locate

_round = re.compile(r"\[(\d+)\]")
_inner = re.compile(r"[.\[!]")


class States:
    """Computes the keys by which the states of one workflow are distinguished."""

    def __init__(self, definition: Definition, relevant: Relevant) -> None:
        self.definition, self.relevant = definition, relevant
        steps = names_in(definition)
        self._containers = {name for name, step in steps if isinstance(step.work, Call | Each | Repeat)}
        self._lasting = {step.id for step in definition.steps if _is_lasting(definition, step)}
        self._places: dict[str, tuple[str, str, str]] = {}

    def key(self, run: Run) -> bytes:
        """The part of a state that what follows depends on."""
        over = {step.id for step in self.definition.steps if self._is_over(run, step.id)}
        last = _last_rounds(run)
        rows = [
            (path, state.status.value, state.round, state.rounds, self._live(run, path, last))
            for path, state in run.steps.items()
            if _outermost(path) not in over
        ]
        given = {
            name: self._needed(run, (TOP, f"{root}.{name}", ""), value)
            for root, values in ((INPUTS, run.inputs), (VARS, run.vars))
            for name, value in values.items()
        }
        return msgspec.json.encode((run.status.value, given, sorted(rows, key=lambda row: row[0])))

    def _is_over(self, run: Run, name: str) -> bool:
        """Whether nothing depends on the result of a step any more."""
        if run.step(name).status not in STEP_SATISFIED or name in self._lasting:
            return False
        readers = self.relevant.readers.get((TOP, name), {})
        return all(reader != OUTPUTS and run.step(reader).status in STEP_ENDED for reader in readers)

    def _live(self, run: Run, path: str, last: Mapping[str, int]) -> Any:
        """What is still needed of a step's output; nothing for rounds that are over."""
        output = run.step(path).output
        if output is None or any(int(found[1]) < last[path[: found.start()]] for found in _round.finditer(path)):
            return None
        return self._needed(run, self.place(path), output)

    def _needed(self, run: Run, place: tuple[str, str, str], value: Any) -> Any:
        """A value, or its outline if it is only displayed, or nothing if it is not read any more."""
        scope, name, root = place
        left = [
            decides or (reader == OUTPUTS and scope != TOP)
            for reader, decides in self.relevant.readers.get((scope, name), {}).items()
            if reader == OUTPUTS or run.step(root + reader).status not in STEP_ENDED
        ]
        if not left:
            return None
        return [value] if any(left) else _outline(value)

    def place(self, path: str) -> tuple[str, str, str]:
        """The workflow that a step belongs to, its name there, and the path prefix of that workflow's steps."""
        if path not in self._places:
            self._places[path] = self._found_place(path)
        return self._places[path]

    def _found_place(self, path: str) -> tuple[str, str, str]:
        lane = locate(self.definition, path).lane
        scope = TOP
        if lane.caller:
            caller = locate(self.definition, lane.caller).step
            call = caller.undo if lane.root.endswith(f"{UNDO}.") else caller.work
            scope = call.workflow if isinstance(call, Call) else TOP
        return scope, plain(path.removeprefix(lane.root)), lane.root

    def done(self, run: Run) -> tuple[str, ...]:
        """The completed steps in the order of their ends, without those that only contain others."""
        ended = [
            (state.ended or 0, path)
            for path, state in run.steps.items()
            if state.status is StepStatus.COMPLETED and UNDO not in path and plain(path) not in self._containers
        ]
        return tuple(path for _, path in sorted(ended))


def _last_rounds(run: Run) -> dict[str, int]:
    """The last round of each loop that has started."""
    last: dict[str, int] = {}
    for path in run.steps:
        for found in _round.finditer(path):
            last[path[: found.start()]] = max(last.get(path[: found.start()], 0), int(found[1]))
    return last


def _outermost(path: str) -> str:
    return _inner.split(path, 1)[0]


def _is_lasting(definition: Definition, step: Step) -> bool:
    """Whether a step, or a step inside it, has an effect that may have to be undone."""
    inside = names_in(replace(definition, steps=(step,)))
    return any(effect_of(one) not in {None, Effect.NONE} for _, one in inside)


def _outline(value: Any) -> Any:
    """Which parts of a value are present, without the values themselves."""
    if isinstance(value, Mapping):
        return {key: _outline(one) for key, one in value.items()}
    return bool(value) if isinstance(value, list) else value is not None
