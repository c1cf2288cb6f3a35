"""Paths: tries every path through a workflow, and reports what is reached, what never is, and which values are missing.

Pure and bounded. Values come from schemas and from what conditions compare them with (relevance.py, samples.py). A
state that was seen before is not explored again. The report always says what was not tried."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.judgement import PlainRuleSet, judge
from handrail.domain.definition.effect import brings_own_undo, effect_of
from handrail.domain.definition.model import Category, Definition, Effect, Prompt, Tool
from handrail.domain.journal.event import AttemptFailed, Event, RunFailed, StepFailed, UndoFailed
from handrail.domain.rehearsal.branches import Branch, branches_of, branches_taken
from handrail.domain.rehearsal.hints import TEXT
from handrail.domain.rehearsal.question import (
    ApprovedResult,
    AwaitedStep,
    DoneResult,
    FailedResult,
    Performer,
    RejectedResult,
    StepResult,
)
from handrail.domain.rehearsal.relevance import INPUTS, TOP, VARS, Relevant, relevant
from handrail.domain.rehearsal.samples import part_of, required_only, sample, variants, with_read
from handrail.domain.rehearsal.script import names_in, plain
from handrail.domain.rehearsal.stage import SimulatedRun, started
from handrail.domain.rehearsal.states import States
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_WORKING, StepStatus
from handrail.domain.run.step_path import UNDO, locate

STATES_MAX: Final = 5_000
WAITS: Final = "waiting"
DECIDING: Final = frozenset({"expression", "equals"})
"""Rules that decide which values go together; rules about texts would only refuse the words of a sample."""

# How the expression language reports a missing value; other errors may be caused by the values that were tried.
_missing = re.compile(r"\bnull\b|has no field '[^']*' \(known|no value yet|there is no \[")


class Missing(Struct, frozen=True, order=True):
    """A value that a step reads although it is not set on some path."""

    step: str
    message: str


class Paths(Struct, frozen=True, kw_only=True):
    """The result of exploring all paths."""

    states: int
    """How many states were explored; paths that reach the same state are followed once."""
    is_whole: bool
    """Whether everything was tried that should be."""
    ends: frozenset[str]
    reached: tuple[Branch, ...]
    unreached: tuple[Branch, ...]
    missing: tuple[Missing, ...]
    longest: tuple[str, ...]
    """The steps of the longest path; loops and inlined workflows are represented by their steps."""
    without_undo: tuple[str, ...]
    not_tried: tuple[str, ...]


def explore(definition: Definition, rule_set: PlainRuleSet, *, most: int = STATES_MAX) -> Paths:
    """Try every path through a definition, up to `most` states."""
    return _Explorer(definition, rule_set, most).explored()


class _Explorer:
    def __init__(self, definition: Definition, rule_set: PlainRuleSet, most: int) -> None:
        self.definition, self.rule_set = definition, rule_set
        self.relevant: Relevant = relevant(definition)
        self.left = self.most = most
        self.seen: dict[bytes, int] = {}
        self.states = States(definition, self.relevant)
        self.failed: set[str] = set()
        self.ends: set[str] = set()
        self.reached: set[Branch] = set()
        self.missing: dict[Missing, None] = {}
        self.odd: dict[str, None] = {}
        self.longest: tuple[str, ...] = ()
        self.outputs: dict[str, list[Any]] = {}

    def explored(self) -> Paths:
        self._from([started(self.definition, *given) for given in self._starts()])
        known = branches_of(self.definition)
        if self.left <= 0:
            self.odd[f"exploration stopped after {self.most:,} states"] = None
        return Paths(
            states=self.most - max(0, self.left),
            is_whole=self.left > 0,
            ends=frozenset(self.ends),
            reached=tuple(branch for branch in known if branch in self.reached),
            unreached=tuple(branch for branch in known if branch not in self.reached),
            missing=tuple(self.missing),
            longest=self.longest,
            without_undo=tuple(_without_undo(self.definition)),
            not_tried=tuple(self.odd),
        )

    # --- starts ----------------------------------------------------------------------------

    def _starts(self) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        schemas = self.definition.inputs
        asked = [name for name, schema in schemas.items() if "default" not in schema]
        schema = {"type": "object", "properties": schemas, "required": asked}
        tries = self.relevant.tries.get((TOP, INPUTS), {})
        inputs, is_whole = variants(sample(schema), schema, tries)
        if not is_whole:
            self.odd["inputs were varied one at a time, not in all combinations"] = None
        for given in inputs:
            complete = {name: one.get("default") for name, one in schemas.items() if "default" in one} | given
            for variables in self._variables():
                yield complete, variables

    def _variables(self) -> Iterator[Mapping[str, Any]]:
        """All variables set; then each with another value or missing, one at a time."""
        choices = {name: self._values(name) for name in self.relevant.variables}
        usual = {name: values[0] for name, values in choices.items()}
        yield usual
        for name, values in choices.items():
            yield {key: value for key, value in usual.items() if key != name}
            yield from ({**usual, name: value} for value in values[1:])

    def _values(self, name: str) -> list[Any]:
        """What to try for a variable."""
        tries = self.relevant.tries.get((TOP, VARS), {})
        own = {path[1:]: values for path, values in tries.items() if path[:1] == (name,)}
        return variants(TEXT, None, own)[0]

    # --- from state to state ------------------------------------------------------------------------

    def _from(self, starts: Sequence[Run]) -> None:
        """Explore the usual path first, then all that differ from it once, twice, and so on."""
        stages = [self._stage(run) for run in starts]
        pending = [stages[:1], stages[1:]]
        while self.left > 0 and (depth := _first(pending)) is not None:
            usual, *others = self._behind(pending[depth].pop())
            pending[depth] += filter(None, [usual])
            if depth + 1 == len(pending):
                pending.append([])
            pending[depth + 1] += filter(None, others)

    def _behind(self, stage: SimulatedRun) -> list[SimulatedRun | None]:
        """The states that follow a state, the usual one first; None for those seen before."""
        asked = stage.advance()
        self._note(stage)
        self.reached |= branches_taken(self.definition, stage.run)
        if asked is None:
            self._end(stage.run)
            return [None]
        if asked.trouble:
            self._note_trouble(stage.run, asked.name, asked.trouble)
        return [self._answered(stage.run, asked, answer) for answer in self._answers(asked, stage.run)]

    def _stage(self, run: Run) -> SimulatedRun:
        return SimulatedRun(self.definition, run, check=_with_defaults)

    def _answered(self, run: Run, asked: AwaitedStep, answer: StepResult) -> SimulatedRun | None:
        """The run after a result; None if that state was seen before."""
        stage = self._stage(run)
        stage.answer(asked, answer)
        self._note(stage)
        key = self.states.key(stage.run)
        done = len(self.states.done(stage.run))
        if self.seen.get(key, -1) >= done:
            return None  # what follows is known; only a longer path to this state would matter
        self.seen[key] = done
        self.left -= 1
        return stage

    def _answers(self, asked: AwaitedStep, run: Run) -> list[StepResult]:
        if asked.who is Performer.PERSON:
            return [ApprovedResult(), RejectedResult()]
        if asked.is_undo:
            return [DoneResult()]
        answers: list[StepResult] = [DoneResult(output) for output in self._outputs(asked)]
        name = plain(asked.path)
        # One failure on each path, and one of each step, is enough to see where failures lead.
        if name not in self.failed and not any(one.status is StepStatus.FAILED for one in run.steps.values()):
            self.failed.add(name)
            answers.append(FailedResult(is_final=True))
        return answers

    def _outputs(self, asked: AwaitedStep) -> list[Any]:
        name = plain(asked.path)
        if name not in self.outputs:
            self.outputs[name] = self._made_outputs(name, asked)
        if isinstance(asked.work, Tool) and asked.work.tool == "value.set" and isinstance(asked.args, Mapping):
            return [asked.args.get("value")]
        return self.outputs[name]

    def _made_outputs(self, name: str, asked: AwaitedStep) -> list[Any]:
        schema = asked.work.output if isinstance(asked.work, Prompt | Tool) else None
        place = self.states.place(asked.path)[:2]
        empty: Any = None if isinstance(asked.work, Prompt) else {}
        reads = [path for path in self.relevant.reads.get(place, ()) if not part_of(schema, path)]
        base = with_read(sample(schema) if schema is not None else empty, reads)
        tries = self.relevant.tries.get(place, {})
        made, is_whole = variants(base, schema, tries)
        if not is_whole:
            self.odd[f"outputs of {name} were varied one value at a time"] = None
        least = required_only(schema, made[0])
        return made if least in made else [*made, least]

    # --- findings ------------------------------------------------------------------------------

    def _note(self, stage: SimulatedRun) -> None:
        for event in stage.events:
            if (found := _invalid(event)) is not None:
                self._note_trouble(stage.run, *found)
        stage.events.clear()

    def _note_trouble(self, run: Run, step: str, message: str) -> None:
        if not _missing.search(message):
            self.odd[f"{plain(step)} could not be evaluated with the values that were tried: {message}"] = None
        elif doubtful := self._doubtful(run):
            self.odd[f"{plain(step)} may miss a value, unless the checks of {doubtful} rule it out: {message}"] = None
        else:
            self.missing[Missing(plain(step), message)] = None

    def _doubtful(self, run: Run) -> str:
        """A step whose sample output would be refused by its own checks, so that the path may not be real."""
        for path, state in run.steps.items():
            found = locate(self.definition, path)
            work = found.step.work
            if not isinstance(work, Prompt) or state.status is not StepStatus.COMPLETED:
                continue
            checks = tuple(check for check in work.checks if check.rule in DECIDING)
            strict = replace(work, checks=checks, output=None)
            if checks and not judge(strict, state.output, run, found.lane, self.rule_set).is_good:
                return plain(path)
        return ""

    def _end(self, run: Run) -> None:
        self.ends.add(WAITS if run.status in RUN_WORKING else run.status.value)
        done = self.states.done(run)
        if len(done) > len(self.longest):
            self.longest = done


def _first(pending: Sequence[Sequence[SimulatedRun]]) -> int | None:
    return next((depth for depth, stages in enumerate(pending) if stages), None)


def _with_defaults(definition: Definition, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[str]]:
    """Inputs with defaults, not validated: a sample need not fit what a schema says beyond its type."""
    defaults = {name: schema["default"] for name, schema in definition.inputs.items() if "default" in schema}
    return {**defaults, **given}, ()


def _invalid(event: Event) -> tuple[str, str] | None:
    """The step and the reason, if an event says that an expression could not be evaluated."""
    match event:
        case StepFailed(step=step, category=Category.INVALID_INPUT, message=message):
            return step, message
        case AttemptFailed(step=step, category=Category.INVALID_INPUT, message=message):
            return step, message
        case UndoFailed(step=step, category=Category.INVALID_INPUT, message=message):
            return step + UNDO, message
        case RunFailed(step="", message=message):
            return "outputs", message
        case _:
            return None


def _without_undo(definition: Definition) -> Iterator[str]:
    """Steps that have an effect but no undo."""
    for name, step in names_in(definition):
        is_lasting = effect_of(step) not in {None, Effect.NONE}
        if is_lasting and step.undo is None and not brings_own_undo(step) and UNDO not in name:
            yield name
