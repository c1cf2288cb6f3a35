"""States: when two runs on different ways through a workflow are the same, as far as what comes after them goes.

Pure. A value counts only as long as somebody may still read it: so ways that differ in what is over and forgotten are
followed once, and a workflow with many forks can be looked at as a whole."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from handrail.domain.definition import Call, Definition, Each, Effect, Repeat, Step
from handrail.domain.effect import effect_of
from handrail.domain.path import UNDO, locate
from handrail.domain.rehearsing.relevance import INPUTS, OUTPUTS, TOP, VARS, Relevant
from handrail.domain.rehearsing.script import names_in, plain
from handrail.domain.run import Run
from handrail.domain.status import STEP_ENDED, STEP_SATISFIED, StepStatus

_round = re.compile(r"\[(\d+)\]")
_inner = re.compile(r"[.\[!]")


class States:
    """What the states of one workflow are told apart by."""

    def __init__(self, definition: Definition, relevant: Relevant) -> None:
        self.definition, self.relevant = definition, relevant
        steps = names_in(definition)
        self._containers = {name for name, step in steps if isinstance(step.work, Call | Each | Repeat)}
        self._lasting = {step.id for step in definition.steps if _is_lasting(definition, step)}
        self._places: dict[str, tuple[str, str, str]] = {}

    def key(self, run: Run) -> bytes:
        """A state, as far as what comes after it depends on it."""
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
        """Whether nothing depends any more on how a step has ended."""
        if run.step(name).status not in STEP_SATISFIED or name in self._lasting:
            return False
        readers = self.relevant.readers.get((TOP, name), {})
        return all(reader != OUTPUTS and run.step(reader).status in STEP_ENDED for reader in readers)

    def _live(self, run: Run, path: str, last: Mapping[str, int]) -> Any:
        """What is still needed of a step's output; of rounds that are over, nothing."""
        output = run.step(path).output
        if output is None or any(int(found[1]) < last[path[: found.start()]] for found in _round.finditer(path)):
            return None
        return self._needed(run, self.place(path), output)

    def _needed(self, run: Run, place: tuple[str, str, str], value: Any) -> Any:
        """A value, its outline if it is only shown, or nothing if nobody reads it any more."""
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
        """Which workflow a step belongs to, its name there, and what the paths of that workflow's steps begin with."""
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
        """The steps that were done, in the order of their ends; those that only hold others are not counted."""
        ended = [
            (state.ended or 0, path)
            for path, state in run.steps.items()
            if state.status is StepStatus.COMPLETED and UNDO not in path and plain(path) not in self._containers
        ]
        return tuple(path for _, path in sorted(ended))


def _last_rounds(run: Run) -> dict[str, int]:
    """The last round of each loop that has begun."""
    last: dict[str, int] = {}
    for path in run.steps:
        for found in _round.finditer(path):
            last[path[: found.start()]] = max(last.get(path[: found.start()], 0), int(found[1]))
    return last


def _outermost(path: str) -> str:
    return _inner.split(path, 1)[0]


def _is_lasting(definition: Definition, step: Step) -> bool:
    """Whether something of a step, or in it, may have to be undone."""
    inside = names_in(replace(definition, steps=(step,)))
    return any(effect_of(one) not in {None, Effect.NONE} for _, one in inside)


def _outline(value: Any) -> Any:
    """What there is of a value, whatever it is."""
    if isinstance(value, Mapping):
        return {key: _outline(one) for key, one in value.items()}
    return bool(value) if isinstance(value, list) else value is not None
